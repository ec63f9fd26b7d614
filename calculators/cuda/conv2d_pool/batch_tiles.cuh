/* SPDX-License-Identifier: MIT */
/* How the tensor-core kernels (conv2d_pool/forward_first.cu, conv2d_pool/forward_sliced.cu) cut the batch:
 * tiles are whole images, or rows of windows of one image; a block loads the rows of x that some tiles touch to shared memory,
 * with zeros around them and operands rounded, and a table that says of each of its windows where its patch begins there. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_BATCH_TILES_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_BATCH_TILES_CUH

#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/mma.cuh"

struct batch_tiles {
    int line, lines, zone;            /* of a tile in shared memory: row of a channel, rows of a channel, all */
    int tile_rows, tiles, tiles_each; /* rows of windows in a tile; tiles of an image; that a block takes at once */
    int tile_windows, windows; /* of a tile; of those a block takes at once, up to a multiple of what a warp takes */
    bool quads;                /* four neighbouring windows lie in one image, at a multiple of four */
};

/* `each` tiles of `channels` channels; a warp takes `unit` windows. */
static inline batch_tiles batch_tiles_of(const pool_geometry &g, int side, int channels, int line, int rows, int each,
                                         int unit)
{
    batch_tiles l = {.line = line, .lines = 2 * rows + side - 1};
    l.zone = (channels * l.line * l.lines + 3) / 4 * 4;
    l.tile_rows = rows;
    l.tiles = (g.out_height + rows - 1) / rows;
    l.tiles_each = each;
    l.tile_windows = rows * g.out_width;
    l.windows = (each * l.tile_windows + unit - 1) / unit * unit;
    l.quads = g.out_height * g.out_width % 4 == 0 && l.tile_windows % 4 == 0;
    return l;
}

/* Shared memory of a block: x and both tables. */
static inline int64_t batch_tiles_bytes(const batch_tiles &l)
{
    return (static_cast<int64_t>(l.tiles_each) * l.zone + 2 * l.windows) * 4;
}

/* `channels` of x, from channel c0 on, of the block's tiles from `first` on. AHEAD lines of a warp are on their way at a time. */
template <sdlf_math MATH, int THREADS, int AHEAD>
static __device__ __forceinline__ void load_tiles(const float *__restrict__ from, const pool_geometry &g,
                                                  const batch_tiles &l, int first, int c0, int channels, uint32_t *x)
{
    const int warps = THREADS / 32;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = first / l.tiles, part = first % l.tiles;
    int count = channels * l.lines;
    for (int i = 0; i < l.tiles_each; i++) {
        int top = 2 * part * l.tile_rows - g.top;
        const float *image = from + static_cast<int64_t>(n * g.channels + c0) * g.height * g.width;
        for (int column = lane; column < l.line; column += 32) {
            int j = column - g.left;
            bool inside = n < g.batch && j >= 0 && j < g.width;
            for (int start = warp; start < count; start += AHEAD * warps) {
                float value[AHEAD];
#pragma unroll
                for (int a = 0; a < AHEAD; a++) {
                    int line = start + a * warps, c = channels == 1 ? 0 : line / l.lines,
                        row = top + line - c * l.lines;
                    bool valid = inside && line < count && row >= 0 && row < g.height;
                    value[a] = valid ? image[(c * g.height + row) * g.width + j] : 0.0f;
                }
#pragma unroll
                for (int a = 0; a < AHEAD; a++) {
                    int line = start + a * warps;
                    if (line < count) x[i * l.zone + line * l.line + column] = operand_bits<MATH>(value[a]);
                }
            }
        }
        if (++part == l.tiles) {
            part = 0;
            n++;
        }
    }
}

/* Of each window of a tile its corner in x. */
template <int THREADS>
static __device__ __forceinline__ void list_corners(const pool_geometry &g, const batch_tiles &l, int *corner)
{
    for (int w = threadIdx.x; w < l.windows; w += THREADS) {
        int row = w / g.out_width;
        corner[w] = row < l.tile_rows ? 2 * row * l.line + 2 * (w - row * g.out_width) : 0;
    }
}

#endif
