/* SPDX-License-Identifier: MIT */
/* wgrad of NHWC depthwise convolution: a thread has 2 channels of runs of RUN pixels of dy, and an accumulator for each tap; a block
 * reduces those of its threads and writes them to the workspace, (splits, taps, C), for engine_add_splits. 3x3 and 5x5 filters with equal
 * strides have specialised code; for others a block computes one tap. Moves x and dy once (or once a tap); repeated reads come from
 * cache. */
#include "calculators/cuda/engine/splits.h"
#include "calculators/cuda/nhwc/depthwise.cuh"

enum { THREADS = 256, RUN = 4, MOST_PAIRS = 32, SPLIT_BLOCKS = 792 };

/* Two channels of a pixel; 0 outside the image. */
template <typename T>
static __device__ __forceinline__ float2 pair_at(const T *from, int64_t pixel, int pairs, int mine, bool inside)
{
    struct alignas(2 * sizeof(T)) pair {
        T at[2];
    };
    const pair found = reinterpret_cast<const pair *>(from)[inside ? pixel * pairs + mine : mine];
    return inside ? make_float2(static_cast<float>(found.at[0]), static_cast<float>(found.at[1])) : float2{};
}

static __device__ __forceinline__ void add_product(float2 &sum, float2 a, float2 b)
{
    sum.x = fmaf(a.x, b.x, sum.x);
    sum.y = fmaf(a.y, b.y, sum.y);
}

/* g.x is x, g.y dy. SIZE x SIZE accumulators a thread, equal strides; SIZE 0: one, of tap blockIdx.z. g.across: pairs per block. */
template <typename T, int SIZE, int STRIDE>
static __global__ void __launch_bounds__(THREADS)
    depthwise_weights(const __grid_constant__ depthwise_conv g, float *splits)
{
    constexpr int TAPS = SIZE > 0 ? SIZE * SIZE : 1, SEEN = SIZE > 0 ? (RUN - 1) * STRIDE + SIZE : RUN;
    __shared__ float2 added[THREADS];
    const int lines = THREADS / g.across, line = static_cast<int>(threadIdx.x) / g.across;
    const int lane = static_cast<int>(threadIdx.x) - line * g.across, pairs = g.vectors * VECTOR / 2;
    const int mine = static_cast<int>(blockIdx.x) * g.across + lane, taps = g.size[0] * g.size[1];
    const int first_tap = static_cast<int>(blockIdx.z), tap_row = SIZE > 0 ? 0 : first_tap / g.size[1];
    const int tap_column = SIZE > 0 ? 0 : first_tap - tap_row * g.size[1];
    const T *x = static_cast<const T *>(g.x), *dy = static_cast<const T *>(g.y);
    wait_and_launch_dependent_grids();
    float2 sum[TAPS] = {};
    const int64_t end = line < lines && mine < pairs ? g.runs : 0;
    for (int64_t run = blockIdx.y * lines + line; run < end; run += gridDim.y * lines) {
        int q, p;
        const int row = divide(static_cast<int32_t>(run), g.run_columns, q), n = divide(row, g.run_rows, p);
        q *= RUN;
        const int top = p * g.stride[0] - g.padding[0] + tap_row * g.dilation[0];
        const int left = q * g.stride[1] - g.padding[1] + tap_column * g.dilation[1];
        float2 d[RUN];
#pragma unroll
        for (int o = 0; o < RUN; o++)
            d[o] = pair_at(dy, static_cast<int64_t>(row) * g.columns + q + o, pairs, mine, q + o < g.columns);
#pragma unroll
        for (int r = 0; r < (SIZE > 0 ? SIZE : 1); r++) {
            const int h = top + r;
            const bool inside = h >= 0 && h < g.height;
            const int64_t pixels = (static_cast<int64_t>(n) * g.height + h) * g.width;
            float2 seen[SEEN];
#pragma unroll
            for (int i = 0; i < SEEN; i++) {
                const int w = left + (SIZE > 0 ? i : i * g.stride[1]);
                seen[i] = pair_at(x, pixels + w, pairs, mine, inside && w >= 0 && w < g.width);
            }
#pragma unroll
            for (int o = 0; o < RUN; o++) {
#pragma unroll
                for (int s = 0; s < (SIZE > 0 ? SIZE : 1); s++)
                    add_product(sum[r * SIZE + s], d[o], seen[SIZE > 0 ? o * STRIDE + s : o]);
            }
        }
    }
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        added[threadIdx.x] = sum[t];
        __syncthreads();
        if (line == 0 && mine < pairs) {
            float2 all = added[lane];
            for (int l = 1; l < lines; l++) {
                all.x += added[l * g.across + lane].x;
                all.y += added[l * g.across + lane].y;
            }
            const int64_t to = (static_cast<int64_t>(blockIdx.y) * taps + first_tap + t) * pairs + mine;
            reinterpret_cast<float2 *>(splits)[to] = all;
        }
        __syncthreads();
    }
}

