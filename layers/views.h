/* SPDX-License-Identifier: MIT */
/* Shared by layers that move elements: axes that may count from the end, copies, sums over broadcast axes. */
#ifndef SDLF_LAYERS_VIEWS_H
#define SDLF_LAYERS_VIEWS_H

#include "layers/layers_internal.h"

/* Converts an axis to one counted from 0: -1 is the last one. SDLF_ERROR_SHAPE if there is no such axis. */
sdlf_status sdlf_layer_axis(int *axis, int wanted, sdlf_shape shape);

/* The same without a check, for an axis that was checked or that the caller checks. */
static inline int sdlf_layer_axis_from_start(int axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

/* to = from, element by element. */
sdlf_status sdlf_layer_copy(sdlf_layer_context *context, sdlf_tensor from, sdlf_tensor to);
sdlf_status sdlf_layer_fill(sdlf_layer_context *context, sdlf_tensor to, double value);

/* `to` = the sum of `from` over the axes along which `to` was broadcast to from's shape: the gradient of broadcasting.
 * `from` is row-major; an absent `to` is ignored. */
sdlf_status sdlf_layer_sum_to(sdlf_layer_context *context, sdlf_tensor from, sdlf_tensor to);

/* y (outer, inner) = sum | max | ... over the middle of x (outer, length, inner), all row-major. */
sdlf_status sdlf_layer_reduce(sdlf_layer_context *context, sdlf_tensor x, int64_t outer, int64_t length, int64_t inner,
                              sdlf_reduction function, sdlf_tensor y);

/* y = a op b and y = a op number, over views of y's shape; y = f(x). */
sdlf_status sdlf_layer_binary(sdlf_layer_context *context, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                              sdlf_tensor y);
sdlf_status sdlf_layer_scale(sdlf_layer_context *context, sdlf_tensor x, double factor, sdlf_tensor y);
sdlf_status sdlf_layer_unary(sdlf_layer_context *context, sdlf_activation_function function, sdlf_tensor x,
                             sdlf_tensor y);

/* The tensor with its axes permuted: axis i of the result is axis order[i]. */
sdlf_tensor sdlf_layer_permuted(sdlf_tensor tensor, const int *order);

/* The dtypes that a layer's output option may name, for SDLF_FIELD_CHOICE: "float" is the plan's. */
extern const char *const sdlf_layer_dtypes[];
sdlf_dtype sdlf_layer_dtype(const sdlf_signature *signature, int choice);

#endif
