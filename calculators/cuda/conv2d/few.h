/* SPDX-License-Identifier: MIT */
/* Convolutions of few channels, forward: the first layer of a network, and single filters. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_FEW_H
#define SDLF_CALCULATORS_CUDA_CONV2D_FEW_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Square windows of 3, 5 or 7, stride 1 or 2 (3, 5 and strides 1 to 3 for up to FEW_FILTERS filters); no dilation, one group; as many
 * channels as fit. */
enum { FEW_FILTERS = 3, FEW_CHANNELS = 16 };
bool cuda_few_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_few_cuda;

/* What it is made of: many filters (conv2d/few_channels.cu), where shared memory has room for the block, and up to FEW_FILTERS
 * (conv2d/few_filters.cu); 3x3 windows over up to 3 channels in modes with tensor cores (conv2d/few_warps.cu). */
sdlf_kernel conv2d_few_channels_cuda, conv2d_few_filters_cuda;
sdlf_kernel conv2d_few_warps_cuda;
bool cuda_few_warps_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool cuda_few_channels_fit(const sdlf_calculator *calculator, const cuda_conv2d *g, sdlf_dtype dtype);

/* The same over channels that lie last, x row-major or channels last (conv2d/few_tensor.cu): 3x3, stride 1 or 2, up to FEW_TENSOR_CHANNELS
 * channels, filters a multiple of 4, float32, in modes with tensor cores. */
enum { FEW_LAST_SIDE = 3, FEW_TENSOR_CHANNELS = 3 };
bool cuda_few_tensor_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_few_tensor_prepared(const sdlf_operation *operation);
sdlf_kernel conv2d_few_tensor_cuda, conv2d_few_tensor_prepare_cuda;

#ifdef __cplusplus
}
#endif
#endif
