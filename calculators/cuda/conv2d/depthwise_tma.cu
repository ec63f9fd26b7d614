/* SPDX-License-Identifier: MIT */
/* Depthwise convolution with 3x3 windows over channels that lie last, in boxes of the image that TMA loads: compute
 * capability 9.0 and newer.
 *
 * A block makes a rectangle of pixels of GROUP channels of one image. All of the image that its windows cover is a box, zeros where it is
 * outside, which one instruction of one thread copies into shared memory. A thread then makes 4 neighbouring channels of ACROSS x DOWN
 * pixels, lanes being neighbours in the channels: it walks down the box, reads each number of its columns once, and holds weights and
 * sums in registers. Blocks are small, so that of those on a multiprocessor some wait for memory while others compute. Moves
 * 4 (NHWC + NPQC) bytes; what rectangles share comes from the L2 cache. */
#include "calculators/cuda/conv2d/depthwise_nhwc.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mbarrier.cuh"
#include "calculators/cuda/tma.cuh"

enum { SIDE = 3, GROUP = 32, LANES = GROUP / QUAD };

/* Rectangles, and the boxes under them. */
struct depthwise_boxes {
    int rows, columns, box_rows, box_columns;
    unsigned groups, across, down; /* rectangles of an image */
};

template <int STEP, int ACROSS, int DOWN>
static __global__ void depthwise_tma(const __grid_constant__ CUtensorMap map,
                                     const __grid_constant__ depthwise_nhwc<float> g,
                                     const __grid_constant__ depthwise_boxes b)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) float box[];
    __shared__ uint64_t here;
    unsigned block = blockIdx.x;
    const int first = static_cast<int>(block % b.groups) * GROUP;
    block /= b.groups;
    const int first_q = static_cast<int>(block % b.across) * b.columns;
    block /= b.across;
    const int first_p = static_cast<int>(block % b.down) * b.rows, image = static_cast<int>(block / b.down);
    const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&here));
    if (threadIdx.x == 0) {
        barrier_init(&here, 1);
        barriers_made();
    }
    __syncthreads();
    let_next_start();
    if (!g.ready) await_inputs();
    const int thread = static_cast<int>(threadIdx.x) / LANES, lane = static_cast<int>(threadIdx.x) % LANES,
              channel = first + lane * QUAD, strips = (b.columns + ACROSS - 1) / ACROSS, q = thread % strips * ACROSS,
              p = thread / strips * DOWN;
    vec<float, QUAD> own[SIDE * SIDE] = {}, shift = {};
    if (channel < g.channels) {
#pragma unroll
        for (int i = 0; i < SIDE * SIDE; i++) own[i] = read_weights<float, QUAD>(g, i, channel);
    }
    await_inputs();
    if (threadIdx.x == 0) {
        const image_place at = {first, first_q * STEP - g.window.padding_before[1],
                                first_p * STEP - g.window.padding_before[0], image};
        tma_expect(barrier, b.box_rows * b.box_columns * GROUP * static_cast<int>(sizeof(float)));
        tma_load_image(static_cast<uint32_t>(__cvta_generic_to_shared(box)), &map, at, barrier);
    }
    if (g.bias != nullptr && channel < g.channels) shift = read_vec<QUAD>(g.bias + channel, 0);
    __syncthreads();
    barrier_await(&here, 0);
    if (channel >= g.channels || p >= b.rows) return;

    vec<float, QUAD> sum[DOWN][ACROSS];
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
#pragma unroll
        for (int j = 0; j < ACROSS; j++) sum[i][j] = shift;
    }
    /* the last strips may read beyond the box, in shared memory that is there, for results that nobody wants */
    const float *from = box + (p * b.box_columns + q) * STEP * GROUP + lane * QUAD;
