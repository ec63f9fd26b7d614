/* SPDX-License-Identifier: MIT */
/* The kernels of an instance. Contracts: <sdlf/operation.h>; the formulas' files are named after them.
 *
 * Names that leave a file of this folder end in _cpu; CMake gives each instance its own (see ../CMakeLists.txt). */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_KERNELS_H
#define SDLF_CALCULATORS_CPU_KERNELS_KERNELS_H

#include "calculators/cpu/kernels/element.h"

typedef int64_t workspace_function(const sdlf_calculator *calculator, const sdlf_operation *operation);

typedef bool supports_function(const sdlf_calculator *calculator, const sdlf_operation *operation);

extern const cpu_instance instance_cpu;

sdlf_kernel gather_batch_cpu;
sdlf_kernel gemm_cpu, gemm_prepare_cpu, gemm_backward_sgd_cpu, matmul_cpu;
workspace_function gemm_workspace_cpu, gemm_prepared_cpu, gemm_backward_sgd_workspace_cpu, matmul_workspace_cpu;
supports_function gemm_supports_cpu, gemm_backward_sgd_supports_cpu;
sdlf_kernel spmm_csr_cpu;
workspace_function spmm_csr_workspace_cpu;
sdlf_kernel reduce_cpu, add_cpu;
workspace_function reduce_workspace_cpu;
sdlf_kernel conv2d_prepare_cpu, conv2d_forward_cpu, conv2d_backward_input_prepare_cpu, conv2d_backward_input_cpu,
    conv2d_backward_weights_cpu;
supports_function conv2d_relu_max_pool_forward_supports_cpu;
int conv2d_automatic_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation);
supports_function conv2d_likes_channels_last_cpu, conv2d_backward_input_likes_channels_last_cpu,
    conv2d_backward_weights_likes_channels_last_cpu;
sdlf_kernel conv2d_inverted_cpu, conv2d_inverted_prepare_cpu;
supports_function conv2d_inverted_supports_cpu;
workspace_function conv2d_inverted_workspace_cpu, conv2d_inverted_prepared_cpu;
supports_function conv2d_forward_supports_cpu, conv2d_backward_input_supports_cpu, conv2d_backward_weights_supports_cpu;
workspace_function conv2d_prepared_cpu, conv2d_backward_input_prepared_cpu, conv2d_forward_workspace_cpu,
    conv2d_backward_input_workspace_cpu, conv2d_backward_weights_workspace_cpu;
sdlf_kernel conv2d_relu_max_pool_forward_cpu, conv2d_relu_max_pool_backward_cpu;
workspace_function conv2d_relu_max_pool_forward_workspace_cpu, conv2d_relu_max_pool_backward_workspace_cpu;
sdlf_kernel max_pool2d_forward_cpu, max_pool2d_backward_cpu;
workspace_function max_pool2d_forward_workspace_cpu;
sdlf_kernel avg_pool2d_forward_cpu, avg_pool2d_backward_cpu;
workspace_function avg_pool2d_forward_workspace_cpu;
sdlf_kernel global_avg_pool2d_forward_cpu, global_avg_pool2d_backward_cpu;
workspace_function global_avg_pool2d_forward_workspace_cpu;
sdlf_kernel activation_forward_cpu, activation_backward_cpu, dropout_cpu;
sdlf_kernel binary_cpu, binary_backward_cpu, arg_reduce_cpu, gather_backward_cpu, top_k_cpu;
sdlf_kernel resample_cpu, resample_backward_cpu, normalize_forward_cpu, normalize_backward_cpu;
workspace_function resample_workspace_cpu;
sdlf_kernel batch_norm2d_forward_cpu, batch_norm2d_infer_cpu, batch_norm2d_backward_cpu;
supports_function batch_norm2d_supports_cpu;
workspace_function batch_norm2d_workspace_cpu;
sdlf_kernel softmax_forward_cpu, softmax_backward_cpu, log_softmax_forward_cpu, log_softmax_backward_cpu;
workspace_function softmax_workspace_cpu;
sdlf_kernel softmax_cross_entropy_forward_cpu, softmax_cross_entropy_backward_cpu;
workspace_function softmax_cross_entropy_forward_workspace_cpu;
#if SDLF_VECTOR_BYTES / SDLF_LANES == 4
sdlf_kernel quantize_cpu, dequantize_cpu, quantized_add_cpu, quantized_pool2d_cpu;
sdlf_kernel quantized_conv2d_cpu, quantized_conv2d_prepare_cpu;
workspace_function quantized_conv2d_workspace_cpu, quantized_conv2d_prepared_cpu;
sdlf_kernel integer_matmul_cpu, integer_matmul_prepare_cpu;
workspace_function integer_matmul_workspace_cpu, integer_matmul_prepared_cpu;
sdlf_kernel dynamic_quantize_cpu;
workspace_function dynamic_quantize_workspace_cpu;
#endif
sdlf_kernel sgd_update_cpu, adam_update_cpu, rmsprop_update_cpu, clip_scale_cpu;
sdlf_kernel check_finite_cpu, loss_scale_update_cpu;

#endif
