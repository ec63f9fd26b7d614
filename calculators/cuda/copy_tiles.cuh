/* SPDX-License-Identifier: MIT */
/* Tiled transposition: copies whose innermost axis differs between x and y, such as transpositions and layout conversions. A block
 * moves a tile of 32 x 32 elements through shared memory, reading along x's innermost axis and writing along y's; rows of the tile
 * are padded by one element, which avoids bank conflicts. */
#ifndef SDLF_CALCULATORS_CUDA_COPY_TILES_CUH
#define SDLF_CALCULATORS_CUDA_COPY_TILES_CUH

#include "calculators/cuda/strided.cuh"

enum { TILE_SIDE = 32, TILE_LINES = 8 };

/* The innermost axes of x and of y, and all other axes. */
struct copy_tiling {
    int64_t along_x, along_y; /* elements along each */
    int64_t y_step, x_step;   /* y's stride along x's innermost axis, and x's stride along y's */
    int64_t tiles_x, tiles;   /* 32 x 32 tiles: along x's innermost axis, and in the whole plane of the two axes */
    strided<2> others;
    int64_t places;
};

/* Fill t; false if the copy is not a transposition that tiles suit. at: strides of x, then of y. */
static inline bool copy_tiling_of(copy_tiling &t, const strided<2> &at)
{
    int x_axis = -1, y_axis = -1;
    t = {};
    for (int axis = 0; axis < at.rank; axis++) {
        if (at.stride[0][axis] == 1) x_axis = axis;
        if (at.stride[1][axis] == 1) y_axis = axis;
    }
    if (x_axis < 0 || y_axis < 0 || x_axis == y_axis) return false;
    t.along_x = at.dim[x_axis];
    t.along_y = at.dim[y_axis];
    if (t.along_x < 8 || t.along_y < 8) return false; /* most of a tile would be empty */
    t.y_step = at.stride[1][x_axis];
    t.x_step = at.stride[0][y_axis];
    t.places = 1;
    for (int axis = 0; axis < at.rank; axis++) {
        if (axis == x_axis || axis == y_axis) continue;
        t.others.dim[t.others.rank] = at.dim[axis];
        for (int k = 0; k < 2; k++) t.others.stride[k][t.others.rank] = at.stride[k][axis];
        t.places *= at.dim[axis];
        t.others.rank++;
    }
    t.tiles_x = (t.along_x + TILE_SIDE - 1) / TILE_SIDE;
    t.tiles = t.tiles_x * ((t.along_y + TILE_SIDE - 1) / TILE_SIDE);
    return true;
}

/* From and To: unsigned types of one size, or floating types, in which case From is converted to To. */
template <typename From, typename To>
static __global__ void __launch_bounds__(TILE_SIDE *TILE_LINES) copy_tiles(const From *x, To *y, copy_tiling t)
{
    __shared__ From tile[TILE_SIDE][TILE_SIDE + 1];
    wait_and_launch_dependent_grids();
    for (int64_t block = blockIdx.x; block < t.tiles * t.places; block += gridDim.x) {
        int64_t place[2], index = block % t.tiles;
        int64_t u0 = index % t.tiles_x * TILE_SIDE, v0 = index / t.tiles_x * TILE_SIDE; /* along x, along y */
        strided_places(t.others, block / t.tiles, place);
        int64_t u = u0 + threadIdx.x;
#pragma unroll
        for (int line = threadIdx.y; line < TILE_SIDE; line += TILE_LINES) {
            int64_t v = v0 + line;
            if (u < t.along_x && v < t.along_y) tile[line][threadIdx.x] = x[place[0] + v * t.x_step + u];
        }
        __syncthreads();
        int64_t v = v0 + threadIdx.x;
#pragma unroll
        for (int line = threadIdx.y; line < TILE_SIDE; line += TILE_LINES) {
            int64_t w = u0 + line;
            if (w < t.along_x && v < t.along_y)
                y[place[1] + w * t.y_step + v] = static_cast<To>(tile[threadIdx.x][line]);
        }
        __syncthreads();
    }
}

template <typename From, typename To>
static void copy_tiles_launch(const cuda_calculator *calculator, const From *x, To *y, const copy_tiling &t)
{
    int64_t blocks = t.tiles * t.places, most = INT64_C(8) * calculator->multiprocessors * 8;
    launch_overlapped(calculator, copy_tiles<From, To>, static_cast<unsigned>(blocks < most ? blocks : most),
                      dim3(TILE_SIDE, TILE_LINES), 0, x, y, t);
}

#endif
