/* SPDX-License-Identifier: MIT */
/* Implicit GEMM: convolution as a GEMM whose operand B, the im2col matrix, is never stored. A block computes a tile of
 * the result and gathers the windows that it needs from the image straight into shared memory.
 *
 * One description serves all three passes. With rows m (GEMM M), columns j (GEMM N) and depth e (GEMM K):
 *
 *   forward          y[k, pixel]   = sum over (c,r,s)  of  w[k, (c,r,s)]     x[c, pixel shifted by (r,s)]
 *   backward input   dx[c, pixel]  = sum over (k,r,s)  of  w'[c, (k,r,s)]    dy[k, pixel shifted by (r,s)]
 *   backward weights dw[k,(c,r,s)] = sum over pixels   of  dy[k, pixel]      x[c, pixel shifted by (r,s)]
 *
 * The gathered element is at image + offset(e) + offset(j), and is 0 unless row(e) + row(j) and column(e) + column(j)
 * are in the image: the formula is the same whichever of e and j is the pixel and whichever the tap.
 *
 * Backward input (dgrad) with a stride is divided into stride x stride phases: pixels with the same remainder by the
 * stride use the same taps, at integer shifts, so that each phase is a convolution with stride 1 (some may have no
 * tap). w' are the weights with k and c exchanged and taps sorted by phase.
 *
 * Split-K cuts the depth into `splits` parts, one a block; partial sums go to the workspace and are added in order. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_H
#define SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 32-bit words along K that a block has in shared memory at a time: an element each, or two 16-bit operands. */
enum { IMPLICIT_DEPTH = 16 };

/* R + S of the largest window: each row and column has a bit that says whether it is outside the image. */
enum { IMPLICIT_SIDES = 31 };

typedef struct cuda_implicit_tile {
    int rows, columns;
} cuda_implicit_tile;

/* In the order of the tile argument below. */
enum { IMPLICIT_TILES = 4 };
extern const cuda_implicit_tile cuda_implicit_tiles[IMPLICIT_TILES];

typedef struct cuda_implicit {
    const void *a;      /* w, w' or dy */
    const void *source; /* the image that is gathered: x, or dy in backward input */
    void *result;       /* y, dx, dw; or the partial sums, `result_count` elements each */
    const void *bias, *residual;
    sdlf_activation activation; /* bias, residual and activation are applied here only with one split */
    bool weights;               /* backward weights */
    bool transposed;            /* backward input */
    bool wide;                  /* a may be loaded 4 elements at a time */
    int groups, splits;
    int rows, columns, depth; /* of a group; columns and depth of the largest phase */
    int row_tiles, column_tiles;
    int64_t a_row, a_group, a_image; /* strides of a in elements: row, group, image (backward weights) */
    int64_t source_image, source_group, source_plane;
    int source_height, source_width;
    int64_t result_image, result_group, result_row, result_count;
    int result_width;
    /* The window, vertically and horizontally. */
    int taps[2], padding[2], stride[2], dilation[2];
    int extent[2]; /* pixels: P Q; H W of dx in backward input */
    int phases[2]; /* 1, or the stride in backward input */
    int divisor[2],
        inverse[2]; /* of backward input: gcd of stride and dilation; (dilation / gcd)^-1 mod (stride / gcd) */
} cuda_implicit;

/* True if every size fits the kernels' indices: pixels, elements of an image and weights of a filter up to 5e8. */
bool cuda_implicit_counts(const sdlf_operation *operation);
/* True if it does, and implicit GEMM supports the window. */
bool cuda_implicit_takes(const sdlf_operation *operation);
/* The GEMM of an operation; the caller then sets row_tiles, column_tiles and splits. */
cuda_implicit cuda_implicit_of(const sdlf_operation *operation);
int64_t cuda_implicit_workspace(const cuda_implicit *problem, sdlf_dtype dtype);
/* Once splits are set: fill in addresses. Returns the epilogue of the GEMM, to be run after it with several splits. */
cuda_epilogue cuda_implicit_bind(cuda_implicit *problem, const sdlf_operation *operation);
/* What runs before the GEMM (making w') and after it (adding partial sums, db). */
sdlf_status cuda_implicit_begin(sdlf_calculator *calculator, const cuda_implicit *problem,
                                const sdlf_operation *operation);
sdlf_status cuda_implicit_end(sdlf_calculator *calculator, const cuda_implicit *problem,
                              const sdlf_operation *operation, const cuda_epilogue *epilogue);

/* Launch the GEMM on ordinary or on tensor cores; tile: an index of cuda_implicit_tiles (float64: only tile 2). */
sdlf_status cuda_implicit_simt(sdlf_calculator *calculator, const cuda_implicit *problem, sdlf_dtype dtype, int tile);
sdlf_status cuda_implicit_tensor(sdlf_calculator *calculator, const cuda_implicit *problem,
                                 int tile); /* tf32, fp16, bf16 */

/* Make w' of backward input. */
sdlf_status cuda_implicit_exchange(sdlf_calculator *calculator, const cuda_implicit *problem, sdlf_dtype dtype,
                                   const void *w, void *exchanged);
/* y = act(sum of the partial sums + bias + residual). */
sdlf_status cuda_implicit_epilogue(sdlf_calculator *calculator, const cuda_epilogue *epilogue, const void *parts,
                                   int splits);

#ifdef __cplusplus
}
#endif
#endif
