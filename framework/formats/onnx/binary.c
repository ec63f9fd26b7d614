/* Operators of two operands that broadcast, and those that take any number of them. */
#include <string.h>

#include "framework/formats/onnx/fold.h"

onnx_flow onnx_binary(onnx_context *c, const char *function, const onnx_flow *operands)
{
    if (!onnx_ok(c)) return operands[0];
    if (strcmp(function, "add") == 0 && sdlf_shape_equal(operands[0].shape, operands[1].shape) &&
        sdlf_dtype_is_float(operands[0].dtype))
        return onnx_layer(c, "add", NULL, operands, 2);
    onnx_unsupported(c, "binary");
    return operands[0];
}

static void convert_add(onnx_context *c)
{
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1)};
    onnx_give(c, 0, onnx_binary(c, "add", operands));
}

static void convert_sum(onnx_context *c)
{
    onnx_flow sum = onnx_in(c, 0);
    for (int i = 1; i < c->input_count && onnx_ok(c); i++) {
        onnx_flow operands[] = {sum, onnx_in(c, i)};
        sum = onnx_binary(c, "add", operands);
    }
    onnx_give(c, 0, sum);
}

const onnx_operator onnx_binary_operators[] = {
    {.type = "Add",
     .since = 7,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " ",
     .convert = convert_add,
     .fold = onnx_fold_binary},
    {.type = "Sum",
     .since = 6,
     .minimum_inputs = 1,
     .maximum_inputs = 4096,
     .attributes = " ",
     .convert = convert_sum,
     .fold = onnx_fold_binary},
    {.type = NULL},
};
