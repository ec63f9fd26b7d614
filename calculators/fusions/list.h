/* SPDX-License-Identifier: MIT */
/* The fusions of this folder, which several calculators share: an X-macro list; define SDLF_SHARED_FUSION(fusion)
 * before including it. No include guard: it is included more than once. */
SDLF_SHARED_FUSION(sdlf_inverted_residual_fusion)
SDLF_SHARED_FUSION(sdlf_gemm_backward_sgd_fusion)
SDLF_SHARED_FUSION(sdlf_conv2d_pool_forward_fusion)
SDLF_SHARED_FUSION(sdlf_conv2d_pool_backward_sgd_fusion)
SDLF_SHARED_FUSION(sdlf_conv2d_pool_backward_fusion)
