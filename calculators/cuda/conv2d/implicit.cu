/* SPDX-License-Identifier: MIT */
/* Implicit GEMM on tensor cores, launched in the calculator's math mode; and what runs before and after any implicit
 * GEMM: exchanging filters and channels of weights, and the sum of partial results. */
#include "calculators/cuda/conv2d/implicit_tensor.cuh"

template <typename MATH> static void launch_product(cudaStream_t stream, const cuda_implicit &problem, int tile)
{
    if (problem.weights)
        implicit_launch_tensor<MATH, true>(stream, problem, tile);
    else
        implicit_launch_tensor<MATH, false>(stream, problem, tile);
}

extern "C" sdlf_status cuda_implicit_tensor(sdlf_calculator *base, const cuda_implicit *problem, int tile)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    switch (calculator->math) {
    case SDLF_MATH_FP16: launch_product<implicit_fp16>(calculator->stream, *problem, tile); break;
    case SDLF_MATH_BF16: launch_product<implicit_bf16>(calculator->stream, *problem, tile); break;
    default: launch_product<implicit_tf32>(calculator->stream, *problem, tile); break;
    }
    return cuda_check_launch("conv2d, implicit GEMM");
}

/* ---- before and behind ---- */

enum { THREADS = 256, TAPS = 240 /* of a window of IMPLICIT_SIDES rows and columns, at most */, LINE = TAPS + 1 };

/* Where a tap goes: its index `at` among the taps sorted by phase, `before` of which are in earlier phases and `count` in its own. */
struct exchange_tap {
    int at, before, count;
};

static __device__ exchange_tap exchange_tap_of(const cuda_implicit &p, int tap)
{
    implicit_span span[2];
    int number[2]; /* of the tap in its phase */
    for (int axis = 0; axis < 2; axis++) {
        const int place = axis == 0 ? tap / p.taps[1] : tap % p.taps[1], stride = p.stride[axis];
        int phase = static_cast<int>((static_cast<int64_t>(place) * p.dilation[axis] - p.padding[axis]) % stride);
        if (phase < 0) phase += stride;
        span[axis] = implicit_span_of(p, axis, phase);
        number[axis] = place / (stride / p.divisor[axis]);
    }
    const int before = span[0].before * p.taps[1] + span[0].count * span[1].before;
    return {before + number[0] * span[1].count + number[1], before, span[0].count * span[1].count};
}

/* w (K,C/G,R,S) -> for each group and phase (C/G, K/G, taps of the phase). A block copies tiles of FILTERS filters by `channels` channels, all taps,
 * through shared memory, so that both loads (along a filter) and stores (along a channel) are contiguous. Reads and writes the weights once. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    exchange(const T *w, T *exchanged, const __grid_constant__ cuda_implicit p, int channels, int64_t tiles)
{
    constexpr int FILTERS = 128 / sizeof(T);
    __shared__ T tile[FILTERS * LINE];
    __shared__ exchange_tap tap_at[TAPS]; /* in the order of phases; .at is the tap */
    const int taps = p.taps[0] * p.taps[1], filters = p.depth / taps, rows = p.rows; /* rows are channels here */
    const int across = (rows + channels - 1) / channels, down = (filters + FILTERS - 1) / FILTERS;
    for (int tap = static_cast<int>(threadIdx.x); tap < taps; tap += THREADS) {
        const exchange_tap to = exchange_tap_of(p, tap);
        tap_at[to.at] = {tap, to.before, to.count};
    }
    for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
        const int c0 = static_cast<int>(i % across) * channels, f0 = static_cast<int>(i / across % down) * FILTERS;
        const int64_t group = i / across / down;
        const int wide = (rows - c0 < channels ? rows - c0 : channels) * taps;
        const int high = filters - f0 < FILTERS ? filters - f0 : FILTERS;
        const T *from = w + ((group * filters + f0) * rows + c0) * taps;
        __syncthreads(); /* the previous tile is stored, and the table complete */
        for (int e = static_cast<int>(threadIdx.x); e < high * wide; e += THREADS)
            tile[e / wide * LINE + e % wide] = from[static_cast<int64_t>(e / wide) * rows * taps + e % wide];
        __syncthreads();
        for (int e = static_cast<int>(threadIdx.x); e < high * wide; e += THREADS) {
            const int number = e % taps, f = e / taps % high, c = e / taps / high;
            const exchange_tap &tap = tap_at[number];
            const int64_t row = static_cast<int64_t>(c0 + c) * filters + f0 + f;
            exchanged[group * p.a_group + static_cast<int64_t>(rows) * filters * tap.before + row * tap.count + number -
                      tap.before] = tile[f * LINE + c * taps + tap.at];
        }
    }
}

/* The same for windows of more taps: one thread a weight. */
template <typename T>
static __global__ void exchange_large(const T *w, T *exchanged, const __grid_constant__ cuda_implicit p, int64_t count)
{
    const int taps = p.taps[0] * p.taps[1], filters = p.depth / taps;
    for (int64_t e = grid_first(); e < count; e += grid_step()) {
        const int64_t channel = e / taps % p.rows, filter = e / taps / p.rows % filters;
        const exchange_tap to = exchange_tap_of(p, static_cast<int>(e % taps));
        exchanged[e / taps / p.rows / filters * p.a_group + static_cast<int64_t>(p.rows) * filters * to.before +
                  (channel * filters + filter) * to.count + to.at - to.before] = w[e];
    }
}

/* y = act(sum of partial sums + bias + residual), summed in order. One thread an element; reads each partial sum once. */
template <typename T>
static __global__ void run_epilogue(const T *parts, int splits, T *y, const T *bias, const T *residual, int64_t count,
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
    const int taps = problem->taps[0] * problem->taps[1], filters = problem->depth / taps;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *from = static_cast<const T *>(w);
        T *to = static_cast<T *>(exchanged);
        if (taps > TAPS) {
            const int64_t count = static_cast<int64_t>(problem->groups) * problem->rows * problem->depth;
            exchange_large<T><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                from, to, *problem, count);
            return;
        }
        const int high = 128 / sizeof(T);
        const int64_t down = (filters + high - 1) / high * static_cast<int64_t>(problem->groups);
        int channels = TAPS / taps; /* fewer where there would be too few blocks */
        while (channels > 1 && (problem->rows + channels - 1) / channels * down < 2 * calculator->multiprocessors)
            channels = (channels + 1) / 2;
        const int64_t tiles = (problem->rows + channels - 1) / channels * down;
        exchange<T><<<cuda_blocks(calculator, tiles * THREADS, THREADS), THREADS, 0, calculator->stream>>>(
            from, to, *problem, channels, tiles);
    });
    return cuda_check_launch("conv2d, weights for backward input");
}

extern "C" sdlf_status cuda_implicit_epilogue(sdlf_calculator *base, const cuda_epilogue *epilogue, const void *parts,
                                              int splits)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (epilogue->count == 0) return SDLF_OK;
    with_float(epilogue->dtype, [&](auto zero) {
        using T = decltype(zero);
        run_epilogue<T><<<cuda_blocks(calculator, epilogue->count, THREADS), THREADS, 0, calculator->stream>>>(
            static_cast<const T *>(parts), splits, static_cast<T *>(epilogue->data),
            static_cast<const T *>(epilogue->bias), static_cast<const T *>(epilogue->residual), epilogue->count,
            epilogue->channels, epilogue->area, epilogue->activation);
    });
    return cuda_check_launch("conv2d, sum of parts");
}
