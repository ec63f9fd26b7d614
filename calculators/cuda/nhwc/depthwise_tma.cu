/* SPDX-License-Identifier: MIT */
/* NHWC depthwise convolution with 3x3 windows, on boxes of the image that are loaded by TMA: compute capability 9.0 and newer.
 *
 * A block computes a rectangle of pixels of GROUP channels of one image, or, if images are small, of several. The part of an image that the
 * rectangle's windows cover is a box, zeros outside of the image, which one thread loads into shared memory with one instruction. A thread then
 * computes 4 adjacent channels of ACROSS x DOWN pixels, with adjacent channels in adjacent lanes: it moves down the box, reads each value of its
 * columns once, and holds weights and accumulators in registers. Blocks are small, so that on a multiprocessor some wait for memory while others
 * compute. Each image is moved once; the halos that rectangles share come from the L2 cache. */
#include "calculators/cuda/activate.cuh"
#include "calculators/cuda/mbarrier.cuh"
#include "calculators/cuda/nhwc/depthwise.cuh"
#include "calculators/cuda/tma.cuh"
#include "calculators/cuda/vectorized.cuh"

#include <algorithm>

enum { SIDE = 3, TAPS = SIDE * SIDE, GROUP = 32, QUAD = 4, LANES = GROUP / QUAD };

/* Threads that a block should have if several images provide them; images per block at most. */
enum { ENOUGH_THREADS = 64, MOST_IMAGES = 8 };

/* Rectangles of the output, and the input boxes that they read. */
struct depthwise_boxes : depthwise_conv {
    int images;                                         /* per block */
    int box_rows, box_columns, tile_rows, tile_columns; /* of a rectangle: box in x, tile in y */
    int strips, lines;                                  /* of threads, per rectangle */
    unsigned channel_groups, rectangles[2];             /* per image */
    piecewise_linear_activation line;
    bool clips; /* the activation is only a clamp */
};

template <typename T> static __device__ __forceinline__ vec<float, QUAD> read_quad(const T *from)
{
    const bits4<T> bits = load_bits4(from);
    vec<float, QUAD> values;
#pragma unroll
    for (int v = 0; v < QUAD; v++) values.at[v] = element(bits, v);
    return values;
}

/* Load the weights of four channels, stored either with the taps of a channel or with the channels of a tap contiguous. */
template <typename T>
static __device__ __forceinline__ void read_weights(const depthwise_conv &g, int channel,
                                                    vec<float, QUAD> (&weight)[TAPS])
{
    const T *w = static_cast<const T *>(g.w);
    vec<float, QUAD> stored[TAPS];
#pragma unroll
    for (int i = 0; i < TAPS; i++)
        stored[i] = g.by_taps ? read_quad(w + static_cast<int64_t>(i) * g.channels + channel)
                              : read_quad(w + static_cast<int64_t>(channel) * TAPS + i * QUAD);
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) {
#pragma unroll
        for (int v = 0; v < QUAD; v++) {
            const int at = v * TAPS + tap, from_last = v * TAPS + TAPS - 1 - tap;
            const float forward = g.by_taps ? stored[tap].at[v] : stored[at / QUAD].at[at % QUAD];
            const float flipped =
                g.by_taps ? stored[TAPS - 1 - tap].at[v] : stored[from_last / QUAD].at[from_last % QUAD];
            weight[tap].at[v] = g.flipped ? flipped : forward;
        }
    }
}

