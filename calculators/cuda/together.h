/* Operations that follow one another, in fewer launches than one for each (sdlf_calculator_class.run_together). */
#ifndef SDLF_CALCULATORS_CUDA_TOGETHER_H
#define SDLF_CALCULATORS_CUDA_TOGETHER_H

#include "calculators/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

sdlf_status run_together_cuda(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count,
                              int *done);

/* next_batch, and gather_batch of uint8 by its indices, not augmented. */
sdlf_status cuda_draw_batch(sdlf_calculator *calculator, const sdlf_operation *next, const sdlf_operation *gather);

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
