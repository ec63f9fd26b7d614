/* SPDX-License-Identifier: MIT */
/* Self-attention's scores: masks, softmax, dropout. See attention.h.
 *
 * Dropout is applied to p between the softmax and the product, and drawn again for the gradient. A score of NOT_SEEN
 * has probability 0 beside any other, and so has a score of AHEAD beside one of NOT_SEEN: a row in which everything is
 * masked attends to all positions equally, and with `causal` to all up to itself equally. */
#include "layers/attention.h"

#define NOT_SEEN SDLF_ATTENTION_UNSEEN
#define AHEAD    (2 * NOT_SEEN)

/* ---- masks ---- */

/* Masks the keys that follow a query. The mask is a vector of 2 T elements viewed as a matrix: element T - 1 - i + j at
 * (i,j). */
static sdlf_status mask_causally(const sdlf_attention *a, sdlf_tensor *scores)
{
    int64_t length = a->length;
    sdlf_tensor line = sdlf_attention_scratch(a, sdlf_shape(2 * length)), ahead = line;
    sdlf_tensor mask = sdlf_attention_scratch(a, sdlf_shape(length, length));
    sdlf_tensor from = *scores, wide = sdlf_tensor_broadcast(mask, from.shape);
    *scores = sdlf_attention_scratch(a, from.shape);
    ahead.shape = mask.shape;
    ahead.stride[0] = -1;
    ahead.stride[1] = 1;
    ahead.offset += (length - 1) * (int64_t)sdlf_dtype_size(line.dtype);
    sdlf_status status = sdlf_layer_fill(a->context, sdlf_tensor_narrow(line, 0, 0, length), 0);
    if (status == SDLF_OK) status = sdlf_layer_fill(a->context, sdlf_tensor_narrow(line, 0, length, length), AHEAD);
    if (status == SDLF_OK) status = sdlf_layer_copy(a->context, ahead, mask);
    return status == SDLF_OK ? sdlf_layer_binary(a->context, SDLF_BINARY_ADD, from, wide, *scores) : status;
}

sdlf_status sdlf_attention_bound_mask(const sdlf_attention *a, sdlf_tensor *bounded)
{
    sdlf_tensor mask = a->context->input[1];
    *bounded = sdlf_attention_scratch(a, mask.shape);
    return sdlf_emit(a->context, &(sdlf_operation){
                                     .kind = SDLF_BINARY,
                                     .in = {mask},
                                     .out = {*bounded},
                                     .binary = {.function = SDLF_BINARY_MAXIMUM, .scalar = NOT_SEEN},
                                 });
}

static sdlf_status add_mask(const sdlf_attention *a, sdlf_tensor scores, sdlf_tensor masked)
{
    sdlf_tensor bounded;
    sdlf_status status = sdlf_attention_bound_mask(a, &bounded);
    if (status != SDLF_OK) return status;
    return sdlf_layer_binary(a->context, SDLF_BINARY_ADD, scores, sdlf_tensor_broadcast(bounded, scores.shape), masked);
}

static sdlf_status apply_mask(const sdlf_attention *a, sdlf_tensor *scores)
{
    sdlf_shape shape = sdlf_shape(a->samples, a->heads, a->length, a->length);
    sdlf_tensor mask = a->context->input[1], from = sdlf_tensor_reshape(*scores, shape);
    sdlf_tensor masked = sdlf_attention_scratch(a, shape), unseen = sdlf_attention_scratch(a, sdlf_shape(1));
    *scores = sdlf_tensor_reshape(masked, scores->shape);
    if (mask.dtype != SDLF_BOOL) return add_mask(a, from, masked);
    sdlf_status status = sdlf_layer_fill(a->context, unseen, NOT_SEEN);
    if (status != SDLF_OK) return status;
    return sdlf_emit(a->context,
                     &(sdlf_operation){
                         .kind = SDLF_SELECT,
                         .in = {sdlf_tensor_broadcast(mask, shape), from, sdlf_tensor_broadcast(unseen, shape)},
                         .out = {masked},
                     });
}

/* ---- probabilities ---- */

static sdlf_status drop(const sdlf_attention *a, sdlf_operation_kind kind, sdlf_tensor from, sdlf_tensor to)
{
    const sdlf_layer_context *context = a->context;
    return sdlf_emit(a->context, &(sdlf_operation){
                                     .kind = kind,
                                     .in = {from, context->step},
                                     .out = {to},
                                     .dropout = {.probability = a->options->dropout,
                                                 .seed = context->seed,
                                                 .stream = context->stream,
                                                 .first = context->first_sample * a->heads * a->length * a->length},
                                 });
}

static bool drops(const sdlf_attention *a)
{
    return a->context->training && !a->context->eval_mode && a->options->dropout > 0;
}

/* p as the product reads it: with dropout in training. */
static sdlf_status take_dropped(const sdlf_attention *a, sdlf_tensor *dropped)
{
    *dropped = a->p;
    if (!drops(a)) return SDLF_OK;
    *dropped = sdlf_attention_scratch(a, a->p.shape);
    return drop(a, SDLF_DROPOUT_FORWARD, a->p, *dropped);
}

sdlf_status sdlf_attention_probabilities(const sdlf_attention *a, sdlf_tensor *dropped)
{
    sdlf_tensor scores = sdlf_attention_scratch(a, a->p.shape);
    sdlf_status status = sdlf_attention_multiply(a, a->q, false, a->k, true, scores);
    if (status == SDLF_OK && a->context->input_count > 1) status = apply_mask(a, &scores);
    if (status == SDLF_OK && a->options->causal) status = mask_causally(a, &scores);
    if (status == SDLF_OK)
        status = sdlf_emit(
            a->context,
            &(sdlf_operation){.kind = SDLF_SOFTMAX_FORWARD, .in = {scores}, .out = {a->p}, .softmax = {.axis = 2}});
    return status == SDLF_OK ? take_dropped(a, dropped) : status;
}

sdlf_status sdlf_attention_score_gradient(const sdlf_attention *a, sdlf_tensor said, sdlf_tensor dv, sdlf_tensor *ds)
{
    sdlf_tensor dropped, dp = sdlf_attention_scratch(a, a->p.shape);
    *ds = sdlf_attention_scratch(a, a->p.shape);
    sdlf_status status = take_dropped(a, &dropped);
    if (status == SDLF_OK) status = sdlf_attention_multiply(a, dropped, true, said, false, dv);
    if (status == SDLF_OK) status = sdlf_attention_multiply(a, said, false, a->v, true, dp);
    if (status == SDLF_OK && drops(a)) {
        sdlf_tensor kept = dp;
        dp = sdlf_attention_scratch(a, a->p.shape);
        status = drop(a, SDLF_DROPOUT_BACKWARD, kept, dp);
    }
    if (status != SDLF_OK) return status;
    return sdlf_emit(
        a->context,
        &(sdlf_operation){.kind = SDLF_SOFTMAX_BACKWARD, .in = {a->p, dp}, .out = {*ds}, .softmax = {.axis = 2}});
}
