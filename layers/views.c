/* SPDX-License-Identifier: MIT */
/* See views.h. */
#include "layers/views.h"

const char *const sdlf_layer_dtypes[] = {[SDLF_VALUE_FLOAT] = "float",
                                         [SDLF_VALUE_INT32] = "int32",
                                         [SDLF_VALUE_INT64] = "int64",
                                         [SDLF_VALUE_UINT8] = "uint8",
                                         [SDLF_VALUE_INT8] = "int8",
                                         [SDLF_VALUE_BOOL] = "bool",
                                         NULL};

sdlf_dtype sdlf_layer_dtype(const sdlf_signature *signature, int choice)
{
    static const sdlf_dtype dtypes[] = {[SDLF_VALUE_INT32] = SDLF_INT32,
                                        [SDLF_VALUE_INT64] = SDLF_INT64,
                                        [SDLF_VALUE_UINT8] = SDLF_UINT8,
                                        [SDLF_VALUE_INT8] = SDLF_INT8,
                                        [SDLF_VALUE_BOOL] = SDLF_BOOL};
    return choice == SDLF_VALUE_FLOAT ? signature->dtype : dtypes[choice];
}

sdlf_status sdlf_layer_axis(int *axis, int wanted, sdlf_shape shape)
{
    *axis = sdlf_layer_axis_from_start(wanted, shape.rank);
    if (*axis >= 0 && *axis < shape.rank) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "axis %d is not one of its input %s", wanted, sdlf_shape_print(shape).text);
}

sdlf_status sdlf_layer_copy(sdlf_layer_context *context, sdlf_tensor from, sdlf_tensor to)
{
    return sdlf_emit(context, &(sdlf_operation){.kind = SDLF_COPY, .in = {from}, .out = {to}});
}

sdlf_status sdlf_layer_fill(sdlf_layer_context *context, sdlf_tensor to, double value)
{
    return sdlf_emit(context, &(sdlf_operation){.kind = SDLF_FILL, .out = {to}, .fill = {.value = value}});
}

sdlf_status sdlf_layer_reduce(sdlf_layer_context *context, sdlf_tensor x, int64_t outer, int64_t length, int64_t inner,
                              sdlf_reduction function, sdlf_tensor y)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_REDUCE,
                                  .in = {sdlf_tensor_reshape(x, sdlf_shape(outer, length, inner))},
                                  .out = {sdlf_tensor_reshape(y, sdlf_shape(outer, inner))},
                                  .reduce = {.function = function, .axis = 1},
                              });
}

/* True if axis `axis` of `from` results from broadcasting `to`. */
static bool is_stretched(const sdlf_tensor *from, const sdlf_tensor *to, int axis)
{
    int missing = from->shape.rank - to->shape.rank;
    return from->shape.dim[axis] != 1 && (axis < missing || to->shape.dim[axis - missing] == 1);
}

/* A run of neighbouring broadcast axes is summed as one axis, with one reduction. */
sdlf_status sdlf_layer_sum_to(sdlf_layer_context *context, sdlf_tensor from, sdlf_tensor to)
{
    if (!sdlf_tensor_present(&to)) return SDLF_OK;
    sdlf_tensor now = from;
    sdlf_shape left = from.shape; /* axes summed so far have become 1 */
    for (int first = 0; first < from.shape.rank; first++) {
        if (!is_stretched(&from, &to, first)) continue;
        int last = first + 1;
        while (last < from.shape.rank && (from.shape.dim[last] == 1 || is_stretched(&from, &to, last))) last++;
        int64_t outer = sdlf_shape_span(left, 0, first), length = sdlf_shape_span(left, first, last);
        int64_t inner = sdlf_shape_span(left, last, left.rank);
        for (int axis = first; axis < last; axis++) left.dim[axis] = 1;
        bool done = sdlf_shape_count(left) == sdlf_tensor_count(&to);
        sdlf_tensor sum = done ? to : sdlf_scratch(context, from.dtype, left);
        sdlf_status status = sdlf_layer_reduce(context, now, outer, length, inner, SDLF_REDUCE_SUM, sum);
        if (status != SDLF_OK || done) return status;
        now = sum;
    }
    return sdlf_layer_copy(context, sdlf_tensor_reshape(now, to.shape), to); /* nothing was broadcast */
}

sdlf_tensor sdlf_layer_permuted(sdlf_tensor tensor, const int *order)
{
    sdlf_tensor result = tensor;
    for (int axis = 0; axis < tensor.shape.rank; axis++) {
        result.shape.dim[axis] = tensor.shape.dim[order[axis]];
        result.stride[axis] = tensor.stride[order[axis]];
    }
    return result;
}

sdlf_status sdlf_layer_binary(sdlf_layer_context *context, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                              sdlf_tensor y)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_BINARY,
                                  .in = {a, b},
                                  .out = {y},
                                  .binary = {.function = function},
                              });
}

sdlf_status sdlf_layer_scale(sdlf_layer_context *context, sdlf_tensor x, double factor, sdlf_tensor y)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_BINARY,
                                  .in = {x},
                                  .out = {y},
                                  .binary = {.function = SDLF_BINARY_MULTIPLY, .scalar = factor},
                              });
}

sdlf_status sdlf_layer_unary(sdlf_layer_context *context, sdlf_activation_function function, sdlf_tensor x,
                             sdlf_tensor y)
{
    return sdlf_emit(context, &(sdlf_operation){
                                  .kind = SDLF_ACTIVATION_FORWARD,
                                  .in = {x},
                                  .out = {y},
                                  .activation = {.function = function},
                              });
}
