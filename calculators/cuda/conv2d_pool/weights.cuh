/* SPDX-License-Identifier: MIT */
/* What the kernels of the weight and bias gradients of conv2d + ReLU + max-pool share: the second kernel, which adds
 * the partial sums that blocks store in the workspace. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_WEIGHTS_CUH
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_WEIGHTS_CUH

#include "calculators/cuda/conv2d_pool/conv2d_pool.cuh"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

/* Compute the outputs from the workspace's partial sums (blocks, K C R R + K), dw then db, added in blocks' order. */
sdlf_status cuda_conv2d_pool_epilogue(const cuda_calculator *calculator, const sdlf_operation *op, int blocks);

#endif
