/* SPDX-License-Identifier: MIT */
/* binary: y = a op b with numpy broadcasting, or x op number, number op x. The gradients are dy times the derivatives
 * (see <sdlf/operations/elementwise.h>), summed over the broadcast axes. Comparisons and logical functions return bool
 * and have no gradient. */
#include "layers/views.h"

static const char *const functions[] = {"add",     "subtract",      "multiply",    "divide", "power",   "minimum",
                                        "maximum", "prelu",         "remainder",   "modulo", "bit_and", "bit_or",
                                        "bit_xor", "shift_left",    "shift_right", "equal",  "less",    "less_equal",
                                        "greater", "greater_equal", "and",         "or",     "xor",     NULL};

static const sdlf_field fields[] = {
    {.name = "function",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_binary_layer_options, function),
     .choices = functions,
     .help = "function of each pair"},
    {.name = "scalar",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_binary_layer_options, scalar),
     .minimum = -3.4e38,
     .maximum = 3.4e38,
     .help = "with one input: the other operand"},
    {.name = "scalar_first",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_binary_layer_options, scalar_first),
     .help = "with one input: scalar op x instead of x op scalar"},
    {.name = NULL},
};

/* a > b is computed as b < a: these two functions swap their operands. */
static bool swaps(const sdlf_layer *layer)
{
    int function = ((const sdlf_binary_layer_options *)layer->options)->function;
    return function == SDLF_LAYER_GREATER || function == SDLF_LAYER_GREATER_EQUAL;
}

static sdlf_binary_function function_of(const sdlf_layer *layer)
{
    static const sdlf_binary_function kinds[SDLF_LAYER_FUNCTION_COUNT] = {
        [SDLF_LAYER_ADD] = SDLF_BINARY_ADD,
        [SDLF_LAYER_SUBTRACT] = SDLF_BINARY_SUBTRACT,
        [SDLF_LAYER_MULTIPLY] = SDLF_BINARY_MULTIPLY,
        [SDLF_LAYER_DIVIDE] = SDLF_BINARY_DIVIDE,
        [SDLF_LAYER_POWER] = SDLF_BINARY_POWER,
        [SDLF_LAYER_MINIMUM] = SDLF_BINARY_MINIMUM,
        [SDLF_LAYER_MAXIMUM] = SDLF_BINARY_MAXIMUM,
        [SDLF_LAYER_PRELU] = SDLF_BINARY_PRELU,
        [SDLF_LAYER_REMAINDER] = SDLF_BINARY_REMAINDER,
        [SDLF_LAYER_MODULO] = SDLF_BINARY_MODULO,
        [SDLF_LAYER_BIT_AND] = SDLF_BINARY_BIT_AND,
        [SDLF_LAYER_BIT_OR] = SDLF_BINARY_BIT_OR,
        [SDLF_LAYER_BIT_XOR] = SDLF_BINARY_BIT_XOR,
        [SDLF_LAYER_SHIFT_LEFT] = SDLF_BINARY_SHIFT_LEFT,
        [SDLF_LAYER_SHIFT_RIGHT] = SDLF_BINARY_SHIFT_RIGHT,
        [SDLF_LAYER_EQUAL] = SDLF_BINARY_EQUAL,
        [SDLF_LAYER_LESS] = SDLF_BINARY_LESS,
        [SDLF_LAYER_LESS_EQUAL] = SDLF_BINARY_LESS_EQUAL,
        [SDLF_LAYER_GREATER] = SDLF_BINARY_LESS,
        [SDLF_LAYER_GREATER_EQUAL] = SDLF_BINARY_LESS_EQUAL,
        [SDLF_LAYER_AND] = SDLF_BINARY_AND,
        [SDLF_LAYER_OR] = SDLF_BINARY_OR,
        [SDLF_LAYER_XOR] = SDLF_BINARY_XOR,
    };
    return kinds[((const sdlf_binary_layer_options *)layer->options)->function];
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_binary_layer_options *options = layer->options;
    sdlf_shape y = signature->input_shape[0];
    sdlf_dtype dtype = signature->input_dtype[0];
    bool logic = options->function >= SDLF_LAYER_AND, compares = options->function >= SDLF_LAYER_EQUAL;
    if (signature->input_count == 2) {
        if (signature->input_dtype[1] != dtype)
            return sdlf_fail(SDLF_ERROR_SHAPE, "expected two inputs of one type, found %s and %s",
                             sdlf_dtype_name(dtype), sdlf_dtype_name(signature->input_dtype[1]));
        if (!sdlf_shape_broadcast(&y, y, signature->input_shape[1]))
            return sdlf_fail(SDLF_ERROR_SHAPE, "its inputs %s and %s cannot be broadcast together",
                             sdlf_shape_print(signature->input_shape[0]).text,
                             sdlf_shape_print(signature->input_shape[1]).text);
    }
    bool bits = options->function >= SDLF_LAYER_BIT_AND && !compares;
    if (bits && sdlf_dtype_is_float(dtype))
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s takes integers, found %s", functions[options->function],
                         sdlf_dtype_name(dtype));
    if (logic != (dtype == SDLF_BOOL) && (logic || !compares))
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s does not take %s", functions[options->function], sdlf_dtype_name(dtype));
    return sdlf_signature_add_output(signature, compares ? SDLF_BOOL : dtype, y);
}

