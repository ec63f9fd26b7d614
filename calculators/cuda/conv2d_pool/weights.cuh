/* SPDX-License-Identifier: MIT */
/* What the kernels of the gradients of conv2d + ReLU + max-pool by weights and biases share: their operands, and the second
 * kernel, which adds the parts that blocks leave in the workspace. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_WEIGHTS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_WEIGHTS_CUH

#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

/* x, w and dy stand at different places in the kinds with and without update. */
struct pool_operands {
    sdlf_tensor x, w, dy, mask;
};

static inline pool_operands pool_operands_of(const sdlf_operation *op)
{
    if (op->kind == SDLF_CONV2D_RELU_MAX_POOL_BACKWARD) return {op->in[0], op->in[1], op->in[2], op->in[3]};
    return {op->in[0], op->out[0], op->in[1], op->in[2]};
}

/* The operation's outputs from the workspace's parts (blocks, K C R R + K) of dw, then db: blocks are added in order. */
sdlf_status cuda_conv2d_pool_epilogue(const cuda_calculator *calculator, const sdlf_operation *op, int blocks);

#endif