template <typename T, int STRIDE, int ACROSS, int DOWN>
static __global__ void depthwise_tma(const __grid_constant__ CUtensorMap map, const __grid_constant__ depthwise_boxes g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) uint8_t memory[];
    const T *box = reinterpret_cast<const T *>(memory);
    __shared__ uint64_t here;
    unsigned block = blockIdx.x;
    const int first = static_cast<int>(block % g.channel_groups) * GROUP;
    block /= g.channel_groups;
    const int first_q = static_cast<int>(block % g.rectangles[1]) * g.tile_columns;
    block /= g.rectangles[1];
    const int first_p = static_cast<int>(block % g.rectangles[0]) * g.tile_rows;
    const int first_image = static_cast<int>(block / g.rectangles[0]) * g.images;
    const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&here));
    if (threadIdx.x == 0) {
        barrier_init(&here, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    if (g.ready)
        launch_dependent_grids();
    else
        wait_and_launch_dependent_grids();
    const int lane = static_cast<int>(threadIdx.x) % LANES, channel = first + lane * QUAD;
    int thread = static_cast<int>(threadIdx.x) / LANES;
    const int q = thread % g.strips * ACROSS;
    thread /= g.strips;
    const int p = thread % g.lines * DOWN, image = thread / g.lines;
    const bool is_channel = channel < g.channels;
    vec<float, QUAD> weight[TAPS] = {}, bias = {};
    if (is_channel) read_weights<T>(g, channel, weight);
    wait_on_dependent_grids();
    if (threadIdx.x == 0) {
        const image_place at = {first, first_q * STRIDE - g.padding[1], first_p * STRIDE - g.padding[0], first_image};
        tma_expect(barrier, g.images * g.box_rows * g.box_columns * GROUP * static_cast<int>(sizeof(T)));
        tma_load_image(static_cast<uint32_t>(__cvta_generic_to_shared(memory)), &map, at, barrier);
    }
    if (g.bias != nullptr && is_channel) bias = read_vec<QUAD>(g.bias + channel, 0);
    __syncthreads();
    barrier_await(&here, 0);
    if (!is_channel || first_image + image >= g.batch) return;

    vec<float, QUAD> sum[DOWN][ACROSS];
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
#pragma unroll
        for (int j = 0; j < ACROSS; j++) sum[i][j] = {};
    }
    /* the last strips may read past the box, within the allocated shared memory, for outputs that are not stored */
    const T *from = box + ((image * g.box_rows + p * STRIDE) * g.box_columns + q * STRIDE) * GROUP + lane * QUAD;
#pragma unroll
    for (int line = 0; line < (DOWN - 1) * STRIDE + SIDE; line++, from += g.box_columns * GROUP) {
        vec<float, QUAD> value[(ACROSS - 1) * STRIDE + SIDE];
#pragma unroll
        for (int c = 0; c < (ACROSS - 1) * STRIDE + SIDE; c++) value[c] = read_quad(from + c * GROUP);
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            const int r = line - i * STRIDE;
            if (r < 0 || r >= SIDE) continue;
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
#pragma unroll
                for (int s = 0; s < SIDE; s++) {
#pragma unroll
                    for (int v = 0; v < QUAD; v++)
                        sum[i][j].at[v] += value[j * STRIDE + s].at[v] * weight[r * SIDE + s].at[v];
                }
            }
        }
    }
    const int64_t row_step = static_cast<int64_t>(g.columns) * g.channels;
    int64_t to =
        ((static_cast<int64_t>(first_image + image) * g.rows + first_p + p) * g.columns + first_q + q) * g.channels +
        channel;
    const int down = min(g.tile_rows - p, g.rows - first_p - p);
    const int across = min(g.tile_columns - q, g.columns - first_q - q);
    auto finish = [&](auto f) {
#pragma unroll
        for (int i = 0; i < DOWN; i++, to += row_step) {
            if (i >= down) break;
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                if (j >= across) break;
                vec<float, QUAD> all = sum[i][j];
#pragma unroll
                for (int v = 0; v < QUAD; v++) all.at[v] += bias.at[v];
                if (g.residual != nullptr) {
                    const vec<float, QUAD> more = read_quad(static_cast<const T *>(g.residual) + to + j * g.channels);
#pragma unroll
                    for (int v = 0; v < QUAD; v++) all.at[v] += more.at[v];
                }
#pragma unroll
                for (int v = 0; v < QUAD; v++) all.at[v] = f(all.at[v]);
                store_bits4(static_cast<T *>(g.y) + to + j * g.channels, pack4<T>(all.at));
            }
        }
    };
    if (g.clips)
        finish([&](float x) { return clamp(x, g.line.low, g.line.high); });
    else
        with_inline_activation<T>(g.activation.function, g.line, finish);
