/* SPDX-License-Identifier: MIT */
/* NHWC (channels-last) kernels: in 16-bit storage, and in float32 in training (operations/kinds.h). The slots of the cuda calculator call them if
 * cuda_is_nhwc is true. batch_norm2d and elementwise kinds see images under other shapes, row-major. Operands begin at multiples of 16 bytes. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_H
#define SDLF_CALCULATORS_CUDA_NHWC_H

#include "calculators/cuda/engine/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type in which plans store activations, channels last, on compute capability 9.0: that of the math mode. None in inference where other
 * kernels are faster: with few images, and for small 1x1 convolutions. */
sdlf_dtype storage_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training);
/* For convolutions and pooling: true if these kernels compute it: 16 bits, weights channels last, or a gradient of channels-last images. */
bool cuda_is_nhwc(const sdlf_operation *operation);
/* For convolutions: the same, or channels-last images in tf32, if the engine is faster than the alternatives. */
bool conv2d_is_nhwc(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* Depthwise convolution of all three kinds (groups = C = K), C a multiple of 8; without the bias gradient. */
bool depthwise_supports_nhwc(const sdlf_operation *operation);
int64_t depthwise_workspace_nhwc(const sdlf_operation *operation);
/* prepared: weights (C,R,S) in the images' type; NULL: the operation's own weights. */
sdlf_status depthwise_nhwc(sdlf_calculator *calculator, const sdlf_operation *operation, const void *prepared);
/* All convolution kinds: depthwise, and all others by the engine (engine/conv2d.h). */
bool conv2d_supports_nhwc(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_workspace_nhwc(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_prepared_nhwc(const sdlf_operation *operation);
sdlf_kernel conv2d_nhwc, conv2d_prepare_nhwc;
/* True for a convolution that is not depthwise, followed by batch normalisation of its output: the convolution computes the statistics. */
bool conv2d_batch_norm2d_is_nhwc(const sdlf_operation *conv, const sdlf_operation *norm);
sdlf_status conv2d_batch_norm2d_nhwc(sdlf_calculator *calculator, const sdlf_operation *conv,
                                     const sdlf_operation *norm);
/* A convolution followed by 2 x 2 max-pooling to y, which its epilogue computes. pool: the window; y's address may be absent in the first. */
bool conv2d_max_pool_supports_nhwc(const sdlf_calculator *calculator, const sdlf_operation *conv,
                                   const sdlf_window2d *pool, const sdlf_tensor *y);
sdlf_status conv2d_max_pool_nhwc(sdlf_calculator *calculator, const sdlf_operation *conv, const sdlf_tensor *y);
/* db of conv2d_backward_weights: sums over dy. */
sdlf_kernel bias_gradient_nhwc;
int64_t bias_gradient_workspace_nhwc(const sdlf_operation *operation);

/* x (M,C), C a multiple of 8: in 16 bits, and in float32 if anything is fused, or if the operands happen to be aligned. */
bool batch_norm2d_is_nhwc(const sdlf_operation *operation);
bool batch_norm2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t batch_norm2d_workspace_nhwc(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool batch_norm2d_infer_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel batch_norm2d_forward_nhwc, batch_norm2d_backward_nhwc, batch_norm2d_infer_nhwc;
/* Where in the workspace a convolution writes its statistics; and batch normalisation from these, or, if `moments` is NULL, from its own. */
engine_bn_partials batch_norm2d_moments_nhwc(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status batch_norm2d_forward_of_nhwc(sdlf_calculator *calculator, const sdlf_operation *operation,
                                         const engine_bn_partials *moments);

/* Require a multiple of 8 elements; in pooling, of channels. */
bool binary_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel binary_nhwc_cuda;
bool elements_support_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
/* True if the same kernels can be used for float32: the addresses, known by now, happen to be aligned. */
bool elements_are_vectors(const sdlf_operation *operation);
sdlf_kernel add_nhwc, activation_forward_nhwc, activation_backward_nhwc;
bool pool2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t pool2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel pool2d_forward_nhwc, pool2d_backward_nhwc;
sdlf_kernel global_avg_pool2d_forward_nhwc, global_avg_pool2d_backward_nhwc;

#ifdef __cplusplus
}
#endif
#endif
