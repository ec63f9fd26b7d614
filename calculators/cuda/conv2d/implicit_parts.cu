/* What stands before and behind implicit GEMM: weights with filters and channels exchanged, and the sum of parts. */
#include "calculators/cuda/conv2d/implicit.cuh"

enum { THREADS = 256 };

/* w (K,C/G,R,S) -> for each group and phase (C/G, K/G, taps of the phase). A thread a weight; moves them once in and out. */
template <typename T>
static __global__ void exchange(const T *w, T *exchanged, const __grid_constant__ cuda_implicit p, int64_t count)
{
    int taps = p.taps[0] * p.taps[1], filters = p.depth / taps; /* p.rows are channels here */
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        int tap[2] = {static_cast<int>(e / p.taps[1] % p.taps[0]), static_cast<int>(e % p.taps[1])};
        int64_t channel = e / taps % p.rows, filter = e / taps / p.rows % filters, group = e / taps / p.rows / filters;
        implicit_span span[2];
        int number[2]; /* of the tap in its phase */
        for (int axis = 0; axis < 2; axis++) {
            int stride = p.stride[axis];
            int phase =
                static_cast<int>((static_cast<int64_t>(tap[axis]) * p.dilation[axis] - p.padding[axis]) % stride);
            if (phase < 0) phase += stride;
            span[axis] = implicit_span_of(p, axis, phase);
            number[axis] = tap[axis] / (stride / p.divisor[axis]);
        }
        int64_t phase = span[0].before * p.taps[1] + span[0].count * span[1].before; /* taps in phases before */
        int64_t row = channel * filters + filter;
        exchanged[group * p.a_group + p.rows * filters * phase + (row * span[0].count + number[0]) * span[1].count +
                  number[1]] = w[e];
    }
}

/* y = act(sum of parts + bias + residual), parts in order. A thread a result; reads each part once. */
template <typename T>
static __global__ void finish(const T *parts, int splits, T *y, const T *bias, const T *residual, int64_t count,
                              int64_t channels, int64_t area, sdlf_activation activation)
{
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        T sum = 0;
        for (int i = 0; i < splits; i++) sum += parts[i * count + e];
        if (bias != nullptr) sum += bias[e / area % channels];
        if (residual != nullptr) sum += residual[e];
        y[e] = activate(activation, sum);
    }
}

extern "C" sdlf_status cuda_implicit_exchange(sdlf_calculator *base, const cuda_implicit *problem, sdlf_dtype dtype,
                                              const void *w, void *exchanged)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = static_cast<int64_t>(problem->groups) * problem->rows * problem->depth;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        exchange<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<const T *>(w), static_cast<T *>(exchanged), *problem, count);
    });
    return cuda_check_launch("conv2d, weights for backward input");
}

extern "C" sdlf_status cuda_implicit_finish(sdlf_calculator *base, const cuda_epilogue *epilogue, const void *parts,
                                            int splits)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (epilogue->count == 0) return SDLF_OK;
    with_float(epilogue->dtype, [&](auto zero) {
        using T = decltype(zero);
        finish<T><<<cuda_blocks(calculator, epilogue->count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<const T *>(parts), splits, static_cast<T *>(epilogue->data),
            static_cast<const T *>(epilogue->bias), static_cast<const T *>(epilogue->residual), epilogue->count,
            epilogue->channels, epilogue->area, epilogue->activation);
    });
    return cuda_check_launch("conv2d, sum of parts");
}
