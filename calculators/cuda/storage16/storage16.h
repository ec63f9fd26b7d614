/* Kernels for operands in 16-bit storage (operations/kinds.h): what the slots of the cuda calculator call where
 * sdlf_operation_storage says so. Images are channels last; batch_norm2d and element-by-element kinds see them under other shapes, row-major. */
#ifndef SDLF_CALCULATORS_CUDA_STORAGE16_H
#define SDLF_CALCULATORS_CUDA_STORAGE16_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type that plans for training store activations as: bfloat16 in bf16 on compute capability 9.0, else none. */
sdlf_dtype storage_cuda(const sdlf_calculator *calculator);

/* Depthwise convolution of all three kinds (groups = C = K), C a multiple of 8; without the bias's gradient. */
bool depthwise_supports_storage16(const sdlf_operation *operation);
int64_t depthwise_workspace_storage16(const sdlf_operation *operation);
sdlf_kernel depthwise_storage16;
/* All convolution kinds: depthwise, or of one group by the engine (engine/conv2d.h). */
bool conv2d_supports_storage16(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_workspace_storage16(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_storage16;
/* db of conv2d_backward_weights: sums of dy. */
sdlf_kernel bias_gradient_storage16;
int64_t bias_gradient_workspace_storage16(const sdlf_operation *operation);

/* x (M,C), C a multiple of 8. */
bool batch_norm2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t batch_norm2d_workspace_storage16(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel batch_norm2d_forward_storage16, batch_norm2d_backward_storage16;

/* A multiple of 8 elements, of channels in pooling. */
bool elements_support_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel add_storage16, activation_forward_storage16, activation_backward_storage16;
bool pool2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t pool2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel pool2d_forward_storage16, pool2d_backward_storage16;
sdlf_kernel global_avg_pool2d_forward_storage16, global_avg_pool2d_backward_storage16;

#ifdef __cplusplus
}
#endif
#endif
