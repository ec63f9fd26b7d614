/* SPDX-License-Identifier: MIT */
/* Winograd's transforms of 2x2 tiles as separate kernels, and that of the fused kernel's filters. */
#include "calculators/cuda/conv2d/winograd_steps.cuh"

extern "C" const cuda_winograd_steps cuda_winograd_steps_2 = winograd_launch<2>::steps;

/* Reads 9 K C elements, writes 16 K C, with both rounded up. */
static __global__ void __launch_bounds__(THREADS)
    winograd_filters_fused(const float *w, float *u, int filters, int channels, int steps, int64_t count)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int local_k = static_cast<int>(e % WINOGRAD_FILTERS),
            local_c = static_cast<int>(e / WINOGRAD_FILTERS % WINOGRAD_CHANNELS);
        int64_t step = e / (WINOGRAD_FILTERS * WINOGRAD_CHANNELS);
        float g[9], points[WINOGRAD_POINTS];
        read_filter(g, w, static_cast<int>(step / steps) * WINOGRAD_FILTERS + local_k,
                    static_cast<int>(step % steps) * WINOGRAD_CHANNELS + local_c, filters, channels);
        winograd_filter<2>(points, g);
        float *to = u + (step * WINOGRAD_POINTS * WINOGRAD_CHANNELS + local_c) * WINOGRAD_FILTERS + local_k;
#pragma unroll
        for (int i = 0; i < WINOGRAD_POINTS; i++) to[i * WINOGRAD_CHANNELS * WINOGRAD_FILTERS] = points[i];
    }
}

extern "C" sdlf_status cuda_winograd_filters_fused(sdlf_calculator *base, const float *w, float *u, int filters,
                                                   int channels)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int steps = (channels + WINOGRAD_CHANNELS - 1) / WINOGRAD_CHANNELS;
    int64_t blocks = (static_cast<int64_t>(filters) + WINOGRAD_FILTERS - 1) / WINOGRAD_FILTERS;
    int64_t count = blocks * steps * WINOGRAD_FILTERS * WINOGRAD_CHANNELS;
    winograd_filters_fused<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
        w, u, filters, channels, steps, count);
    return cuda_check_launch("conv2d, Winograd's filters");
}
