/* SPDX-License-Identifier: MIT */
/* Depthwise convolution of small planes, 3x3 with a padding of 1, whose lines are too short to be read in wide steps: in x planes lie one
 * behind the other, so that some of them are one run of memory, whatever their lines are.
 *
 * A block takes `planes` planes of neighbouring channels: the bulk copy engine brings them, and their filters, to shared memory in one piece
 * each, a thread makes 7 neighbouring results of a line, and the engine takes all results back in one piece. Lanes are 7 results apart,
 * and so are in different banks where they write, and, without a stride, where they read. Several blocks of a multiprocessor hide each other's
 * waiting. From compute capability 9.0 on.
 *
 * Moves x, w and y once. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_PLANES_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_DEPTHWISE_PLANES_CUH

#include "calculators/cuda/conv2d/depthwise_rectangles.cuh"
#include "calculators/cuda/wgmma.cuh"

enum { PLANES_PART = 7, PLANES_TAPS = 9, PLANES_THREADS = 128 };

struct depthwise_planes {
    depthwise_operands<float> o;
    int channels, planes;
};

/* A line of the image as a thread reads it: PART results' windows, from the column before `first` on. */
template <int WIDTH, int STRIDE> struct planes_line {
    static constexpr int COLUMNS = (PLANES_PART - 1) * STRIDE + 3;
    float at[COLUMNS];

    __device__ __forceinline__ void read(const float *line, int first, bool inside)
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) at[c] = 0;
        if (!inside) return;
        if (WIDTH > PLANES_PART * STRIDE ? first > 0 : false) at[0] = line[first - 1];
        if constexpr (STRIDE == 2) {
#pragma unroll
            for (int c = 0; c < PLANES_PART; c++) {
                const float2 two = *reinterpret_cast<const float2 *>(line + first + 2 * c);
                at[2 * c + 1] = two.x;
                at[2 * c + 2] = two.y;
            }
        } else {
#pragma unroll
            for (int c = 0; c < PLANES_PART; c++) at[c + 1] = line[first + c];
            if (WIDTH > PLANES_PART ? first + PLANES_PART < WIDTH : false) at[COLUMNS - 1] = line[first + PLANES_PART];
        }
    }
};

/* Take bytes of shared memory back to memory; by one thread, which waits until they have been read. */
static __device__ __forceinline__ void planes_take_back(float *to, const float *shared, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/* Images of WIDTH x WIDTH. */
template <int WIDTH, int STRIDE>
static __global__ void __launch_bounds__(PLANES_THREADS) depthwise_by_planes(const __grid_constant__ depthwise_planes g)
{
#if __CUDA_ARCH__ >= 900
    constexpr int SIDE = WIDTH / STRIDE, PARTS = SIDE / PLANES_PART, AREA = WIDTH * WIDTH, RESULTS = SIDE * SIDE;
    static_assert(SIDE % PLANES_PART == 0 && WIDTH % STRIDE == 0, "lines are whole parts");
    extern __shared__ __align__(128) float shared[];
    __shared__ uint64_t here;
    float *x = shared, *y = x + g.planes * AREA, *w = y + g.planes * RESULTS;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * g.planes;
    const int channel = static_cast<int>(first % g.channels); /* channels are a multiple of planes */
    if (threadIdx.x == 0) {
        barrier_init(&here, 1);
        barriers_made();
    }
    await_kernels();
    if (threadIdx.x == 0) {
        const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&here));
        const int image = g.planes * AREA * 4, filters = g.planes * PLANES_TAPS * 4;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(image + filters)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         static_cast<uint32_t>(__cvta_generic_to_shared(w))),
                     "l"(g.o.w + channel * PLANES_TAPS), "r"(filters), "r"(barrier)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         static_cast<uint32_t>(__cvta_generic_to_shared(x))),
                     "l"(g.o.x + first * AREA), "r"(image), "r"(barrier)
                     : "memory");
    }
    __syncthreads();
    barrier_await(&here, 0);
    for (int e = threadIdx.x; e < g.planes * SIDE * PARTS; e += blockDim.x) {
        const int part = e % PARTS, row = e / PARTS % SIDE, plane = e / (PARTS * SIDE);
        planes_line<WIDTH, STRIDE> line[3];
        float tap[PLANES_TAPS], sum[PLANES_PART];
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const int from = row * STRIDE - 1 + i;
            line[i].read(x + plane * AREA + from * WIDTH, part * PLANES_PART * STRIDE,
                         i == 1 || static_cast<unsigned>(from) < WIDTH);
        }
