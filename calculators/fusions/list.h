/* SPDX-License-Identifier: MIT */
/* The fusions of this folder, which several calculators share: SDLF_SHARED_FUSION(fusion), which whoever includes it
 * defines first. No include guard: it is read more than once. */
SDLF_SHARED_FUSION(sdlf_inverted_residual_fusion)
SDLF_SHARED_FUSION(sdlf_gemm_backward_sgd_fusion)
SDLF_SHARED_FUSION(sdlf_conv2d_pool_forward_fusion)
SDLF_SHARED_FUSION(sdlf_conv2d_pool_backward_sgd_fusion)
SDLF_SHARED_FUSION(sdlf_conv2d_pool_backward_fusion)
