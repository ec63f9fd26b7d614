/* SPDX-License-Identifier: MIT */
/* How the tensor-core kernels (conv2d_pool/forward_first.cu, conv2d_pool/forward_sliced.cu) tile the batch: a tile is a whole image, or
 * some rows of windows of one image. A block loads the rows of x that its tiles need to shared memory, rounded and padded with zeros, and
 * makes a table with the offset there of each window's patch. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_BATCH_TILES_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_BATCH_TILES_CUH

#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/mma.cuh"

struct batch_tiles {
    int line, lines, zone; /* of a tile in shared memory: row of a channel; rows of a channel; elements in all */
    int tile_rows, tiles, tiles_each; /* rows of windows in a tile; tiles of an image; tiles that a block has at once */
    int tile_windows, windows;        /* of a tile; of all tiles of a block, rounded up to a multiple of a warp's */
    bool quads;                       /* four neighbouring windows are in one image, at a multiple of four */
};

/* `each` tiles of `channels` channels for a block; a warp computes `unit` windows at a time. */
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

/* Bytes of shared memory of a block: x and both tables. */
static inline int64_t batch_tiles_bytes(const batch_tiles &l)
{
    return (static_cast<int64_t>(l.tiles_each) * l.zone + 2 * l.windows) * 4;
}

/* Load `channels` channels of x from c0 on, of the block's tiles from `first` on; AHEAD rows of a warp are in flight. */
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

/* Fill the table: the offset in x of each window's corner. */
template <int THREADS>
static __device__ __forceinline__ void list_corners(const pool_geometry &g, const batch_tiles &l, int *corner)
{
    for (int w = threadIdx.x; w < l.windows; w += THREADS) {
        int row = w / g.out_width;
        corner[w] = row < l.tile_rows ? 2 * row * l.line + 2 * (w - row * g.out_width) : 0;
    }
}

#endif
