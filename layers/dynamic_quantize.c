/* SPDX-License-Identifier: MIT */
/* dynamic_quantize: y = clamp(round(x / scale) + zero), uint8, with output 1, scale = (high - low) / 255 (or 1 if that
 * is 0), and output 2, zero = clamp(round(-low / scale)), where low = min(x, 0) and high = max(x, 0) over all of x. It
 * uses the calculator's operation if there is one, otherwise a sequence of others. */
#include "layers/views.h"

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_float(signature, 0);
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, SDLF_UINT8, x);
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, SDLF_SCALAR);
    return status == SDLF_OK ? sdlf_signature_add_output(signature, SDLF_UINT8, SDLF_SCALAR) : status;
}

/* y = a op number */
static sdlf_status with_number(sdlf_layer_context *context, sdlf_binary_function function, sdlf_tensor a, double number,
                               sdlf_tensor y)
{
    return sdlf_emit(
        context, &(sdlf_operation){
                     .kind = SDLF_BINARY, .in = {a}, .out = {y}, .binary = {.function = function, .scalar = number}});
}

/* The minimum or maximum of x and 0. */
static sdlf_status bound(sdlf_layer_context *context, sdlf_reduction reduction, sdlf_binary_function function,
                         sdlf_tensor y)
{
    sdlf_tensor x = context->input[0], found = sdlf_scratch(context, x.dtype, SDLF_SCALAR);
    sdlf_status status = sdlf_layer_reduce(context, x, 1, sdlf_tensor_count(&x), 1, reduction, found);
    return status == SDLF_OK ? with_number(context, function, found, 0, y) : status;
}

/* scale = (high - low) / 255, or 1 */
static sdlf_status make_scale(sdlf_layer_context *context, sdlf_tensor low, sdlf_tensor high)
{
    sdlf_tensor range = sdlf_scratch(context, low.dtype, SDLF_SCALAR),
                one = sdlf_scratch(context, low.dtype, SDLF_SCALAR);
    sdlf_tensor is_none = sdlf_scratch(context, SDLF_BOOL, SDLF_SCALAR);
    sdlf_status status = sdlf_layer_binary(context, SDLF_BINARY_SUBTRACT, high, low, range);
    if (status == SDLF_OK) status = with_number(context, SDLF_BINARY_EQUAL, range, 0, is_none);
    if (status == SDLF_OK) status = sdlf_layer_copy(context, is_none, one);
    sdlf_tensor quotient = sdlf_scratch(context, low.dtype, SDLF_SCALAR);
    if (status == SDLF_OK) status = with_number(context, SDLF_BINARY_DIVIDE, range, 255, quotient);
    return status == SDLF_OK ? sdlf_layer_binary(context, SDLF_BINARY_ADD, quotient, one, context->output[1]) : status;
}

/* y = clamp(round(x / scale) + zero), clamped by a saturating copy to bytes; zero NULL: nothing is added. */
static sdlf_status quantise(sdlf_layer_context *context, sdlf_tensor x, const sdlf_tensor *zero, sdlf_tensor y)
{
    sdlf_tensor scaled = sdlf_scratch(context, x.dtype, x.shape), whole = sdlf_scratch(context, x.dtype, x.shape);
    sdlf_tensor scale = sdlf_tensor_broadcast(context->output[1], x.shape);
    sdlf_status status = sdlf_layer_binary(context, SDLF_BINARY_DIVIDE, x, scale, scaled);
    if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_ROUND, scaled, whole);
    if (status != SDLF_OK || zero == NULL) return status == SDLF_OK ? sdlf_layer_copy(context, whole, y) : status;
    sdlf_tensor added = sdlf_scratch(context, x.dtype, SDLF_SCALAR), sum = sdlf_scratch(context, x.dtype, x.shape);
    status = sdlf_layer_copy(context, *zero, added);
    if (status == SDLF_OK)
        status = sdlf_layer_binary(context, SDLF_BINARY_ADD, whole, sdlf_tensor_broadcast(added, x.shape), sum);
    return status == SDLF_OK ? sdlf_layer_copy(context, sum, y) : status;
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    const sdlf_tensor x = context->input[0], *y = context->output;
    sdlf_operation whole = {.kind = SDLF_DYNAMIC_QUANTIZE, .in = {x}, .out = {y[0]}};
    whole.out[1] = sdlf_tensor_reshape(y[1], sdlf_shape(1)), whole.out[2] = sdlf_tensor_reshape(y[2], sdlf_shape(1));
    if (x.dtype == SDLF_FLOAT32 && sdlf_layer_supports(context, &whole)) return sdlf_emit(context, &whole);
    sdlf_tensor low = sdlf_scratch(context, x.dtype, SDLF_SCALAR), high = sdlf_scratch(context, x.dtype, SDLF_SCALAR);
    sdlf_tensor below = sdlf_scratch(context, x.dtype, SDLF_SCALAR);
    sdlf_status status = bound(context, SDLF_REDUCE_MIN, SDLF_BINARY_MINIMUM, low);
    if (status == SDLF_OK) status = bound(context, SDLF_REDUCE_MAX, SDLF_BINARY_MAXIMUM, high);
    if (status == SDLF_OK) status = make_scale(context, low, high);
    if (status == SDLF_OK) status = sdlf_layer_scale(context, low, -1, below);
    if (status == SDLF_OK) status = quantise(context, below, NULL, y[2]);
    return status == SDLF_OK ? quantise(context, x, &y[2], y[0]) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    if (!sdlf_tensor_present(&context->input_gradient[0])) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "no gradient passes through dynamic_quantize");
}

const sdlf_layer_class sdlf_dynamic_quantize_class = {
    .name = "dynamic_quantize",
    .summary = "floats quantised to uint8 by their range",
    .options_size = sizeof(sdlf_plain_options),
    .fields = sdlf_plain_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_dynamic_quantize(sdlf_model *model, sdlf_node x)
{
    return sdlf_model_add(model, &sdlf_dynamic_quantize_class, NULL, &x, 1);
}
