/* SPDX-License-Identifier: MIT */
/* conv2d: 2-D convolution (cross-correlation), grouped, strided, padded, dilated.
 *
 *   x (N,C,H,W), weight (K,C/G,R,S), bias (K) -> y (N,K,P,Q)
 *   y[n,k,p,q] = bias[k] + sum over c,r,s of x[n, g C/G + c, p stride + r dilation - top, q stride + s dilation - left]
 *                                            weight[k,c,r,s]
 *   P = (H + top + bottom - dilation (R - 1) - 1) / stride + 1, and Q likewise; g = k / (K/G).
 *   dx = the transposed convolution of dy with weight; dweight = the correlation of x with dy; dbias[k] = sum of dy
 *   over n,p,q. Formulas and layouts: SDLF_CONV2D_* in operation.h. */
#include "layers/layers_internal.h"

static const sdlf_field fields[] = {
    {.name = "filters",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_conv2d_options, filters),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "output channels"},
    {.name = "kernel",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv2d_options, kernel),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "height and width of the kernel"},
    {.name = "stride",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv2d_options, stride),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .fallback = 1,
     .zero_means_default = true,
     .help = "steps between windows"},
    {.name = "padding",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv2d_options, padding),
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "zeros around the image"},
    {.name = "padding_extra",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv2d_options, padding_extra),
     .minimum = -SDLF_MAX_LAYER_WINDOW,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .help = "more zeros below and right; fewer if negative"},
    {.name = "dilation",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(sdlf_conv2d_options, dilation),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_WINDOW,
     .fallback = 1,
     .zero_means_default = true,
     .help = "distance between the kernel's elements"},
    {.name = "groups",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_conv2d_options, groups),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .fallback = 1,
     .zero_means_default = true,
     .help = "groups of channels; as many as channels: depthwise"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_conv2d_options, no_bias),
     .help = "leave the bias out"},
    {.name = "initializer",
     .type = SDLF_FIELD_CHOICE,
     .offset = offsetof(sdlf_conv2d_options, initializer),
     .choices = sdlf_initializer_names,
     .help = "initial weight; he_uniform by default"},
    {.name = "initializer_scale",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_conv2d_options, initializer_scale),
     .maximum = 1000,
     .fallback = 0.1,
     .zero_means_default = true,
     .help = "bound of uniform, deviation of normal"},
    {.name = NULL},
};

static sdlf_window2d window_of(const sdlf_conv2d_options *options)
{
    return sdlf_layer_window(options->kernel, options->stride, options->dilation, options->padding,
                             options->padding_extra);
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_conv2d_options *options = layer->options;
    sdlf_window2d window = window_of(options);
    sdlf_shape x = signature->input_shape[0];
    int64_t output[2] = {0, 0};
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 4, "(N,C,H,W)");
    if (status != SDLF_OK) return status;
    int64_t channels = x.dim[1], filters = options->filters, groups = options->groups;
    if (channels % groups != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input's %lld channels do not divide into %lld groups",
                         (long long)channels, (long long)groups);
    if (filters % groups != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its %lld filters do not divide into %lld groups", (long long)filters,
                         (long long)groups);
    status = sdlf_layer_window_output(&window, x, "kernel", output);
    if (status != SDLF_OK) return status;
    status =
        sdlf_signature_add_output(signature, signature->dtype, sdlf_shape(x.dim[0], filters, output[0], output[1]));
    if (status != SDLF_OK) return status;

    int64_t area = (int64_t)window.size[0] * window.size[1];
    if (options->initializer == SDLF_INIT_WHITENING && (groups != 1 || filters > 2 * channels * area))
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "initializer whitening: expected one group and at most %lld filters, twice the %lld elements "
                         "of a patch, found %lld groups and %lld filters",
                         (long long)(2 * channels * area), (long long)(channels * area), (long long)groups,
                         (long long)filters);
    int kind = options->initializer == SDLF_INIT_DEFAULT ? SDLF_INIT_HE_UNIFORM : options->initializer;
    status = sdlf_signature_add_parameter(
        signature, (sdlf_parameter_spec){
                       .name = "weight",
                       .shape = sdlf_shape(filters, channels / groups, window.size[0], window.size[1]),
                       .initializer = kind,
                       .scale = options->initializer_scale,
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

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_conv2d_options *options = layer->options;
    sdlf_operation operation = {
        .kind = SDLF_CONV2D_FORWARD,
        .in = {context->input[0], context->parameter[0]},
        .out = {context->output[0]},
        .conv2d = {.window = window_of(options), .groups = options->groups},
    };
    if (!options->no_bias) operation.in[2] = context->parameter[1];
    return sdlf_emit(context, &operation);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    const sdlf_conv2d_options *options = layer->options;
    sdlf_operation weights = {
        .kind = SDLF_CONV2D_BACKWARD_WEIGHTS,
        .in = {context->input[0], context->output_gradient[0]},
        .out = {context->parameter_gradient[0]},
        .conv2d = {.window = window_of(options), .groups = options->groups},
    };
    sdlf_operation input = {
        .kind = SDLF_CONV2D_BACKWARD_INPUT,
        .in = {context->output_gradient[0], context->parameter[0]},
        .out = {context->input_gradient[0]},
        .conv2d = {.window = window_of(options), .groups = options->groups},
    };
    if (!options->no_bias) weights.out[1] = context->parameter_gradient[1];
    if (sdlf_tensor_present(&weights.out[1])) weights.out[0] = sdlf_layer_gradient(context, 0);
    sdlf_status status = sdlf_emit(context, &weights);
    return status == SDLF_OK ? sdlf_emit(context, &input) : status;
}

const sdlf_layer_class sdlf_conv2d_class = {
    .name = "conv2d",
    .summary = "2-D convolution with groups, stride, padding and dilation",
    .options_size = sizeof(sdlf_conv2d_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_conv2d(sdlf_model *model, sdlf_node x, const sdlf_conv2d_options *options)
{
    return sdlf_model_add(model, &sdlf_conv2d_class, options, &x, 1);
}
