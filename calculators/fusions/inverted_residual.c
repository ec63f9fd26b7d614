/* SPDX-License-Identifier: MIT */
/* conv2d_inverted_residual_forward: its calculator-independent checks and costs, and its member convolutions. */
#include "calculators/fusions/inverted_residual.h"

#include <stddef.h>

#include "calculators/fusions/conv2d_pool.h"
#include "framework/operations/check.h"

enum { EXPAND, FILTER, PROJECT, MEMBERS }; /* the convolutions, in order */

/* Fails if an operand of the expansion is present although there is no expansion. */
static void expect_no_expansion(sdlf_check *check, const sdlf_operation *operation)
{
    if (check->status != SDLF_OK) return;
    if (sdlf_tensor_present(&operation->in[4]))
        check->status = sdlf_fail(SDLF_ERROR_ARGUMENT, "operand 'bias' is given without 'expand'");
    else if (inverted_residual_options_of(operation)->expanded.function != SDLF_IDENTITY)
        check->status = sdlf_fail(SDLF_ERROR_ARGUMENT, "an activation is given for operand 'expand', which is missing");
}

/* x (N,C,H,W), depthwise (M,1,R,S), project (K,M,1,1), expand (M,C,1,1), biases (M), (M), (K), residual and y
 * (N,K,P,Q). */
static sdlf_status check_inverted(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *project = &operation->in[2], *expand = &operation->in[3];
    const inverted_residual_options *options = inverted_residual_options_of(operation);
    const sdlf_window2d *window = &options->window;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_rank(&check, x, 4);
    sdlf_expect_rank(&check, project, 4);
    if (check.status != SDLF_OK) return check.status;
    int64_t c = x->shape.dim[1], k = project->shape.dim[0], m = project->shape.dim[1];
    if (!sdlf_tensor_present(expand)) m = c;
    sdlf_expect_operand(&check, project, t, sdlf_shape(k, m, 1, 1));
    sdlf_expect_operand(&check, expand, t, sdlf_shape(m, c, 1, 1));
    if (!sdlf_tensor_present(expand)) expect_no_expansion(&check, operation);
    if (check.status != SDLF_OK) return check.status;
    sdlf_size2d output = sdlf_expect_window(&check, window, x->shape.dim[2], x->shape.dim[3]);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape made = sdlf_shape(x->shape.dim[0], k, output.side[0], output.side[1]);
    sdlf_expect_operand(&check, &operation->in[1], t, sdlf_shape(m, 1, window->size[0], window->size[1]));
    sdlf_expect_operand(&check, &operation->in[4], t, sdlf_shape(m));
    sdlf_expect_operand(&check, &operation->in[5], t, sdlf_shape(m));
    sdlf_expect_operand(&check, &operation->in[6], t, sdlf_shape(k));
    sdlf_expect_operand(&check, &operation->in[7], t, made);
    sdlf_expect_operand(&check, &operation->out[0], t, made);
    sdlf_expect_activation(&check, &options->expanded);
    sdlf_expect_activation(&check, &options->filtered);
    sdlf_expect_activation(&check, &options->activation);
    return check.status;
}

static int64_t inverted_flops(const sdlf_operation *operation)
{
    const int64_t *x = operation->in[0].shape.dim, *y = operation->out[0].shape.dim;
    int64_t taps = sdlf_shape_span(operation->in[1].shape, 2, 4), m = operation->in[1].shape.dim[0];
    int64_t expanded = sdlf_tensor_present(&operation->in[3]) ? sdlf_product(x[0], m, x[2], x[3]) : 0;
    int64_t filtered = sdlf_product(y[0], m, y[2], y[3]);
    return sdlf_sum(sdlf_product(2, expanded, x[1], 1), sdlf_product(2, filtered, sdlf_sum(taps, y[1]), 1));
}

/* ---- joining and splitting ---- */

/* 1x1, stride 1, on every pixel. */
static bool is_pointwise(const sdlf_operation *conv)
{
    const sdlf_window2d *window = &conv->conv2d.window;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 1 || window->stride[i] != 1) return false;
        if (window->padding_before[i] != 0 || window->padding_after[i] != 0) return false;
    }
    return conv->conv2d.groups == 1;
}

/* One filter for each channel. */
static bool is_depthwise(const sdlf_operation *conv)
{
    return conv->conv2d.groups == conv->in[0].shape.dim[1] && conv->in[1].shape.dim[0] == conv->conv2d.groups;
}

