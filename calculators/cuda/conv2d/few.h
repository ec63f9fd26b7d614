/* Convolutions of few channels, forward: the first layer of a network, and single filters (conv2d/few.cu). */
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

#ifdef __cplusplus
}
#endif
#endif