static int across_of(const depthwise_conv &g)
{
    return depthwise_conv_across(g.vectors * VECTOR / 2, MOST_PAIRS);
}

static int splits_of(const depthwise_conv &g)
{
    const int across = across_of(g), lines = THREADS / across;
    const int64_t runs = static_cast<int64_t>(g.batch) * g.rows * ((g.columns + RUN - 1) / RUN), least = 4 * lines;
    const int64_t groups = (g.vectors * VECTOR / 2 + across - 1) / across;
    int64_t splits = (runs + least - 1) / least, most = SPLIT_BLOCKS / groups;
    if (splits > most) splits = most > 1 ? most : 1;
    return static_cast<int>(splits);
}

int64_t depthwise_weights_workspace(const depthwise_conv &g)
{
    return static_cast<int64_t>(splits_of(g)) * g.size[0] * g.size[1] * g.vectors * VECTOR *
           static_cast<int64_t>(sizeof(float));
}

template <typename T> static void (*weights_kernel(const depthwise_conv &g))(depthwise_conv, float *)
{
    if (depthwise_conv_is_square(g, 3, 1)) return depthwise_weights<T, 3, 1>;
    if (depthwise_conv_is_square(g, 3, 2)) return depthwise_weights<T, 3, 2>;
    if (depthwise_conv_is_square(g, 5, 1)) return depthwise_weights<T, 5, 1>;
    if (depthwise_conv_is_square(g, 5, 2)) return depthwise_weights<T, 5, 2>;
    return depthwise_weights<T, 0, 1>;
}

template <typename T>
void depthwise_weights_launch(const cuda_calculator *calculator, const depthwise_conv &given, float *splits, float *dw)
{
    depthwise_conv g = given;
    const int pairs = g.vectors * VECTOR / 2, taps = g.size[0] * g.size[1], count = splits_of(g);
    const auto kernel = weights_kernel<T>(g);
    g.across = across_of(g);
    g.run_columns = divider<int32_t>((g.columns + RUN - 1) / RUN);
    g.run_rows = divider<int32_t>(g.rows);
    g.runs = static_cast<int64_t>(g.batch) * g.rows * ((g.columns + RUN - 1) / RUN);
    const dim3 blocks(static_cast<unsigned>((pairs + g.across - 1) / g.across), static_cast<unsigned>(count),
                      static_cast<unsigned>(kernel == depthwise_weights<T, 0, 1> ? taps : 1));
    launch_overlapped(calculator, kernel, blocks, dim3(THREADS), 0, g, splits);
    engine_add_splits(calculator, {splits, dw, count, 1, taps, 2 * pairs, engine_rows(2 * pairs)});
}

template void depthwise_weights_launch<__nv_bfloat16>(const cuda_calculator *, const depthwise_conv &, float *,
                                                      float *);
template void depthwise_weights_launch<__half>(const cuda_calculator *, const depthwise_conv &, float *, float *);
template void depthwise_weights_launch<float>(const cuda_calculator *, const depthwise_conv &, float *, float *);
