/* SPDX-License-Identifier: MIT */
/* See linear.h. */
#include "layers/linear.h"

#include "layers/views.h"

sdlf_status sdlf_layer_linear(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor weight, sdlf_tensor bias,
                              sdlf_tensor residual, sdlf_tensor y)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_GEMM,
                                  .in = {x, weight, bias, residual},
                                  .out = {y},
                                  .gemm = {.transpose_b = true, .alpha = 1},
                              });
}

sdlf_status sdlf_layer_linear_backward(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor weight, sdlf_tensor dy,
                                       sdlf_tensor dx, sdlf_tensor dweight, sdlf_tensor dbias)
{
    sdlf_status status = sdlf_layer_sum_to(context, dy, dbias);
    if (status == SDLF_OK)
        status = sdlf_emit(context, &(sdlf_operation){
                                        .kind = SDLF_GEMM,
                                        .in = {dy, x},
                                        .out = {dweight},
                                        .gemm = {.transpose_a = true, .alpha = 1},
                                    });
    if (status != SDLF_OK) return status;
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_GEMM,
                                  .in = {dy, weight},
                                  .out = {dx},
                                  .gemm = {.alpha = 1},
                              });
}
