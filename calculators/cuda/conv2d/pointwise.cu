/* SPDX-License-Identifier: MIT */
/* The GEMM of a 1x1 convolution: y[n,k,pixel] = act(sum over c of w[k,c] x[n,c,pixel] + bias + residual); any stride, no padding.
 *
 * A block computes FILTERS x PIXELS results; pixels are linearised over all images. Its threads form SLICES groups: of every k-step of
 * 4 SLICES channels each group takes four, and at the end the groups' sums are added, in order, in shared memory. So few results with a
 * long K still occupy a whole multiprocessor, without a second pass through memory. A thread accumulates DOWN x ACROSS results. Weights
 * are in shared memory in their original order, a filter's channels side by side; a thread reads four of them at once.
 *
 * Operands are copied by cp.async, STAGES - 1 k-steps ahead: 16 bytes at a time where rows of channels and of pixels are aligned to
 * that, else element by element.
 *
 * Loads x once for every FILTERS filters and w once for every PIXELS pixels; stores y
 * once. */
#include "calculators/cuda/conv2d/pointwise.h"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

/* Four neighbouring elements. */
template <typename T> struct alignas(16) pointwise_quad {
    T at[4];
};

template <typename T, int FILTERS, int PIXELS, int DOWN, int ACROSS, int SLICES, int STAGES> struct pointwise_tile {
    static constexpr int GROUPS_DOWN = FILTERS / DOWN, GROUPS_ACROSS = PIXELS / ACROSS;
    static constexpr int PER_SLICE = GROUPS_DOWN * GROUPS_ACROSS, THREADS = PER_SLICE * SLICES;
    static constexpr int CHANNELS = 4 * SLICES, CHUNK = 16 / sizeof(T);
    /* no bank conflicts, whether the lanes of a warp belong to one slice or to several */
    static constexpr int W_ROW = CHANNELS + (PER_SLICE < 32 ? 16 : 4), X_ROW = PIXELS + 4;
    static constexpr int W_NUMBERS = FILTERS * W_ROW, X_NUMBERS = CHANNELS * X_ROW;
    static constexpr int STAGE = W_NUMBERS + X_NUMBERS, SUMS = SLICES * FILTERS * PIXELS;
    static constexpr int64_t SHARED = (STAGES * STAGE > SUMS ? STAGES * STAGE : SUMS) * static_cast<int64_t>(sizeof(T));

    static __device__ __forceinline__ void load_w(T *to, const T *w, int filters, int channels, int step, bool wide)
    {
        if (wide) {
            constexpr int CHUNKS = CHANNELS / CHUNK;
#pragma unroll
            for (int i = 0; i < (FILTERS * CHUNKS + THREADS - 1) / THREADS; i++) {
                int index = i * THREADS + static_cast<int>(threadIdx.x), row = index / CHUNKS,
                    c = index % CHUNKS * CHUNK;
                if (FILTERS * CHUNKS % THREADS != 0 && row >= FILTERS) break;
                bool inside = row < filters && step * CHANNELS + c < channels;
                copy_async(to + row * W_ROW + c,
                           inside ? w + static_cast<int64_t>(row) * channels + step * CHANNELS + c : w, inside);
            }
            return;
        }
#pragma unroll 4
        for (int index = threadIdx.x; index < FILTERS * CHANNELS; index += THREADS) {
            int row = index / CHANNELS, c = index % CHANNELS;
            bool inside = row < filters && step * CHANNELS + c < channels;
            copy_async_number(to + row * W_ROW + c,
                              inside ? w + static_cast<int64_t>(row) * channels + step * CHANNELS + c : w, inside);
        }
    }

    /* from: channel 0 of the thread's pixel, or of the first pixel of its chunk; NULL: there is none. */
    static __device__ __forceinline__ void load_x(T *to, const T *from, const T *any, int64_t plane, int channels,
                                                  int step, bool wide)
    {
        if (wide) {
            constexpr int CHUNKS = PIXELS / CHUNK;
#pragma unroll
            for (int i = 0; i < (CHANNELS * CHUNKS + THREADS - 1) / THREADS; i++) {
                int index = i * THREADS + static_cast<int>(threadIdx.x), row = index / CHUNKS;
                if (CHANNELS * CHUNKS % THREADS != 0 && row >= CHANNELS) break;
                bool inside = from != nullptr && step * CHANNELS + row < channels;
                copy_async(to + row * X_ROW + index % CHUNKS * CHUNK,
                           inside ? from + (step * CHANNELS + row) * plane : any, inside);
            }
            return;
        }
#pragma unroll 4
        for (int i = 0; i < CHANNELS * PIXELS / THREADS; i++) {
            int index = i * THREADS + static_cast<int>(threadIdx.x), row = index / PIXELS;
            bool inside = from != nullptr && step * CHANNELS + row < channels;
            copy_async_number(to + row * X_ROW + index % PIXELS, inside ? from + (step * CHANNELS + row) * plane : any,
                              inside);
        }
    }

    /* Multiply the thread's four channels of a k-step. Its rows are GROUPS_DOWN apart, its pixels in fours, 4 GROUPS_ACROSS apart. */
    static __device__ __forceinline__ void multiply(T (*sum)[ACROSS], const T *w, const T *x)
    {
        pointwise_quad<T> operand[DOWN];
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            operand[i] = *reinterpret_cast<const pointwise_quad<T> *>(w + i * GROUPS_DOWN * W_ROW);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            pointwise_quad<T> pixel[ACROSS / 4];
#pragma unroll
            for (int j = 0; j < ACROSS / 4; j++)
                pixel[j] = *reinterpret_cast<const pointwise_quad<T> *>(x + c * X_ROW + j * 4 * GROUPS_ACROSS);
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
#pragma unroll
                for (int j = 0; j < ACROSS; j++) sum[i][j] += operand[i].at[c] * pixel[j / 4].at[j % 4];
            }
        }
    }

    static __device__ __forceinline__ void run(const cuda_pointwise &p)
    {
        extern __shared__ __align__(16) unsigned char memory[];
        T *shared = reinterpret_cast<T *>(memory);
        const int first_filter = static_cast<int>(blockIdx.x % p.filter_blocks) * FILTERS;
        const int first_pixel = static_cast<int>(blockIdx.x / p.filter_blocks) * PIXELS;
        const int filters = p.filters - first_filter;
        const T *w = static_cast<const T *>(p.w) + static_cast<int64_t>(first_filter) * p.channels;
        const T *x = static_cast<const T *>(p.x), *from = nullptr;
        const int64_t plane = static_cast<int64_t>(p.height) * p.width;
        const int own =
            first_pixel + static_cast<int>(threadIdx.x) % (p.wide_x ? PIXELS / CHUNK : PIXELS) * (p.wide_x ? CHUNK : 1);
        if (own < p.pixels) {
            int area = p.out_height * p.out_width, image = own / area, at = own % area;
            if (!p.plain) at = at / p.out_width * p.stride[0] * p.width + at % p.out_width * p.stride[1];
            from = x + image * p.channels * plane + at;
        }
        const int slice = threadIdx.x / PER_SLICE, local = threadIdx.x % PER_SLICE;
        const int down = local / GROUPS_ACROSS, across = local % GROUPS_ACROSS;
        const int steps = (p.channels + CHANNELS - 1) / CHANNELS;
        T sum[DOWN][ACROSS] = {};
        /* prefetch the weights before the kernel that computes x has ended */
        const int rows = filters < FILTERS ? filters : FILTERS, line = 128 / static_cast<int>(sizeof(T));
        for (int64_t at = threadIdx.x * line; at < static_cast<int64_t>(rows) * p.channels; at += THREADS * line)
            prefetch_line(w + at);
        wait_and_launch_dependent_grids();
#pragma unroll
        for (int step = 0; step < STAGES - 1; step++) {
            if (step < steps) {
                load_w(shared + step * STAGE, w, filters, p.channels, step, p.wide_w);
                load_x(shared + step * STAGE + W_NUMBERS, from, x, plane, p.channels, step, p.wide_x);
            }
            cp_async_commit();
        }
        int stage = 0;
        for (int step = 0; step < steps; step++) {
            cp_async_wait<STAGES - 2>();
            __syncthreads();
            if (step + STAGES - 1 < steps) {
                T *to = shared + (stage == 0 ? STAGES - 1 : stage - 1) * STAGE;
                load_w(to, w, filters, p.channels, step + STAGES - 1, p.wide_w);
                load_x(to + W_NUMBERS, from, x, plane, p.channels, step + STAGES - 1, p.wide_x);
            }
            cp_async_commit();
            const T *now = shared + stage * STAGE;
            multiply(sum, now + down * W_ROW + slice * 4, now + W_NUMBERS + slice * 4 * X_ROW + across * 4);
            stage = stage == STAGES - 1 ? 0 : stage + 1;
        }
        cp_async_wait<0>();
        __syncthreads();
        T *mine = shared + slice * FILTERS * PIXELS + down * PIXELS + across * 4;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int j = 0; j < ACROSS; j += 4)
                *reinterpret_cast<pointwise_quad<T> *>(mine + i * GROUPS_DOWN * PIXELS + j * GROUPS_ACROSS) = {
                    {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]}};
        }
        __syncthreads();
        epilogue(p, shared, first_filter, first_pixel);
    }

    /* Store the results, neighbouring threads neighbouring pixels; all results of a thread are of one pixel. */
    static __device__ __forceinline__ void epilogue(const cuda_pointwise &p, const T *sums, int first_filter,
                                                    int first_pixel)
    {
        static_assert(THREADS % PIXELS == 0, "a thread keeps its pixel");
        constexpr int STEP = THREADS / PIXELS, COUNT = (FILTERS + STEP - 1) / STEP;
        const T *bias = static_cast<const T *>(p.bias), *residual = static_cast<const T *>(p.residual);
        const int pixel = first_pixel + static_cast<int>(threadIdx.x) % PIXELS;
        const int row = static_cast<int>(threadIdx.x) / PIXELS, area = p.out_height * p.out_width;
        if (pixel >= p.pixels) return;
        const int image = pixel / area;
        int filter = first_filter + row;
        int64_t to = (static_cast<int64_t>(image) * p.filters + filter) * area + (pixel - image * area);
        T *y = static_cast<T *>(p.y);
        const T *from = sums + threadIdx.x;
#pragma unroll(COUNT < 8 ? COUNT : 8)
        for (int i = 0; i < COUNT; i++, filter += STEP, to += static_cast<int64_t>(STEP) * area, from += THREADS) {
            if (filter >= p.filters || row + i * STEP >= FILTERS) break;
            T value = from[0];
#pragma unroll
            for (int slice = 1; slice < SLICES; slice++) value += from[slice * FILTERS * PIXELS];
            if (bias != nullptr) value += bias[filter];
            if (residual != nullptr) value += residual[to];
            y[to] = activate_often(p.activation, value);
        }
    }
};

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS) pointwise_product(const __grid_constant__ cuda_pointwise p)
{
    TILE::run(p);
}

