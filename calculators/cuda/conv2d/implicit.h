/* SPDX-License-Identifier: MIT */
/* Implicit GEMM: convolution as a matrix product whose operand B is never stored. A block computes a tile of the result
 * and gathers the windows that it needs straight from the image into shared memory.
 *
 * One description serves all three passes. With "rows" m, "columns" j and the sum over "depth" e:
 *
 *   forward          y[k, pixel]   = sum over (c,r,s)  of  w[k, (c,r,s)]     x[c, pixel shifted by (r,s)]
 *   backward input   dx[c, pixel]  = sum over (k,r,s)  of  w'[c, (k,r,s)]    dy[k, pixel shifted by (r,s)]
 *   backward weights dw[k,(c,r,s)] = sum over pixels   of  dy[k, pixel]      x[c, pixel shifted by (r,s)]
 *
 * The gathered number is at image + offset(e) + offset(j), and is 0 unless row(e) + row(j) and column(e) + column(j) lie in the
 * image: the formula is the same whichever of e and j is the pixel and whichever the tap.
 *
 * Backward input with a stride is cut into stride x stride phases: pixels with the same remainder by the stride meet the same
 * taps, at shifts that are whole numbers, so that each phase is a convolution without stride (some may have no tap at all). w'
 * are the weights with k and c exchanged and taps sorted by phase.
 *
 * The sum may be cut into `splits` parts, each in a block of its own; parts are left in the workspace and added in their order. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_H
#define SDLF_CALCULATORS_CUDA_CONV2D_IMPLICIT_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Words of the sum that a block holds at a time: numbers, or pairs of them where operands are of 16 bits. */
enum { IMPLICIT_DEPTH = 16 };

/* Rows and columns of the largest window, together: each has a bit that says where it leaves the image. */
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
    void *result;       /* y, dx, dw; or the parts, `result_count` numbers each */
    const void *bias, *residual;
    sdlf_activation activation; /* bias, residual and activation only where there is one part */
    bool weights;               /* backward weights */
    bool transposed;            /* backward input */
    bool wide;                  /* a may be read in steps of 4 numbers */
    int groups, splits;
    int rows, columns, depth; /* of a group; columns and depth of the largest phase */
    int row_tiles, column_tiles;
    int64_t a_row, a_group, a_image; /* steps of a in numbers: row, group, image (backward weights) */
    int64_t source_image, source_group, source_plane;
    int source_height, source_width;
    int64_t result_image, result_group, result_row, result_count;
    int result_width;
    /* the window, vertically and horizontally */
    int taps[2], padding[2], stride[2], dilation[2];
    int extent[2]; /* pixels: P Q; H W of dx in backward input */
    int phases[2]; /* 1, or the stride in backward input */
    int divisor[2],
        inverse[2]; /* of backward input: gcd of stride and dilation; (dilation / gcd)^-1 mod (stride / gcd) */
} cuda_implicit;

/* Is every size within what kernels count with: pixels, numbers of an image and weights of a filter up to 5e8? */
bool cuda_implicit_counts(const sdlf_operation *operation);
/* That, and a window that implicit GEMM takes? */
bool cuda_implicit_takes(const sdlf_operation *operation);
/* The product of an operation; whoever computes it sets row_tiles, column_tiles and splits. */
cuda_implicit cuda_implicit_of(const sdlf_operation *operation);
int64_t cuda_implicit_workspace(const cuda_implicit *problem, sdlf_dtype dtype);
/* Once splits are set: addresses; what is left to do where there are several parts. */
cuda_epilogue cuda_implicit_bind(cuda_implicit *problem, const sdlf_operation *operation);
/* What comes before the product (w') and after it (the sum of parts, db). */
sdlf_status cuda_implicit_begin(sdlf_calculator *calculator, const cuda_implicit *problem,
                                const sdlf_operation *operation);
sdlf_status cuda_implicit_end(sdlf_calculator *calculator, const cuda_implicit *problem,
                              const sdlf_operation *operation, const cuda_epilogue *epilogue);

/* Queue the product on one kind of cores; tile: of cuda_implicit_tiles (float64 has tile 2 alone). */
sdlf_status cuda_implicit_simt(sdlf_calculator *calculator, const cuda_implicit *problem, sdlf_dtype dtype, int tile);
sdlf_status cuda_implicit_tensor(sdlf_calculator *calculator, const cuda_implicit *problem,
                                 int tile); /* tf32, fp16, bf16 */

/* w' of backward input. */
sdlf_status cuda_implicit_exchange(sdlf_calculator *calculator, const cuda_implicit *problem, sdlf_dtype dtype,
                                   const void *w, void *exchanged);
/* y = act(sum of parts + bias + residual). */
sdlf_status cuda_implicit_epilogue(sdlf_calculator *calculator, const cuda_epilogue *epilogue, const void *parts,
                                   int splits);

#ifdef __cplusplus
}
#endif
#endif