#pragma unroll
    for (int line = 0; line < (DOWN - 1) * STEP + SIDE; line++, from += b.box_columns * GROUP) {
        vec<float, QUAD> value[(ACROSS - 1) * STEP + SIDE];
#pragma unroll
        for (int c = 0; c < (ACROSS - 1) * STEP + SIDE; c++) value[c] = read_vec<QUAD>(from + c * GROUP, 0);
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            const int r = line - i * STEP;
            if (r < 0 || r >= SIDE) continue;
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
#pragma unroll
                for (int s = 0; s < SIDE; s++) {
#pragma unroll
                    for (int v = 0; v < QUAD; v++)
                        sum[i][j].at[v] += value[j * STEP + s].at[v] * own[r * SIDE + s].at[v];
                }
            }
        }
        if (line < SIDE - 1 || (line - SIDE + 1) % STEP != 0) continue;
        const int i = (line - SIDE + 1) / STEP;
        if (p + i >= b.rows || first_p + p + i >= static_cast<int>(g.out_height)) return;
#pragma unroll
        for (int j = 0; j < ACROSS; j++) {
            if (q + j < b.columns && first_q + q + j < g.out_width)
                write_pixel<true>(g, image, first_p + p + i, first_q + q + j, channel, sum[i][j]);
        }
    }
#endif
}

/* As even as can be: so many rectangles along the axis as there must be of `most`. */
static int part_of(int64_t length, int most)
{
    int64_t parts = (length + most - 1) / most;
    return static_cast<int>((length + parts - 1) / parts);
}

template <int STEP, int ACROSS, int DOWN>
static bool launch(const cuda_calculator *calculator, const depthwise_nhwc<float> &g, int most_rows, int most_columns)
{
    depthwise_boxes b;
    b.rows = part_of(g.out_height, most_rows);
    b.columns = part_of(g.out_width, most_columns);
    b.box_rows = (b.rows - 1) * STEP + SIDE;
    b.box_columns = (b.columns - 1) * STEP + SIDE;
    b.groups = static_cast<unsigned>((g.channels + GROUP - 1) / GROUP);
    b.across = static_cast<unsigned>((g.out_width + b.columns - 1) / b.columns);
    b.down = (g.out_height + b.rows - 1) / b.rows;
    const image_shape shape = {g.x,    g.batch, g.height, g.width, g.channels, {b.box_rows, b.box_columns},
                               {1, 1}, false,   GROUP};
    CUtensorMap map = {};
    if (!make_image_map(&map, shape)) return false;
    const int strips = (b.columns + ACROSS - 1) / ACROSS, lines = (b.rows + DOWN - 1) / DOWN;
    const int read_rows = (lines * DOWN - 1) * STEP + SIDE, past = (strips * ACROSS - b.columns) * STEP;
    const int shared = (read_rows * b.box_columns + past) * GROUP * static_cast<int>(sizeof(float));
    const unsigned threads = static_cast<unsigned>(LANES * strips * lines);
    auto kernel = depthwise_tma<STEP, ACROSS, DOWN>;
    if (shared + 1024 > calculator->shared_most || allow_shared(kernel, shared + 1024) != SDLF_OK) return false;
    launch_overlapped(calculator, kernel, dim3(static_cast<unsigned>(g.batch) * b.down * b.across * b.groups),
                      dim3(threads), shared, map, g, b);
    return true;
}

bool depthwise_tma_launch(const cuda_calculator *calculator, const depthwise_nhwc<float> &g)
{
    const sdlf_window2d &window = g.window;
    int64_t quads = static_cast<int64_t>(g.batch) * g.out_height * g.out_width * (g.channels / QUAD);
    bool suits = cuda_is_built_for(calculator, 90) && window.size[0] == SIDE && window.size[1] == SIDE &&
                 window.stride[0] == window.stride[1] && window.stride[0] <= 2 && window.dilation[0] == 1 &&
                 window.dilation[1] == 1 && quads >= static_cast<int64_t>(calculator->multiprocessors) * 1024;
    depthwise_nhwc<float> clipped = g;
    if (!suits || !make_clip(&clipped.activation)) return false;
    return window.stride[0] == 1 ? launch<1, 2, 7>(calculator, clipped, 7, 14)
                                 : launch<2, 1, 4>(calculator, clipped, 8, 7);
}
