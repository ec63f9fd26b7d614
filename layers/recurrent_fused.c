/* SPDX-License-Identifier: MIT */
/* lstm and gru as single operations over all steps. In inference they read the product with x in place, (N,T,.), and write the layer's
 * output; in training steps are laid out as in the unrolled passes, with the same products over all steps. See recurrent.h. */
#include "layers/recurrent.h"

#include "layers/linear.h"

static const sdlf_tensor none = {.dtype = SDLF_NONE};

static bool is_lstm(const sdlf_recurrent *r)
{
    return r->gates == 4;
}

static sdlf_tensor parameter(const sdlf_recurrent *r, int index)
{
    return r->options->no_bias && index >= SDLF_BIAS_IH ? none : r->context->parameter[index];
}

/* The forward operation: from the input contributions of all steps, `a` (T,N,G H), to y (T,N,H). */
static sdlf_operation forward_operation(const sdlf_recurrent *r, sdlf_tensor a, sdlf_tensor y,
                                        const sdlf_tensor kept[2])
{
    sdlf_operation op = {.kind = is_lstm(r) ? SDLF_LSTM_FORWARD : SDLF_GRU_FORWARD};
    op.in[0] = a;
    op.in[1] = r->context->parameter[SDLF_WEIGHT_HH];
    op.in[2] = parameter(r, SDLF_BIAS_HH);
    op.in[3] = r->h0;
    op.in[4] = is_lstm(r) ? r->c0 : none;
    op.out[0] = y;
    for (int i = 0; i < 2; i++) op.out[1 + i] = r->context->training ? kept[i] : none;
    op.recurrence.reverse = r->options->reverse && !r->context->training; /* in training x is reordered first */
    return op;
}

/* The states after each step. */
static sdlf_tensor states_behind(const sdlf_recurrent *r)
{
    return sdlf_tensor_narrow(r->states, 0, 1, r->steps);
}

/* The gradients of the input contributions of all steps and, for gru, of the recurrent products, and of h0 and c0. */
static sdlf_operation backward_operation(const sdlf_recurrent *r, sdlf_tensor dy, const sdlf_tensor kept[2],
                                         const sdlf_tensor to[4])
{
    bool from_states = r->context->input_count > 1;
    sdlf_operation op = {.kind = is_lstm(r) ? SDLF_LSTM_BACKWARD : SDLF_GRU_BACKWARD};
    op.in[0] = kept[0];
    op.in[1] = r->context->parameter[SDLF_WEIGHT_HH];
    op.in[2] = kept[1];
    op.out[0] = to[0];
    if (is_lstm(r)) {
        op.in[3] = r->c0, op.in[4] = dy, op.in[5] = none;
        for (int i = 0; i < 2; i++) op.out[1 + i] = from_states ? to[2 + i] : none;
    } else {
        op.in[3] = states_behind(r), op.in[4] = r->h0, op.in[5] = dy;
        op.out[1] = to[1];
        op.out[2] = from_states ? to[2] : none;
    }
    return op;
}

bool sdlf_recurrent_is_fused(const sdlf_recurrent *r, const sdlf_tensor kept[2])
{
    sdlf_operation forward = forward_operation(r, kept[0], states_behind(r), kept);
    /* broadcast states have stride 0 along the units, and the operations need contiguous rows */
    if (sdlf_operation_check(&forward) != SDLF_OK || !sdlf_layer_supports(r->context, &forward)) return false;
    if (!r->context->training) return true;
    sdlf_tensor state = sdlf_recurrent_at(r->states, 0);
    const sdlf_tensor to[] = {kept[0], kept[0], state, state};
    sdlf_operation backward = backward_operation(r, states_behind(r), kept, to);
    return sdlf_operation_check(&backward) == SDLF_OK && sdlf_layer_supports(r->context, &backward);
}

/* (N,T,.) viewed as (T,N,.). */
static sdlf_tensor steps_first(sdlf_tensor x)
{
    static const int order[] = {1, 0, 2};
    return sdlf_layer_permuted(x, order);
}

static sdlf_status infer_forward(const sdlf_recurrent *r)
{
    const sdlf_recurrent_options *options = r->options;
    int64_t rows = r->samples * r->steps, width = r->gates * r->units;
    sdlf_tensor a = sdlf_recurrent_scratch(r, sdlf_shape(r->samples, r->steps, width)), y = r->context->output[0];
    if (options->last) y = sdlf_recurrent_scratch(r, sdlf_shape(r->samples, r->steps, r->units));
    sdlf_status status =
        sdlf_layer_linear(r->context, sdlf_tensor_reshape(r->context->input[0], sdlf_shape(rows, r->channels)),
                          r->context->parameter[SDLF_WEIGHT_IH], parameter(r, SDLF_BIAS_IH), none,
                          sdlf_tensor_reshape(a, sdlf_shape(rows, width)));
    sdlf_operation op = forward_operation(r, steps_first(a), steps_first(y), NULL);
    if (status == SDLF_OK) status = sdlf_emit(r->context, &op);
    if (status != SDLF_OK || !options->last) return status;
    return sdlf_layer_copy(r->context, sdlf_recurrent_at(steps_first(y), options->reverse ? 0 : r->steps - 1),
                           r->context->output[0]);
}

sdlf_status sdlf_recurrent_forward(const sdlf_recurrent *r, const sdlf_tensor kept[2])
{
    if (!r->context->training) return infer_forward(r);
    sdlf_tensor projected;
    sdlf_status status = sdlf_recurrent_begin(r, &projected);
    sdlf_operation op = forward_operation(r, projected, states_behind(r), kept);
    if (status == SDLF_OK) status = sdlf_emit(r->context, &op);
    return status == SDLF_OK ? sdlf_recurrent_end(r) : status;
}

sdlf_status sdlf_recurrent_backward(const sdlf_recurrent *r, const sdlf_tensor kept[2])
{
    sdlf_shape all = sdlf_shape(r->steps, r->samples, r->gates * r->units), state = sdlf_shape(r->samples, r->units);
    sdlf_tensor dy, to[4] = {sdlf_recurrent_scratch(r, all)};
    to[1] = is_lstm(r) ? to[0] : sdlf_recurrent_scratch(r, all);
    for (int i = 2; i < 4; i++) to[i] = sdlf_recurrent_scratch(r, state);
    sdlf_status status = sdlf_recurrent_take_gradient(r, &dy);
    sdlf_operation op = backward_operation(r, dy, kept, to);
    if (status == SDLF_OK) status = sdlf_emit(r->context, &op);
    for (int i = 1; i < r->context->input_count && status == SDLF_OK; i++)
        status = sdlf_recurrent_state_gradient(r, i, to[1 + i]);
    return status == SDLF_OK ? sdlf_recurrent_finish(r, to[0], to[1]) : status;
}
