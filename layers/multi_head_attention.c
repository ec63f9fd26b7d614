/* SPDX-License-Identifier: MIT */
/* multi_head_attention: multi-head self-attention; see layers/sequences.h for the formula.
 *
 *   x (N,T,C) -> y (N,T,C), H heads of D = C / H; scores are scaled by 1 / sqrt(D).
 *   Saved: q, k, v; the heads' outputs (N,T,C); with `rotary` its tables; and, if the calculator has an attention operation, the
 *   softmax's statistics, otherwise the probabilities p (N H,T,T), which make memory grow with T^2.
 *   With o = p v: dp = do v^T, dv = p^T do, ds = p (dp - sum p dp), dq = ds k, dk = ds^T q. */
#include "layers/attention.h"
#include "layers/linear.h"

static const sdlf_field fields[] = {
    {.name = "heads",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_multi_head_attention_options, heads),
     .minimum = 1,
     .maximum = SDLF_MAX_LAYER_SIDE,
     .help = "heads, which share the channels equally"},
    {.name = "causal",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_multi_head_attention_options, causal),
     .help = "a position attends only to itself and those before it"},
    {.name = "no_bias",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_multi_head_attention_options, no_bias),
     .help = "leave both biases out"},
    {.name = "dropout",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_multi_head_attention_options, dropout),
     .maximum = 0.999999,
     .help = "share of the probabilities that is dropped while training"},
    {.name = "rotary",
     .type = SDLF_FIELD_BOOL,
     .offset = offsetof(sdlf_multi_head_attention_options, rotary),
     .help = "queries and keys are rotated by their position"},
    {.name = "base",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_multi_head_attention_options, base),
     .minimum = 1,
     .maximum = 1e9,
     .fallback = 10000,
     .zero_means_default = true,
     .help = "base of the rotary positions"},
    {.name = NULL},
};

enum { IN_WEIGHT, OUT_WEIGHT, IN_BIAS, OUT_BIAS };

/* ---- shapes ---- */

static sdlf_status check_mask(const sdlf_signature *signature, sdlf_shape scores)
{
    sdlf_shape wide, mask = signature->input_shape[1];
    sdlf_dtype dtype = signature->input_dtype[1];
    bool fits = sdlf_shape_broadcast(&wide, mask, scores) && sdlf_shape_equal(wide, scores);
    if (fits && (dtype == SDLF_BOOL || dtype == signature->dtype)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "expected a mask of bool or float that broadcasts to %s, found %s %s",
                     sdlf_shape_print(scores).text, sdlf_dtype_name(dtype), sdlf_shape_print(mask).text);
}

static sdlf_status add_parameters(sdlf_signature *signature, int64_t channels, bool biased)
{
    const int64_t units[2] = {3 * channels, channels};
    static const char *const weight[2] = {"in_proj_weight", "out_proj_weight"};
    static const char *const bias[2] = {"in_proj_bias", "out_proj_bias"};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < 2 && status == SDLF_OK; i++)
        status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = weight[i],
                                                                               .shape = sdlf_shape(units[i], channels),
                                                                               .initializer = SDLF_INIT_XAVIER_UNIFORM,
                                                                               .fan_in = channels,
                                                                               .fan_out = units[i],
                                                                               .trainable = true,
                                                                               .decay = true});
    for (int i = 0; i < 2 && biased && status == SDLF_OK; i++)
        status = sdlf_signature_add_parameter(signature, (sdlf_parameter_spec){.name = bias[i],
                                                                               .shape = sdlf_shape(units[i]),
                                                                               .initializer = SDLF_INIT_ZERO,
                                                                               .trainable = true});
    return status;
}

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    const sdlf_multi_head_attention_options *options = layer->options;
    sdlf_shape x = signature->input_shape[0];
    sdlf_status status = sdlf_layer_check_rank(signature, 0, 3, "(N,T,C)");
    if (status != SDLF_OK) return status;
    int64_t samples = x.dim[0], length = x.dim[1], channels = x.dim[2], heads = options->heads;
    if (channels % heads != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "its input's %lld channels do not divide into %lld heads",
                         (long long)channels, (long long)heads);
    if (options->rotary && channels / heads % 2 != 0)
        return sdlf_fail(SDLF_ERROR_SHAPE, "rotary positions need an even number of channels in a head, found %lld",
                         (long long)(channels / heads));
    if (signature->input_count > 1) status = check_mask(signature, sdlf_shape(samples, heads, length, length));
    if (status == SDLF_OK) status = sdlf_signature_add_output(signature, signature->dtype, x);
    if (status == SDLF_OK) status = add_parameters(signature, channels, !options->no_bias);
    const sdlf_shape saved[] = {
        [SDLF_ATTENTION_HEADS] = sdlf_shape(3, samples * heads, length, channels / heads),
        [SDLF_ATTENTION_PROBABILITIES] = sdlf_shape(samples * heads, length, length),
        [SDLF_ATTENTION_CONTEXT] = x,
        [SDLF_ATTENTION_STATISTICS] = sdlf_shape(2, samples, heads, length),
        [SDLF_ATTENTION_TABLES] = sdlf_shape(2, 2, length, channels / heads),
    };
    for (int i = SDLF_ATTENTION_HEADS; i <= (options->rotary ? SDLF_ATTENTION_TABLES : SDLF_ATTENTION_STATISTICS) &&
                                       status == SDLF_OK && signature->training;
         i++)
        status = sdlf_signature_add_saved(signature, signature->dtype, saved[i]);
    return status;
}

