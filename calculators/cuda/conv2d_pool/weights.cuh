/* SPDX-License-Identifier: MIT */
/* What the kernels of the gradients of conv2d + ReLU + max-pool by weights and biases share: the second kernel, which
 * adds the parts that blocks leave in the workspace. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_WEIGHTS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_WEIGHTS_CUH

#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

/* The operation's outputs from the workspace's parts (blocks, K C R R + K) of dw, then db: blocks are added in order. */
sdlf_status cuda_conv2d_pool_epilogue(const cuda_calculator *calculator, const sdlf_operation *op, int blocks);

#endif
