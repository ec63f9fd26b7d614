/* SPDX-License-Identifier: MIT */
/* Stem convolutions, forward: few input channels, as in the first layer of a network, and few filters. */
#ifndef SDLF_CALCULATORS_CUDA_CONV2D_STEM_H
#define SDLF_CALCULATORS_CUDA_CONV2D_STEM_H

#include "calculators/cuda/conv2d/conv2d.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Square windows of 3, 5 or 7, stride 1 or 2 (3, 5 and strides 1 to 3 for up to STEM_FILTERS filters); no dilation, one
 * group; up to STEM_CHANNELS channels, or as many as fit shared memory. */
enum { STEM_FILTERS = 3, STEM_CHANNELS = 16 };
bool cuda_stem_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_stem_cuda;

/* The kernels: many filters (conv2d/stem_channels.cu), where the tile fits shared memory; up to STEM_FILTERS
 * (conv2d/stem_filters.cu); 3x3 windows over up to 3 channels in modes with tensor cores (conv2d/stem_warps.cu). */
sdlf_kernel conv2d_stem_channels_cuda, conv2d_stem_filters_cuda;
sdlf_kernel conv2d_stem_warps_cuda;
bool cuda_stem_warps_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool cuda_stem_channels_fit(const sdlf_calculator *calculator, const cuda_conv2d *g, sdlf_dtype dtype);

/* The same with y channels last and x in either layout (conv2d/stem_nhwc.cu): 3x3, stride 1 or 2, up to
 * STEM_TENSOR_CHANNELS channels, filters a multiple of 4, float32, in modes with tensor cores. */
enum { STEM_LAST_SIDE = 3, STEM_TENSOR_CHANNELS = 3 };
bool cuda_stem_tensor_takes(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t cuda_stem_tensor_prepared(const sdlf_operation *operation);
sdlf_kernel conv2d_stem_tensor_cuda, conv2d_stem_tensor_prepare_cuda;

#ifdef __cplusplus
}
#endif
#endif