/* True if conv reads the output of the convolution before it, and that one has no residual. */
static bool follows(const sdlf_operation *conv, const sdlf_operation *before)
{
    return conv2d_pool_is_same_image(&before->out[0], &conv->in[0]) && !sdlf_tensor_present(&before->in[3]);
}

static bool join(const sdlf_operation *const *member, sdlf_operation *fused)
{
    const sdlf_operation *expand = member[EXPAND], *filter = member[FILTER], *project = member[PROJECT];
    inverted_residual_options *options = inverted_residual_options_in(fused);
    if (!is_depthwise(filter) || !is_pointwise(project) || !follows(project, filter)) return false;
    if (expand != NULL && (!is_pointwise(expand) || !follows(filter, expand))) return false;
    fused->in[0] = expand != NULL ? expand->in[0] : filter->in[0];
    fused->in[1] = filter->in[1];
    fused->in[2] = project->in[1];
    if (expand != NULL) {
        fused->in[3] = expand->in[1];
        fused->in[4] = expand->in[2];
        options->expanded = expand->conv2d.activation;
    }
    fused->in[5] = filter->in[2];
    fused->in[6] = project->in[2];
    fused->in[7] = project->in[3];
    fused->out[0] = project->out[0];
    options->window = filter->conv2d.window;
    options->filtered = filter->conv2d.activation;
    options->activation = project->conv2d.activation;
    return true;
}

/* The intermediate tensor, of the size of `like`, with M channels. */
static sdlf_tensor between(const sdlf_operation *fused, const sdlf_tensor *like)
{
    sdlf_shape shape = like->shape;
    shape.dim[1] = fused->in[1].shape.dim[0];
    sdlf_tensor made = sdlf_tensor_view(like->dtype, shape, NULL);
    return sdlf_operation_is_channels_last(fused) ? sdlf_tensor_channels_last(made) : made;
}

static unsigned split(const sdlf_operation *fused, sdlf_operation *member)
{
    static const sdlf_window2d pixel = {.size = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    const inverted_residual_options *options = inverted_residual_options_of(fused);
    const sdlf_tensor *in = fused->in, *y = &fused->out[0];
    const bool expands = sdlf_tensor_present(&in[3]);
    const sdlf_tensor filtered = between(fused, y), expanded = expands ? between(fused, &in[0]) : in[0];
    if (expands)
        member[EXPAND] =
            (sdlf_operation){.in = {in[0], in[3], in[4]}, .out = {expanded}, .conv2d = {pixel, 1, options->expanded}};
    member[FILTER] = (sdlf_operation){
        .in = {expanded, in[1], in[5]},
        .out = {filtered},
        .conv2d = {options->window, (int)in[1].shape.dim[0], options->filtered},
    };
    member[PROJECT] = (sdlf_operation){
        .in = {filtered, in[2], in[6], in[7]},
        .out = {*y},
        .conv2d = {pixel, 1, options->activation},
    };
    return expands ? 1u << EXPAND | 1u << FILTER | 1u << PROJECT : 1u << FILTER | 1u << PROJECT;
}

const sdlf_fusion sdlf_inverted_residual_fusion = {
    .type =
        {
            .name = "conv2d_inverted_residual_forward",
            .in = {{.name = "x"},
                   {.name = "depthwise"},
                   {.name = "project"},
                   {.name = "expand", .optional = true},
                   {.name = "bias", .optional = true},
                   {.name = "depthwise_bias", .optional = true},
                   {.name = "project_bias", .optional = true},
                   {.name = "residual", .optional = true}},
            .out = {{.name = "y"}},
            .channels_last = 1u << 0 | 1u << 7 | 1u << SDLF_MAX_INPUTS,
            .epilogue = offsetof(sdlf_operation, fused.options) + offsetof(inverted_residual_options, activation),
            .check = check_inverted,
            .flops = inverted_flops,
            .packed = 0x7e, /* all but x and residual */
            .unread = 1u << 1 | 1u << 2 | 1u << 3,
        },
    .members = MEMBERS,
    .member = {SDLF_CONV2D_FORWARD, SDLF_CONV2D_FORWARD, SDLF_CONV2D_FORWARD},
    .edges = 2,
    .edge = {{EXPAND, 0, FILTER, 0}, {FILTER, 0, PROJECT, 0}},
    .variant = {1u << EXPAND | 1u << FILTER | 1u << PROJECT, 1u << FILTER | 1u << PROJECT},
    .infer = true,
    .yields_to_requests = true,
    .join = join,
    .split = split,
};
