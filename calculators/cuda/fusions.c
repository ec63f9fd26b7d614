/* SPDX-License-Identifier: MIT */
/* The fusions that the CUDA calculator supports. */
#include "calculators/cuda/conv2d/mbconv.h"
#include "calculators/cuda/slots.h"
#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/inverted_residual.h"

const sdlf_fused_slot fusions_cuda[] = {
    {&sdlf_inverted_residual_fusion,
     {.run = conv2d_mbconv_cuda,
      .supports = conv2d_mbconv_supports_cuda,
      .workspace = conv2d_mbconv_workspace_cuda,
      .prepared = conv2d_mbconv_prepared_cuda,
      .prepare = conv2d_mbconv_prepare_cuda}},
    {&sdlf_conv2d_pool_forward_fusion,
     {.run = conv2d_pool_forward_cuda,
      .channels_last = true,
      .mixed = true,
      .storage = true,
      .supports = conv2d_pool_forward_supports_cuda,
      .workspace = conv2d_pool_forward_workspace_cuda,
      .prepared = conv2d_pool_forward_prepared_cuda,
      .prepare = conv2d_pool_forward_prepare_cuda}},
    {&sdlf_conv2d_pool_backward_sgd_fusion,
     {.run = conv2d_relu_max_pool_backward_cuda,
      .supports = conv2d_pool_backward_supports_cuda,
      .workspace = conv2d_pool_backward_workspace_cuda}},
    {&sdlf_conv2d_pool_backward_fusion,
     {.run = conv2d_relu_max_pool_backward_cuda,
      .supports = conv2d_pool_backward_supports_cuda,
      .workspace = conv2d_pool_backward_workspace_cuda}},
    CUDA_GEMM_FUSION,
    {.fusion = NULL},
};
