/* SPDX-License-Identifier: MIT */
/* conv_transpose2d: the input gradient of a convolution, as a layer. x (N,C,P,Q), weight (C,
 * filters/groups, R, S), y (N,filters,H,W) with H = (P - 1) stride + dilation (R - 1) + 1 + output_padding
 * - all padding. dx is the convolution of dy with the weight; the weight gradient is that of this
 * convolution. */
#include "layers/views.h"

static const sdlf_field fields[] = {
    {.name = "filters",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_conv_transpose2d_options, filters),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "output channels"},
    {.name = "kernel",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv_transpose2d_options, kernel),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "height and width of the kernel"},
    {.name = "stride",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv_transpose2d_options, stride),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .fallback = 1,
     .zero_means_default = true,
     .help = "distance between the kernel's positions in the output"},
    {.name = "padding",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv_transpose2d_options, padding),
     .minimum = 0,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "rows and columns cut off around the output"},
    {.name = "padding_extra",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv_transpose2d_options, padding_extra),
     .minimum = -SDLF_MAX_LAYER_WINDOW,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "more cut off below and right; less if negative"},
    {.name = "output_padding",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv_transpose2d_options, output_padding),
     .minimum = 0,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "rows and columns added below and right, fewer than the stride"},
    {.name = "dilation",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv_transpose2d_options, dilation),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .fallback = 1,
     .zero_means_default = true,
     .help = "distance between the kernel's elements"},
    {.name = "groups",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_conv_transpose2d_options, groups),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .fallback = 1,
     .zero_means_default = true,
     .help = "groups of channels"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_conv_transpose2d_options, no_bias),
     .help = "leave the bias out"},
    {.name = NULL},
};

/* The window of the convolution from y to x. */
static sdlf_window2d window_of(const sdlf_conv_transpose2d_options *options)
{
    return sdlf_layer_window(options->kernel, options->stride, options->dilation, options->padding,
                             options->padding_extra);
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_conv_transpose2d_options *options = layer->options;
    sdlf_window2d window = window_of(options);
    sdlf_shape x = signature->input_shape[0], y = x;
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 4, "(N,C,H,W)");
    if (status != SDLF_OK) return status;
    int64_t channels = x.dim[1], filters = options->filters, groups = options->groups;
    if (channels % groups != 0 || filters % groups != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "its input's %lld channels and its %lld filters do not divide into %lld groups",
                         (long long)channels, (long long)filters, (long long)groups);
    y.dim[1] = filters;
    for (int axis = 0; axis < 2; axis++) {
        if (window.padding_after[axis] < 0)
            return sdlf_fail(SDLF_ERROR_SHAPE, "padding %d with padding_extra %d would be negative %s",
                             options->padding[axis], options->padding_extra[axis],
                             axis == 0 ? "below" : "on the right");
        if (options->output_padding[axis] >= options->stride[axis])
            return sdlf_fail(SDLF_ERROR_SHAPE, "output_padding %d is not less than the stride %d",
                             options->output_padding[axis], options->stride[axis]);
        if (x.dim[2 + axis] > SDLF_MAX_LAYER_SIDE)
            return sdlf_fail(SDLF_ERROR_SHAPE, "its input %s is too large", sdlf_shape_print(x).text);
        y.dim[2 + axis] = (x.dim[2 + axis] - 1) * window.stride[axis] +
                          (int64_t)window.dilation[axis] * (window.size[axis] - 1) + 1 + options->output_padding[axis] -
                          window.padding_before[axis] - window.padding_after[axis];
    }
    status = sdlf_signature_add_output(signature, signature->dtype, y);
    if (status != SDLF_OK) return status;
    int64_t area = (int64_t)window.size[0] * window.size[1];
    status = sdlf_signature_add_parameter(
        signature, (sdlf_parameter_spec){
                       .name = "weight",
                       .shape = sdlf_shape(channels, filters / groups, window.size[0], window.size[1]),
                       .initializer = SDLF_INIT_HE_UNIFORM,
                       .fan_in = channels / groups * area,
                       .fan_out = filters / groups * area,
                       .trainable = true,
                       .decay = true,
                   });
    if (status != SDLF_OK || options->no_bias) return status;
    return sdlf_signature_add_parameter(
        signature, (sdlf_parameter_spec){
                       .name = "bias", .shape = sdlf_shape(filters), .initializer = SDLF_INIT_ZERO, .trainable = true});
}

static sdlf_operation convolution(const sdlf_layer *layer, sdlf_operation_kind kind)
{
    const sdlf_conv_transpose2d_options *options = layer->options;
    return (sdlf_operation){.kind = kind, .conv2d = {.window = window_of(options), .groups = options->groups}};
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_conv_transpose2d_options *options = layer->options;
    sdlf_tensor y = context->output[0];
    sdlf_operation operation = convolution(layer, SDLF_CONV2D_BACKWARD_INPUT);
    operation.in[0] = context->input[0];
    operation.in[1] = context->parameter[0];
    operation.out[0] = options->no_bias ? y : sdlf_scratch(context, y.dtype, y.shape);
    sdlf_status status = sdlf_emit(context, &operation);
    if (status != SDLF_OK || options->no_bias) return status;
    sdlf_tensor bias = sdlf_tensor_reshape(context->parameter[1], sdlf_shape(options->filters, 1, 1));
    return sdlf_layer_binary(context, SDLF_BINARY_ADD, operation.out[0], sdlf_tensor_broadcast(bias, y.shape), y);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_conv_transpose2d_options *options = layer->options;
    sdlf_tensor dy = context->output_gradient[0];
    sdlf_operation weights = convolution(layer, SDLF_CONV2D_BACKWARD_WEIGHTS);
    weights.in[0] = dy;
    weights.in[1] = context->input[0];
    weights.out[0] = context->parameter_gradient[0];
    sdlf_operation input = convolution(layer, SDLF_CONV2D_FORWARD);
    input.in[0] = dy;
    input.in[1] = context->parameter[0];
    input.out[0] = context->input_gradient[0];
    sdlf_status status = sdlf_emit(context, &weights);
    if (status == SDLF_OK) status = sdlf_emit(context, &input);
    if (status != SDLF_OK || options->no_bias || !sdlf_tensor_present(&context->parameter_gradient[1])) return status;
    return sdlf_layer_sum_to(context, dy,
                             sdlf_tensor_reshape(context->parameter_gradient[1], sdlf_shape(options->filters, 1, 1)));
}

const sdlf_layer_class sdlf_conv_transpose2d_class = {
    .name = "conv_transpose2d",
    .summary = "transposed 2-D convolution",
    .options_size = sizeof(sdlf_conv_transpose2d_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_conv_transpose2d(sdlf_model *model, sdlf_node x, const sdlf_conv_transpose2d_options *options)
{
    return sdlf_model_add(model, &sdlf_conv_transpose2d_class, options, &x, 1);
}
