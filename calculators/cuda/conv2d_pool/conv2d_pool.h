/* SPDX-License-Identifier: MIT */
/* conv2d + ReLU + max-pool: the convolution of the forward pass, and the parts of the backward pass, which
 * conv2d_pool/conv2d_pool.c calls in order. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_POOL_H
#define SDLF_CALCULATORS_CUDA_CONV2D_POOL_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The convolution with its ReLU, channels last, on the same operands; its output has no memory. */
sdlf_operation cuda_conv2d_of_pool(const sdlf_operation *op);

/* Compute dw and db, or update w and b by them, as the operation's fusion says. */
sdlf_status cuda_conv2d_pool_weights(sdlf_calculator *base, const sdlf_operation *op);
int64_t cuda_conv2d_pool_weights_workspace(const cuda_calculator *calculator, const sdlf_operation *op);
/* Bytes of shared memory of a block. */
int64_t cuda_conv2d_pool_weights_memory(const cuda_calculator *calculator, const sdlf_operation *op);

/* Compute dx from w, dy and mask. */
bool cuda_conv2d_pool_input_fits(const cuda_calculator *calculator, const sdlf_operation *op);
sdlf_status cuda_conv2d_pool_input(sdlf_calculator *base, const sdlf_operation *op);

/* The same on tensor cores, for small images; _suits: true if it is supported, and tensor cores are wanted. */
bool cuda_conv2d_pool_input_sliced_suits(const cuda_calculator *calculator, const sdlf_operation *op);
sdlf_status cuda_conv2d_pool_input_sliced(sdlf_calculator *base, const sdlf_operation *op);

#ifdef __cplusplus
}
#endif
#endif
