/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: a fully connected layer's backward pass fused with the SGD update. x (N,I), dy (N,U), w and v (U,I).
 *
 * dx = (dy w) f'(x); v = momentum v + dy^T x + decay w; w -= rate v; the same for the biases with the sum of dy
 *
 * Large batches (gemm/backward_sgd.c) are bound by the GEMMs, which cuBLAS computes. Small ones are bound by the memory traffic of
 * w and v, and a single pass moves these once: a block owns some columns i and iterates over its rows u (all, or a part) in tiles.
 * For each tile it computes g = dy^T x, with x's columns kept on chip throughout, and from g the new v and w; and it accumulates
 * the tile's contribution to dx (N, its columns). So w and v are read once and written once, 16 U I bytes, and nothing else of
 * that size is moved: at 4 TB/s 26 us for U = 1024, I = 6272, less what stays in the L2 cache. Every block reads dy, from L2.
 * Tiles are loaded ahead of their use by cp.async. The order of every sum depends only on the shapes and the device. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_H
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_H

#include "calculators/cuda/cuda.h"
#include "calculators/fusions/gemm_backward_sgd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ONE_PASS_MOST_ROWS = 128, NARROW_MOST_UNITS = 16 };

/* One pass; requires a velocity, and no Nesterov momentum: on Tensor Cores, with operands rounded as the math mode says; or in
 * float32 with FMAs, in strips of 48 columns (wide) or 16. */
sdlf_status cuda_backward_sgd_tensor(sdlf_calculator *base, const sdlf_operation *op);
sdlf_status cuda_backward_sgd_fp32(sdlf_calculator *base, const sdlf_operation *op, bool wide);

/* Last layers with few units, U up to NARROW_MOST_UNITS, with any batch and rule. */
sdlf_status cuda_backward_sgd_narrow(sdlf_calculator *base, const sdlf_operation *op);

/* Large batches, and x, dy and dx in 16-bit storage; requires a velocity, and no Nesterov momentum: by cuBLAS GEMMs. */
sdlf_status cuda_products(sdlf_calculator *base, const sdlf_operation *op);
int64_t cuda_products_workspace(const cuda_calculator *calculator, const sdlf_operation *op);

/* The rest of the update after the GEMMs have computed v = momentum v + g: v += decay w; w -= rate v; and the biases, with their gradient.
 * workspace: cuda_move_biases_workspace bytes at a multiple of 16; or NULL, which takes longer for many rows. */
sdlf_status cuda_follow_velocity(sdlf_calculator *base, const sdlf_operation *op);
sdlf_status cuda_move_biases(sdlf_calculator *base, const sdlf_operation *op, void *workspace);
int64_t cuda_move_biases_workspace(const cuda_calculator *calculator, const sdlf_operation *op);

#ifdef __cplusplus
}
#endif
#endif