#pragma unroll
        for (int i = 0; i < PLANES_TAPS; i++) tap[i] = w[plane * PLANES_TAPS + i];
        const float shift = g.o.bias != nullptr ? __ldg(g.o.bias + channel + plane) : 0;
#pragma unroll
        for (int j = 0; j < PLANES_PART; j++) {
            sum[j] = shift;
#pragma unroll
            for (int i = 0; i < PLANES_TAPS; i++) sum[j] += line[i / 3].at[j * STRIDE + i % 3] * tap[i];
        }
        if (g.o.residual != nullptr) {
#pragma unroll
            for (int j = 0; j < PLANES_PART; j++) sum[j] += __ldg(g.o.residual + first * RESULTS + e * PLANES_PART + j);
        }
#pragma unroll
        for (int j = 0; j < PLANES_PART; j++)
            y[e * PLANES_PART + j] =
                clamp(sum[j], static_cast<float>(g.o.activation.low), static_cast<float>(g.o.activation.high));
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); /* what threads wrote, the engine reads */
    __syncthreads();
    if (threadIdx.x == 0) planes_take_back(g.o.y + first * RESULTS, y, g.planes * RESULTS * 4);
#endif
}

/* Bytes of shared memory. */
static inline int64_t planes_shared(int planes, int width, int stride)
{
    const int side = width / stride;
    return static_cast<int64_t>(planes) * (width * width + side * side + PLANES_TAPS) * 4;
}

template <int WIDTH, int STRIDE>
static void launch_planes(const cuda_calculator *calculator, const depthwise_operands<float> &o, int64_t images,
                          int channels, int planes, int threads)
{
    depthwise_planes g = {o, channels, planes};
    const int64_t shared = planes_shared(planes, WIDTH, STRIDE);
    launch_overlapped(calculator, depthwise_by_planes<WIDTH, STRIDE>,
                      dim3(static_cast<unsigned>(images * channels / planes)), dim3(static_cast<unsigned>(threads)),
                      static_cast<int>(shared), g);
}

/* Planes of a block, which channels are a multiple of: as many as PLANES_BYTES have room for, so that a multiprocessor has a dozen
 * blocks under way; 0: none. */
static inline int planes_of(int channels, int width, int stride)
{
    constexpr int PLANES_BYTES = 16 << 10;
    int found = 0;
    for (int planes = 4; planes <= channels && planes_shared(planes, width, stride) <= PLANES_BYTES; planes += 4) {
        if (channels % planes == 0) found = planes;
    }
    return found;
}

/* Launch it where it is suited: false otherwise. From so many results a multiprocessor on. */
static inline bool launch_suited_planes(const cuda_calculator *calculator, const depthwise_operands<float> &o,
                                        const cuda_conv2d &g)
{
    enum { PLANES_RESULTS = 1 << 12 };
    const sdlf_window2d &window = g.window;
    const int stride = window.stride[0], width = static_cast<int>(g.width), channels = static_cast<int>(g.channels);
    depthwise_operands<float> clipped = o;
    if (!cuda_is_built_for(calculator, 90) || g.filters != g.channels || g.height != g.width) return false;
    if (!(width == 7 && stride == 1) && !(width == 14 && stride <= 2) && !(width == 28 && stride == 2)) return false;
    for (int axis = 0; axis < 2; axis++) {
        if (window.size[axis] != 3 || window.stride[axis] != stride || window.dilation[axis] != 1) return false;
        if (window.padding_before[axis] != 1 || window.padding_after[axis] != 1) return false;
    }
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(o.x) | reinterpret_cast<uintptr_t>(o.y) | reinterpret_cast<uintptr_t>(o.w);
    const int64_t results = g.batch * g.channels * g.out_height * g.out_width;
    if (places % 16 != 0 || results < static_cast<int64_t>(PLANES_RESULTS) * calculator->multiprocessors) return false;
    const int planes = planes_of(channels, width, stride);
    if (planes == 0 || !make_clip(&clipped.activation)) return false;
    const int side = width / stride, tasks = planes * side * side / PLANES_PART;
    const int turns = (tasks + PLANES_THREADS - 1) / PLANES_THREADS;
    const int threads = ((tasks + turns - 1) / turns + 31) / 32 * 32;
    const auto launch = width == 7    ? launch_planes<7, 1>
                        : width == 28 ? launch_planes<28, 2>
                        : stride == 2 ? launch_planes<14, 2>
                                      : launch_planes<14, 1>;
    launch(calculator, clipped, g.batch, channels, planes, threads);
    return true;
}

#endif
