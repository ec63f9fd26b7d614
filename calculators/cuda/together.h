/* Operations that follow one another, in fewer launches than one for each (sdlf_calculator_class.run_together). */
#ifndef SDLF_CALCULATORS_CUDA_TOGETHER_H
#define SDLF_CALCULATORS_CUDA_TOGETHER_H

#include "calculators/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

sdlf_status run_together_cuda(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count,
                              int *done);

/* next_batch, and gather_batch of uint8 by its indices, not augmented, with one mean and scale. */
sdlf_status cuda_draw_batch(sdlf_calculator *calculator, const sdlf_operation *next, const sdlf_operation *gather);

/* How many of these, from the first on, are copies of float32 tensors to one 16-bit type, of the kind that one launch makes of several;
 * and that launch. */
int cuda_count_conversions(const sdlf_operation *const *operations, int count);
sdlf_status cuda_convert_many(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count);

/* sgd_update, adam_update or rmsprop_update of `count` parameters, which differ in nothing but these and the decay. */
sdlf_status cuda_update_many(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count);

/* conv2d_relu_max_pool_forward behind a kernel that writes its x and none of its other operands, and starts when all before it have ended:
 * these are read while that kernel is at work. And its backward pass, conv2d_relu_max_pool_backward or _backward_sgd, whose input's
 * gradient is not wanted, behind one that writes its dy alone. */
sdlf_status cuda_conv2d_pool_forward_early(sdlf_calculator *calculator, const sdlf_operation *op);
sdlf_status cuda_conv2d_pool_weights_early(sdlf_calculator *calculator, const sdlf_operation *op);

/* The end of a small classifier's step: a product h of few rows, whose parts cuda_gemm_few_rows_parts has left; the last layer's
 * product; the loss with its gradient; the last layer's gemm_backward_sgd. */
typedef struct cuda_last_layers {
    const sdlf_operation *hidden, *product, *loss, *backward;
} cuda_last_layers;

/* Do these belong together, and can one cluster of blocks compute them on this device? */
bool cuda_last_layers_suit(const cuda_calculator *calculator, const cuda_last_layers *l);
sdlf_status cuda_last_layers_run(sdlf_calculator *calculator, const cuda_last_layers *l, const cuda_row_parts *parts);

#ifdef __cplusplus
}
#endif
#endif