/* ---- passes ---- */

/* The heads' outputs, by operations that store the probabilities. */
static sdlf_status forward_in_parts(const sdlf_attention *a)
{
    sdlf_tensor said = sdlf_attention_scratch(a, a->q.shape), dropped;
    sdlf_status status = sdlf_attention_probabilities(a, &dropped);
    if (status == SDLF_OK) status = sdlf_attention_multiply(a, dropped, false, a->v, false, said);
    if (status != SDLF_OK) return status;
    return sdlf_layer_copy(a->context, sdlf_tensor_reshape(said, sdlf_attention_heads_shape(a)),
                           sdlf_attention_as_heads(a, a->said, 0));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_attention a = sdlf_attention_of(layer, context);
    const sdlf_tensor none = {.dtype = SDLF_NONE}, *parameter = context->parameter;
    bool biased = !a.options->no_bias, fused = sdlf_attention_is_fused(&a), in_place = fused && !a.options->rotary;
    sdlf_tensor y = sdlf_tensor_reshape(context->output[0], a.x.shape);
    sdlf_tensor projected = in_place ? a.projected : sdlf_attention_scratch(&a, a.projected.shape);
    sdlf_status status =
        sdlf_layer_linear(context, a.x, parameter[IN_WEIGHT], biased ? parameter[IN_BIAS] : none, none, projected);
    if (status == SDLF_OK && !in_place) status = sdlf_attention_cut_heads(&a, projected);
    if (status == SDLF_OK) status = fused ? sdlf_attention_forward(&a) : forward_in_parts(&a);
    if (status != SDLF_OK) return status;
    return sdlf_layer_linear(context, a.said, parameter[OUT_WEIGHT], biased ? parameter[OUT_BIAS] : none, none, y);
}

/* The gradient of the projection from that of the heads' outputs, (N T,C); and that of a mask. */
static sdlf_status backward_in_parts(const sdlf_attention *a, sdlf_tensor rows, sdlf_tensor projected)
{
    sdlf_layer_context *context = a->context;
    sdlf_tensor said = sdlf_attention_scratch(a, a->q.shape), gradient[3], ds;
    for (int i = 0; i < 3; i++) gradient[i] = sdlf_attention_scratch(a, a->q.shape);
    sdlf_status status = sdlf_layer_copy(context, sdlf_attention_as_heads(a, rows, 0),
                                         sdlf_tensor_reshape(said, sdlf_attention_heads_shape(a)));
    if (status == SDLF_OK) status = sdlf_attention_score_gradient(a, said, gradient[2], &ds);
    if (status == SDLF_OK) status = sdlf_attention_multiply(a, ds, false, a->k, false, gradient[0]);
    if (status == SDLF_OK) status = sdlf_attention_multiply(a, ds, true, a->q, false, gradient[1]);
    for (int i = 0; i < 3 && status == SDLF_OK; i++) status = sdlf_attention_join_heads(a, gradient[i], i, projected);
    if (status != SDLF_OK || context->input_count == 1) return status;
    return sdlf_layer_sum_to(context, sdlf_tensor_reshape(ds, sdlf_shape(a->samples, a->heads, a->length, a->length)),
                             context->input_gradient[1]);
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_attention a = sdlf_attention_of(layer, context);
    const sdlf_tensor none = {.dtype = SDLF_NONE}, *parameter = context->parameter, *back = context->parameter_gradient;
    bool biased = !a.options->no_bias;
    sdlf_tensor dy = sdlf_tensor_reshape(context->output_gradient[0], a.x.shape), dx = context->input_gradient[0];
    sdlf_tensor rows = sdlf_attention_scratch(&a, a.x.shape);
    sdlf_tensor projected = sdlf_attention_scratch(&a, a.projected.shape);
    if (sdlf_tensor_present(&dx)) dx = sdlf_tensor_reshape(dx, a.x.shape);
    sdlf_status status = sdlf_layer_linear_backward(context, a.said, parameter[OUT_WEIGHT], dy, rows, back[OUT_WEIGHT],
                                                    biased ? back[OUT_BIAS] : none);
    if (status == SDLF_OK)
        status = sdlf_attention_is_fused(&a) ? sdlf_attention_backward(&a, rows, projected)
                                             : backward_in_parts(&a, rows, projected);
    if (status != SDLF_OK) return status;
    return sdlf_layer_linear_backward(context, a.x, parameter[IN_WEIGHT], projected, dx, back[IN_WEIGHT],
                                      biased ? back[IN_BIAS] : none);
}

const sdlf_layer_class sdlf_multi_head_attention_class = {
    .name = "multi_head_attention",
    .summary = "self-attention of several heads, causal or masked",
    .options_size = sizeof(sdlf_multi_head_attention_options),
    .fields = fields,
    .minimum_inputs = 1,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_multi_head_attention(sdlf_model *model, sdlf_node x, const sdlf_multi_head_attention_options *options)
{
    return sdlf_model_add(model, &sdlf_multi_head_attention_class, options, &x, 1);
}

sdlf_node sdlf_multi_head_attention_masked(sdlf_model *model, sdlf_node x, sdlf_node mask,
                                           const sdlf_multi_head_attention_options *options)
{
    const sdlf_node inputs[] = {x, mask};
    return sdlf_model_add(model, &sdlf_multi_head_attention_class, options, inputs, 2);
}