#endif
}

/* The extent of a rectangle: the axis divided evenly into as few rectangles of at most `most` as possible. */
static int part_of(int64_t length, int most)
{
    const int64_t parts = cuda_ceil_div(length, most);
    return static_cast<int>(cuda_ceil_div(length, parts));
}

template <typename T, int STRIDE, int ACROSS, int DOWN>
static bool launch(const cuda_calculator *calculator, const depthwise_conv &given, int most_rows, int most_columns)
{
    depthwise_boxes g = {};
    static_cast<depthwise_conv &>(g) = given;
    g.line = line_activation_of(given.activation);
    g.clips = is_clip_activation(given.activation);
    g.tile_rows = part_of(g.rows, most_rows);
    g.tile_columns = part_of(g.columns, most_columns);
    g.box_rows = (g.tile_rows - 1) * STRIDE + SIDE;
    g.box_columns = (g.tile_columns - 1) * STRIDE + SIDE;
    g.strips = cuda_ceil_div(g.tile_columns, ACROSS);
    g.lines = cuda_ceil_div(g.tile_rows, DOWN);
    g.channel_groups = static_cast<unsigned>(cuda_ceil_div(g.channels, GROUP));
    g.rectangles[0] = static_cast<unsigned>(cuda_ceil_div(g.rows, g.tile_rows));
    g.rectangles[1] = static_cast<unsigned>(cuda_ceil_div(g.columns, g.tile_columns));
    const int threads = LANES * g.strips * g.lines;
    g.images = std::max(1, std::min({ENOUGH_THREADS / threads, static_cast<int>(MOST_IMAGES), g.batch}));
    tiled_shape boxes = {
        g.x, 4, {g.channels, g.width, g.height, g.batch}, {GROUP, g.box_columns, g.box_rows, g.images}};
    boxes.exact = g.dtype == SDLF_FLOAT32;
    boxes.in_order = true;
    CUtensorMap map = {};
    if (!make_tiled_map(&map, g.dtype, boxes)) return false;
    const int rows = (g.images - 1) * g.box_rows + (g.lines * DOWN - 1) * STRIDE + SIDE;
    const int past = (g.strips * ACROSS - g.tile_columns) * STRIDE;
    const int shared = (rows * g.box_columns + past) * GROUP * static_cast<int>(sizeof(T));
    auto kernel = depthwise_tma<T, STRIDE, ACROSS, DOWN>;
    if (shared + 1024 > calculator->shared_most || allow_shared(kernel, shared + 1024) != SDLF_OK) return false;
    const int64_t blocks =
        cuda_ceil_div(g.batch, g.images) * static_cast<int64_t>(g.rectangles[0]) * g.rectangles[1] * g.channel_groups;
    if (blocks > INT32_MAX) return false;
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(blocks)),
                      dim3(static_cast<unsigned>(threads * g.images)), shared, map, g);
    return true;
}

template <typename T> bool depthwise_tma_launch(const cuda_calculator *calculator, const depthwise_conv &g)
{
    const int64_t quads = static_cast<int64_t>(g.batch) * g.rows * g.columns * (g.channels / QUAD);
    const bool suits = cuda_is_built_for(calculator, 90) && is_inline_activation(g.activation) && is_aligned16(g.w) &&
                       is_aligned16(g.bias) && is_aligned16(g.residual) && is_aligned16(g.y) &&
                       quads >= static_cast<int64_t>(calculator->multiprocessors) * 1024;
    if (!suits) return false;
    if (depthwise_conv_is_square(g, SIDE, 1)) return launch<T, 1, 2, 7>(calculator, g, 7, 14);
    return depthwise_conv_is_square(g, SIDE, 2) && launch<T, 2, 1, 4>(calculator, g, 8, 7);
}

template bool depthwise_tma_launch<float>(const cuda_calculator *calculator, const depthwise_conv &g);
template bool depthwise_tma_launch<__half>(const cuda_calculator *calculator, const depthwise_conv &g);
template bool depthwise_tma_launch<__nv_bfloat16>(const cuda_calculator *calculator, const depthwise_conv &g);
