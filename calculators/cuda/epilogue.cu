/* SPDX-License-Identifier: MIT */
/* The epilogue of a GEMM or convolution whose own kernel cannot apply it: c = act(c + bias + residual), in place. c is (N, channels, area);
 * bias has one value per channel. A grid-stride loop, one thread per element, or per four elements of float32 rows; reads and writes c once. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/divider.cuh"

enum { THREADS = 256 };

template <typename T, typename Index>
static __global__ void apply(T *c, const T *bias, const T *residual, int64_t count, divider<Index> channels,
                             divider<Index> area, sdlf_activation activation)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        T value = c[i];
        Index channel;
        divide(area.quotient(static_cast<Index>(i)), channels, channel);
        if (bias != nullptr) value += bias[channel];
        if (residual != nullptr) value += residual[i];
        c[i] = activate(activation, value);
    }
}

static __device__ __forceinline__ void add4(float (&value)[4], const float *more)
{
    const float4 four = *reinterpret_cast<const float4 *>(more);
    value[0] += four.x;
    value[1] += four.y;
    value[2] += four.z;
    value[3] += four.w;
}

/* float32 with area 1 and channels a multiple of four: vectors of four elements. */
template <typename Index>
static __global__ void apply_to_quads(float *c, const float *bias, const float *residual, int64_t count,
                                      divider<Index> channels, sdlf_activation activation)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = 4 * grid_first(); i < count; i += 4 * grid_step()) {
        float value[4] = {};
        Index channel;
        divide(static_cast<Index>(i), channels, channel);
        add4(value, c + i);
        if (bias != nullptr) add4(value, bias + channel);
        if (residual != nullptr) add4(value, residual + i);
        with_activation<float>(activation, [&](auto f) {
#pragma unroll
            for (int v = 0; v < 4; v++) value[v] = f(value[v]);
        });
        *reinterpret_cast<float4 *>(c + i) = make_float4(value[0], value[1], value[2], value[3]);
    }
}

static bool has_quads(const cuda_epilogue *epilogue)
{
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(epilogue->data) |
                                reinterpret_cast<uintptr_t>(epilogue->bias) |
                                reinterpret_cast<uintptr_t>(epilogue->residual);
    return epilogue->dtype == SDLF_FLOAT32 && epilogue->area == 1 && epilogue->channels % 4 == 0 && addresses % 16 == 0;
}

extern "C" sdlf_status cuda_apply_epilogue(sdlf_calculator *base, const cuda_epilogue *epilogue)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (epilogue->count == 0) return SDLF_OK;
    with_float(epilogue->dtype, [&](auto zero) {
        with_narrow_index(epilogue->count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            if (has_quads(epilogue)) {
                launch_overlapped(calculator, apply_to_quads<Index>,
                                  cuda_blocks(calculator, epilogue->count / 4, THREADS), THREADS, 0,
                                  static_cast<float *>(epilogue->data), static_cast<const float *>(epilogue->bias),
                                  static_cast<const float *>(epilogue->residual), epilogue->count,
                                  divider<Index>(epilogue->channels), epilogue->activation);
                return;
            }
            launch_overlapped(calculator, apply<T, Index>, cuda_blocks(calculator, epilogue->count, THREADS), THREADS,
                              0, static_cast<T *>(epilogue->data), static_cast<const T *>(epilogue->bias),
                              static_cast<const T *>(epilogue->residual), epilogue->count,
                              divider<Index>(epilogue->channels), divider<Index>(epilogue->area), epilogue->activation);
        });
    });
    return cuda_check_launch("epilogue");
}