/* The operands of the operation, broadcast to y's shape. An absent one is the scalar. */
static void operands(sdlf_tensor operand[2], const sdlf_layer *layer, const sdlf_layer_context *context)
{
    const sdlf_binary_layer_options *options = layer->options;
    int first = context->input_count == 1 && options->scalar_first ? 1 : 0;
    operand[0] = operand[1] = (sdlf_tensor){.dtype = SDLF_NONE};
    for (int i = 0; i < context->input_count; i++)
        operand[i ^ first ^ swaps(layer)] = sdlf_tensor_broadcast(context->input[i], context->output[0].shape);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_binary_layer_options *options = layer->options;
    sdlf_operation operation = {
        .kind = SDLF_BINARY,
        .out = {context->output[0]},
        .binary = {.function = function_of(layer), .scalar = (double)options->scalar},
    };
    operands(operation.in, layer, context);
    return sdlf_emit(context, &operation);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_binary_layer_options *options = layer->options;
    sdlf_tensor dy = context->output_gradient[0], wide[2] = {{.dtype = SDLF_NONE}, {.dtype = SDLF_NONE}};
    sdlf_operation operation = {
        .kind = SDLF_BINARY_BACKWARD,
        .binary = {.function = function_of(layer), .scalar = (double)options->scalar},
    };
    int first = context->input_count == 1 && options->scalar_first ? 1 : 0;
    operands(operation.in, layer, context);
    operation.in[2] = dy;
    for (int i = 0; i < context->input_count; i++) {
        if (!sdlf_tensor_present(&context->input_gradient[i])) continue;
        bool stretched = !sdlf_shape_equal(context->input[i].shape, dy.shape);
        wide[i] = stretched ? sdlf_scratch(context, dy.dtype, dy.shape) : context->input_gradient[i];
        operation.out[i ^ first] = wide[i];
    }
    sdlf_status status = sdlf_emit(context, &operation);
    for (int i = 0; i < context->input_count && status == SDLF_OK; i++) {
        if (!sdlf_tensor_present(&wide[i]) || sdlf_shape_equal(context->input[i].shape, dy.shape)) continue;
        status = sdlf_layer_sum_to(context, wide[i], context->input_gradient[i]);
    }
    return status;
}

const sdlf_layer_class sdlf_binary_class = {
    .name = "binary",
    .summary = "a function of two inputs, broadcast, or of one and a number",
    .options_size = sizeof(sdlf_binary_layer_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_binary(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_binary_layer_options *options)
{
    return sdlf_model_add(model, &sdlf_binary_class, options, nodes, count);
}
