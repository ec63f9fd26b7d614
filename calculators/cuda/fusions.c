/* SPDX-License-Identifier: MIT */
/* The fusions that the CUDA calculator takes. */
#include "calculators/cuda/conv2d/mbconv.h"
#include "calculators/cuda/slots.h"
#include "calculators/fusions/inverted_residual.h"

const sdlf_fused_slot fusions_cuda[] = {
    {&sdlf_inverted_residual_fusion,
     {.run = conv2d_mbconv_cuda,
      .supports = conv2d_mbconv_supports_cuda,
      .workspace = conv2d_mbconv_workspace_cuda,
      .prepared = conv2d_mbconv_prepared_cuda,
      .prepare = conv2d_mbconv_prepare_cuda}},
    CUDA_GEMM_FUSION,
    {.fusion = NULL},
};
