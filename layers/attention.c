/* SPDX-License-Identifier: MIT */
/* The heads of self-attention: split from the projection, concatenated, multiplied. See attention.h. */
#include "layers/attention.h"

#include <math.h>

static sdlf_tensor saved_or_scratch(const sdlf_attention *a, int index, sdlf_shape shape)
{
    sdlf_layer_context *context = a->context;
    return context->training ? context->saved[index] : sdlf_scratch(context, context->input[0].dtype, shape);
}

static sdlf_tensor part(sdlf_tensor whole, int index, sdlf_shape shape)
{
    return sdlf_tensor_reshape(sdlf_tensor_narrow(whole, 0, index, 1), shape);
}

sdlf_attention sdlf_attention_of(const sdlf_layer *layer, sdlf_layer_context *context)
{
    sdlf_shape x = context->input[0].shape;
    sdlf_attention a = {.options = layer->options, .context = context};
    a.samples = x.dim[0], a.length = x.dim[1], a.channels = x.dim[2];
    a.heads = a.options->heads, a.depth = a.channels / a.heads;
    a.scale = 1 / sqrt((double)a.depth);
    int64_t rows = a.samples * a.length, batch = a.samples * a.heads;
    sdlf_shape head = sdlf_shape(batch, a.length, a.depth), table = sdlf_shape(2, a.length, a.depth);
    sdlf_tensor heads = saved_or_scratch(&a, SDLF_ATTENTION_HEADS, sdlf_shape_prepend(3, head));
    a.x = sdlf_tensor_reshape(context->input[0], sdlf_shape(rows, a.channels));
    a.projected = sdlf_tensor_reshape(heads, sdlf_shape(rows, 3 * a.channels));
    a.statistics = saved_or_scratch(&a, SDLF_ATTENTION_STATISTICS, sdlf_shape(2, a.samples, a.heads, a.length));
    a.q = part(heads, 0, head), a.k = part(heads, 1, head), a.v = part(heads, 2, head);
    a.p = saved_or_scratch(&a, SDLF_ATTENTION_PROBABILITIES, sdlf_shape(batch, a.length, a.length));
    a.said = sdlf_tensor_reshape(saved_or_scratch(&a, SDLF_ATTENTION_CONTEXT, x), sdlf_shape(rows, a.channels));
    if (!a.options->rotary) return a;
    sdlf_tensor tables = saved_or_scratch(&a, SDLF_ATTENTION_TABLES, sdlf_shape_prepend(2, table));
    a.q_tables = part(tables, 0, table), a.k_tables = part(tables, 1, table);
    return a;
}

sdlf_tensor sdlf_attention_scratch(const sdlf_attention *a, sdlf_shape shape)
{
    return sdlf_scratch(a->context, a->x.dtype, shape);
}

/* (N T,C), or one of the three parts of (N T,3C), viewed as heads (N,H,T,D). */
sdlf_tensor sdlf_attention_as_heads(const sdlf_attention *a, sdlf_tensor rows, int index)
{
    static const int order[] = {0, 2, 1, 3};
    int64_t parts = rows.shape.dim[1] / a->channels;
    sdlf_tensor cut = sdlf_tensor_reshape(rows, sdlf_shape(a->samples, a->length, parts, a->heads, a->depth)),
                one = cut;
    one = sdlf_tensor_narrow(cut, 2, index, 1);
    for (int axis = 2; axis < 4; axis++) { /* remove that axis of 1 */
        one.shape.dim[axis] = one.shape.dim[axis + 1];
        one.stride[axis] = one.stride[axis + 1];
    }
    one.shape.rank = 4;
    return sdlf_layer_permuted(one, order);
}

sdlf_shape sdlf_attention_heads_shape(const sdlf_attention *a)
{
    return sdlf_shape(a->samples, a->heads, a->length, a->depth);
}

/* y = left right for every head. */
sdlf_status sdlf_attention_multiply(const sdlf_attention *a, sdlf_tensor left, bool turn_left, sdlf_tensor right,
                                    bool turn_right, sdlf_tensor y)
{
    return sdlf_emit(a->context, &(sdlf_operation){
                                     .kind = SDLF_MATMUL,
                                     .in = {left, right},
                                     .out = {y},
                                     .matmul = {.transpose_a = turn_left, .transpose_b = turn_right},
                                 });
}

/* Splits the projection (N T,3C) into q, k and v. */
sdlf_status sdlf_attention_cut_heads(const sdlf_attention *a, sdlf_tensor projected)
{
    sdlf_shape shape = sdlf_attention_heads_shape(a);
    sdlf_tensor q = sdlf_tensor_reshape(a->q, shape), k = sdlf_tensor_reshape(a->k, shape);
    sdlf_tensor q_from = sdlf_attention_as_heads(a, projected, 0), k_from = sdlf_attention_as_heads(a, projected, 1);
    sdlf_status status =
        sdlf_layer_copy(a->context, sdlf_attention_as_heads(a, projected, 2), sdlf_tensor_reshape(a->v, shape));
    if (status != SDLF_OK) return status;
    if (!a->options->rotary) {
        status = sdlf_layer_scale(a->context, q_from, a->scale, q);
        return status == SDLF_OK ? sdlf_layer_copy(a->context, k_from, k) : status;
    }
    status = sdlf_rotary_tables(a->context, a->options->base, a->scale, a->q_tables);
    if (status == SDLF_OK) status = sdlf_rotary_tables(a->context, a->options->base, 1, a->k_tables);
    if (status == SDLF_OK) status = sdlf_rotary_turn(a->context, q_from, a->q_tables, false, q);
    return status == SDLF_OK ? sdlf_rotary_turn(a->context, k_from, a->k_tables, false, k) : status;
}

/* Writes the gradient of a part of the projection, from that of its heads. */
sdlf_status sdlf_attention_join_heads(const sdlf_attention *a, sdlf_tensor gradient, int index, sdlf_tensor projected)
{
    sdlf_tensor from = sdlf_tensor_reshape(gradient, sdlf_attention_heads_shape(a)),
                turned = sdlf_attention_scratch(a, from.shape);
    sdlf_status status = SDLF_OK;
    if (a->options->rotary && index < 2)
        status = sdlf_rotary_turn(a->context, from, index == 0 ? a->q_tables : a->k_tables, true, turned);
    else if (index == 0)
        status = sdlf_layer_scale(a->context, from, a->scale, turned);
    else
        turned = from;
    return status == SDLF_OK ? sdlf_layer_copy(a->context, turned, sdlf_attention_as_heads(a, projected, index))
                             : status;
}