template <typename TILE> static sdlf_status launch(const cuda_calculator *calculator, const cuda_pointwise &p)
{
    unsigned blocks = static_cast<unsigned>(p.filter_blocks * p.pixel_blocks);
    sdlf_status status = allow_shared(pointwise_product<TILE>, TILE::SHARED);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, pointwise_product<TILE>, dim3(blocks), dim3(TILE::THREADS),
                      static_cast<int>(TILE::SHARED), p);
    return cuda_check_launch("conv2d, pointwise");
}

/* In the order of cuda_pointwise_tiles. Where there are few results, several warps share a sum. Doubles have fewer stages. */
extern "C" sdlf_status cuda_pointwise_product(sdlf_calculator *base, const cuda_pointwise *problem, sdlf_dtype dtype,
                                              int tile)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    if (dtype == SDLF_FLOAT64) {
        switch (tile) {
        case 0:
        case 1: return launch<pointwise_tile<double, 32, 64, 4, 8, 4, 3>>(calculator, *problem);
        case 2: return launch<pointwise_tile<double, 16, 32, 4, 4, 8, 4>>(calculator, *problem);
        default: return launch<pointwise_tile<double, 8, 16, 4, 4, 32, 4>>(calculator, *problem);
        }
    }
    switch (tile) {
    case 0: return launch<pointwise_tile<float, 64, 128, 8, 8, 2, 4>>(calculator, *problem);
    case 1: return launch<pointwise_tile<float, 32, 64, 4, 8, 4, 4>>(calculator, *problem);
    case 2: return launch<pointwise_tile<float, 16, 32, 4, 4, 8, 6>>(calculator, *problem);
    default: return launch<pointwise_tile<float, 8, 16, 4, 4, 32, 6>>(calculator, *problem);
    }
}
