/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: a fully connected layer's backward pass and update. x (N,I), dy (N,U), w and v (U,I).
 *
 *   dx = (dy w) f'(x);   v = momentum v + dy^T x + decay w;   w -= rate v;   the same for the biases with the sum of dy
 *
 * Large batches (gemm/backward_sgd.c) are bound by the products, which cuBLAS makes. Small ones are bound by the way
 * of w and v through memory, and one pass moves them once: a block owns some columns i and walks down its rows u (all, or a
 * part) in tiles. Of each tile it makes g = dy^T x, with x's columns kept all the way, and from g the new v and w; and it adds
 * the tile's part to dx (N, its columns). So w and v are read once and written once, 16 U I bytes, and nothing else of that
 * size moves: at 4 TB/s 26 us for U = 1024, I = 6272, less what stays in the L2 cache. dy is read by every block, from L2.
 * Tiles arrive by asynchronous copies, ahead of their use. The order of every sum depends on the shapes and the device alone. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_H
#define SDLF_CALCULATORS_CUDA_GEMM_BACKWARD_SGD_H

#include "calculators/cuda/cuda.h"
#include "calculators/fusions/gemm_backward_sgd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ONE_PASS_MOST_ROWS = 128, NARROW_MOST_UNITS = 16 };

/* One pass, with a velocity and not by Nesterov's rule: operands rounded as the math mode says, on tensor cores; or float32, by
 * FMAs, in strips of 48 columns (wide) or 16. */
sdlf_status cuda_backward_sgd_tensor(sdlf_calculator *base, const sdlf_operation *op);
sdlf_status cuda_backward_sgd_fp32(sdlf_calculator *base, const sdlf_operation *op, bool wide);

/* A last layer's few units, U up to NARROW_MOST_UNITS, with any batch and rule. */
sdlf_status cuda_backward_sgd_narrow(sdlf_calculator *base, const sdlf_operation *op);

/* Large batches, with a velocity and not by Nesterov's rule: by products. */
sdlf_status cuda_products(sdlf_calculator *base, const sdlf_operation *op);
int64_t cuda_products_workspace(const cuda_calculator *calculator, const sdlf_operation *op);

/* What products leave over, once v = momentum v + g: v += decay w; w -= rate v; and the biases, with their gradient. */
sdlf_status cuda_follow_velocity(sdlf_calculator *base, const sdlf_operation *op);
sdlf_status cuda_move_biases(sdlf_calculator *base, const sdlf_operation *op);

#ifdef __cplusplus
}
#endif
#endif
