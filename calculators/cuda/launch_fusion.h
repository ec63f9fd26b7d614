/* SPDX-License-Identifier: MIT */
/* Launch fusion: consecutive operations in fewer launches than one for each (sdlf_calculator_class.run_together). */
#ifndef SDLF_CALCULATORS_CUDA_LAUNCH_FUSION_H
#define SDLF_CALCULATORS_CUDA_LAUNCH_FUSION_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

sdlf_status run_fused_cuda(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count, int *done);

/* next_batch, and the gather_batch of uint8 that reads its indices, without augmentation, with one mean and scale. */
sdlf_status cuda_draw_batch(sdlf_calculator *calculator, const sdlf_operation *next, const sdlf_operation *gather);

/* The number of operations, from the first on, that are copies of float32 tensors to one 16-bit type and that one launch can convert;
 * and that launch. */
int cuda_count_conversions(const sdlf_operation *const *operations, int count);
sdlf_status cuda_convert_many(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count);

/* sgd_update, adam_update or rmsprop_update of `count` parameters, which differ only in their tensors and the decay. */
sdlf_status cuda_update_many(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count);

/* check_finite of `count` tensors with one result. */
sdlf_status cuda_check_finite_many(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count);

#ifdef __cplusplus
}
#endif
#endif
