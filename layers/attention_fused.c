/* SPDX-License-Identifier: MIT */
/* Self-attention by the operations attention_forward and attention_backward, which store no scores. Without rotary positions
 * they read the heads in place from the projection, and write to the operand of the next product. See attention.h. */
#include "layers/attention.h"

/* q, k or v. */
static sdlf_tensor head(const sdlf_attention *a, int index)
{
    const sdlf_tensor cut[] = {a->q, a->k, a->v};
    return a->options->rotary ? sdlf_tensor_reshape(cut[index], sdlf_attention_heads_shape(a))
                              : sdlf_attention_as_heads(a, a->projected, index);
}

static sdlf_tensor statistic(const sdlf_attention *a, int index)
{
    sdlf_tensor one = sdlf_tensor_narrow(a->statistics, 0, index, 1);
    return sdlf_tensor_reshape(one, sdlf_shape(a->samples, a->heads, a->length));
}

/* Shared by both passes. A float mask is not yet clamped here: sdlf_attention_forward does that. */
static sdlf_operation make_operation(const sdlf_attention *a, sdlf_operation_kind kind)
{
    const sdlf_layer_context *context = a->context;
    sdlf_operation op = {.kind = kind, .attention = {.causal = a->options->causal}};
    op.attention.scale = a->options->rotary ? 1 : a->scale;
    for (int i = 0; i < 3; i++) op.in[i] = head(a, i);
    if (context->input_count > 1)
        op.in[3] = sdlf_tensor_broadcast(context->input[1], sdlf_shape(a->samples, a->heads, a->length, a->length));
    return op;
}

static sdlf_operation forward_operation(const sdlf_attention *a)
{
    sdlf_operation op = make_operation(a, SDLF_ATTENTION_FORWARD);
    op.out[0] = sdlf_attention_as_heads(a, a->said, 0);
    for (int i = 0; i < 2 && a->context->training; i++) op.out[1 + i] = statistic(a, i);
    return op;
}

static sdlf_operation backward_operation(const sdlf_attention *a, sdlf_tensor dy, const sdlf_tensor gradient[3])
{
    sdlf_operation op = make_operation(a, SDLF_ATTENTION_BACKWARD);
    op.in[4] = sdlf_attention_as_heads(a, a->said, 0);
    for (int i = 0; i < 2; i++) op.in[5 + i] = statistic(a, i);
    op.in[7] = sdlf_attention_as_heads(a, dy, 0);
    for (int i = 0; i < 3; i++) op.out[i] = gradient[i];
    return op;
}

/* Not with dropout, which needs the probabilities, nor if a mask needs a gradient. */
bool sdlf_attention_is_fused(const sdlf_attention *a)
{
    const sdlf_layer_context *context = a->context;
    bool learns_mask = context->input_count > 1 && context->input[1].dtype != SDLF_BOOL;
    if (context->training && (learns_mask || a->options->dropout > 0)) return false;
    sdlf_operation forward = forward_operation(a);
    if (!sdlf_layer_supports(context, &forward)) return false;
    if (!context->training) return true;
    const sdlf_tensor gradient[] = {head(a, 0), head(a, 1), head(a, 2)};
    sdlf_operation backward = backward_operation(a, a->said, gradient);
    return sdlf_layer_supports(context, &backward);
}

sdlf_status sdlf_attention_forward(const sdlf_attention *a)
{
    sdlf_operation op = forward_operation(a);
    sdlf_status status = SDLF_OK;
    if (a->context->input_count > 1 && op.in[3].dtype != SDLF_BOOL) {
        sdlf_tensor bounded;
        status = sdlf_attention_bound_mask(a, &bounded);
        op.in[3] = sdlf_tensor_broadcast(bounded, op.in[3].shape);
    }
    return status == SDLF_OK ? sdlf_emit(a->context, &op) : status;
}

sdlf_status sdlf_attention_backward(const sdlf_attention *a, sdlf_tensor dy, sdlf_tensor projected)
{
    sdlf_tensor gradient[3];
    for (int i = 0; i < 3; i++)
        gradient[i] = a->options->rotary ? sdlf_attention_scratch(a, sdlf_attention_heads_shape(a))
                                         : sdlf_attention_as_heads(a, projected, i);
    sdlf_operation op = backward_operation(a, dy, gradient);
    sdlf_status status = sdlf_emit(a->context, &op);
    for (int i = 0; i < 3 && a->options->rotary && status == SDLF_OK; i++)
        status = sdlf_attention_join_heads(a, gradient[i], i, projected);
    return status;
}
