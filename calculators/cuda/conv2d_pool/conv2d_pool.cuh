/* SPDX-License-Identifier: MIT */
/* What the kernels of conv2d + ReLU + 2x2 max-pool share: 3x3 and 5x5 convolutions with stride 1, one group, as in networks
 * for MNIST. A window is a 2x2 square of convolution outputs and one pooled output; windows are linearised over the batch. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_CUH

#include <type_traits>

#include "calculators/cuda/kernels.cuh"
#include "calculators/fusions/conv2d_pool.h"

struct pool_geometry {
    int batch, channels, height, width, filters, out_height, out_width; /* out: pooled */
    int top, left;
    bool first; /* of tied maxima only the first counts */
};

/* Geometry from x (N,C,H,W) and the pooled y (N,K,P,Q), or their gradients. */
static inline pool_geometry pool_geometry_of(const sdlf_operation *op, const sdlf_tensor &x, const sdlf_tensor &y)
{
    pool_geometry g;
    g.batch = (int)x.shape.dim[0];
    g.channels = (int)x.shape.dim[1];
    g.height = (int)x.shape.dim[2];
    g.width = (int)x.shape.dim[3];
    g.filters = (int)y.shape.dim[1];
    g.out_height = (int)y.shape.dim[2];
    g.out_width = (int)y.shape.dim[3];
    g.top = conv2d_pool_options_of(op)->window.padding_before[0];
    g.left = conv2d_pool_options_of(op)->window.padding_before[1];
    g.first = conv2d_pool_options_of(op)->ties == SDLF_TIES_FIRST;
    return g;
}

static inline pool_geometry pool_backward_geometry_of(const sdlf_operation *op)
{
    const conv2d_pool_operands operands = conv2d_pool_operands_of(op);
    return pool_geometry_of(op, *operands.x, *operands.dy);
}

/* A pixel of a plane; 0 outside. */
template <typename T>
static __device__ __forceinline__ T pool_pixel(const T *plane, const pool_geometry &g, int row, int column)
{
    bool inside = row >= 0 && row < g.height && column >= 0 && column < g.width;
    return inside ? plane[row * g.width + column] : T(0);
}

/* Rows of windows in the tile of a block: all rows of the image, or as few as give the device three blocks for two
 * multiprocessors, where `others` blocks share a tile. At most `most` windows, no fewer than `least`, and a multiple of
 * four where that is possible. */
static inline int pool_tile_rows(const pool_geometry &g, int64_t others, int least, int most, int multiprocessors)
{
    int best = 0;
    for (int rows = g.out_height; rows >= 1; rows--) {
        int windows = rows * g.out_width, tiles = (g.out_height + rows - 1) / rows;
        if (rows > 1 && (windows > most || (g.out_height * g.out_width % 4 == 0 && windows % 4 != 0))) continue;
        if (best > 0 && windows < least) break;
        best = rows;
        if (2 * g.batch * tiles * others >= 3 * static_cast<int64_t>(multiprocessors)) break;
    }
    return best;
}

/* Call `function` with the filter's side as a constant: 3 or 5. */
template <typename Function> static void with_side(int side, Function function)
{
    if (side == 3)
        function(std::integral_constant<int, 3>());
    else
        function(std::integral_constant<int, 5>());
}

/* True if there is something to do, and sizes fit int and a grid's dimensions, as the kernels count them. y is pooled. */
static inline bool pool_counts_fit(const sdlf_tensor &x, const sdlf_tensor &w, const sdlf_tensor &y)
{
    for (int i = 1; i < 4; i++) {
        if (x.shape.dim[i] > 32767 || y.shape.dim[i] > 32767) return false;
    }
    const sdlf_tensor *all[] = {&x, &w, &y};
    for (const sdlf_tensor *tensor : all) {
        int64_t count = sdlf_tensor_count(tensor);
        if (count < 1 || count > INT32_MAX - 1024) return false; /* a grid's last block may reach past the end */
    }
    return true;
}

#endif
