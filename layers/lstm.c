/* SPDX-License-Identifier: MIT */
/* lstm: long short-term memory; see layers/sequences.h for the formula.
 *
 *   Saved: the states h (T + 1,N,H); for each step the gates i, f, g, o (4,N,H); the cells c (T + 1,N,H); tanh c
 *   (T,N,H). If all steps are one operation: the states, the gates (N,4H) and the cells after each step.
 *   Backward, from the last step to the first, where dc comes from step t + 1: do = dh tanh c', dc' = dc + dh o
 *   (1 - tanh^2 c'), di = dc' g, dg = dc' i, df = dc' c, dc = dc' f; then through the sigmoids and tanh, and
 *   dh = (di, df, dg, do) weight_hh + dy. */
#include "layers/recurrent.h"

enum { IN, FORGET, CELL, OUT, GATES };

typedef struct lstm {
    sdlf_recurrent r;
    sdlf_tensor gates, cells, squashed; /* (T,4,N,H), (T + 1,N,H), (T,N,H) */
} lstm;

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    sdlf_shape x = signature->input_shape[0];
    int64_t units = ((const sdlf_recurrent_options *)layer->options)->units;
    sdlf_status status = sdlf_recurrent_infer(layer, signature, GATES, (const int[]){GATES, 1}, 2);
    if (status != SDLF_OK || !signature->training) return status;
    return sdlf_signature_add_saved(signature, signature->dtype, sdlf_shape(x.dim[1] + 1, x.dim[0], units));
}

static lstm lstm_of(const sdlf_layer *layer, sdlf_layer_context *context)
{
    lstm l = {.r = sdlf_recurrent_of(layer, context, GATES)};
    int64_t steps = l.r.steps, samples = l.r.samples, units = l.r.units;
    l.gates = sdlf_recurrent_saved(&l.r, 1, sdlf_shape(steps, GATES, samples, units));
    l.squashed = sdlf_recurrent_saved(&l.r, 2, sdlf_shape(steps, samples, units));
    l.cells = sdlf_recurrent_saved(&l.r, 3, sdlf_shape(steps + 1, samples, units));
    return l;
}

static sdlf_status multiply(const lstm *l, sdlf_tensor a, sdlf_tensor b, sdlf_tensor y)
{
    return sdlf_layer_binary(l->r.context, SDLF_BINARY_MULTIPLY, a, b, y);
}

static sdlf_status step(const lstm *l, int64_t t, sdlf_tensor projected)
{
    const sdlf_recurrent *r = &l->r;
    sdlf_layer_context *context = r->context;
    sdlf_tensor product = sdlf_recurrent_scratch(r, sdlf_shape(r->samples, GATES * r->units));
    sdlf_tensor gates = sdlf_recurrent_at(l->gates, t), sum = sdlf_recurrent_scratch(r, gates.shape);
    sdlf_tensor kept = sdlf_recurrent_one(r), added = sdlf_recurrent_one(r);
    sdlf_tensor cell = sdlf_tensor_narrow(l->cells, 0, t, 1), next = sdlf_tensor_narrow(l->cells, 0, t + 1, 1);
    sdlf_tensor squashed = sdlf_tensor_narrow(l->squashed, 0, t, 1);
    sdlf_status status = sdlf_recurrent_product(r, t, product);
    if (status == SDLF_OK)
        status = sdlf_layer_binary(context, SDLF_BINARY_ADD, sdlf_recurrent_gates(r, sdlf_recurrent_at(projected, t)),
                                   sdlf_recurrent_gates(r, product), sum);
    for (int part = IN; part < GATES && status == SDLF_OK; part += part == IN ? 2 : 1) /* the first two share a call */
        status = sdlf_layer_unary(context, part == CELL ? SDLF_TANH : SDLF_SIGMOID,
                                  sdlf_recurrent_part(sum, part, part == IN ? 2 : 1),
                                  sdlf_recurrent_part(gates, part, part == IN ? 2 : 1));
    if (status == SDLF_OK) status = multiply(l, sdlf_recurrent_part(gates, FORGET, 1), cell, kept);
    if (status == SDLF_OK)
        status = multiply(l, sdlf_recurrent_part(gates, IN, 1), sdlf_recurrent_part(gates, CELL, 1), added);
    if (status == SDLF_OK) status = sdlf_layer_binary(context, SDLF_BINARY_ADD, kept, added, next);
    if (status == SDLF_OK) status = sdlf_layer_unary(context, SDLF_TANH, next, squashed);
    if (status != SDLF_OK) return status;
    return multiply(l, sdlf_recurrent_part(gates, OUT, 1), squashed, sdlf_recurrent_state(r, t + 1));
}

/* The tensors that the fused operations of both passes save. */
static void list_saved(const lstm *l, sdlf_tensor kept[2])
{
    const sdlf_recurrent *r = &l->r;
    kept[0] = sdlf_tensor_reshape(l->gates, sdlf_shape(r->steps, r->samples, GATES * r->units));
    kept[1] = sdlf_tensor_narrow(l->cells, 0, 0, r->steps);
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    lstm l = lstm_of(layer, context);
    sdlf_tensor projected, kept[2];
    list_saved(&l, kept);
    if (sdlf_recurrent_is_fused(&l.r, kept)) return sdlf_recurrent_forward(&l.r, kept);
    sdlf_status status = sdlf_recurrent_set_state(&l.r, l.r.c0, sdlf_recurrent_at(l.cells, 0));
    if (status == SDLF_OK) status = sdlf_recurrent_begin(&l.r, &projected);
    for (int64_t t = 0; t < l.r.steps && status == SDLF_OK; t++) status = step(&l, t, projected);
    return status == SDLF_OK ? sdlf_recurrent_end(&l.r) : status;
}

/* ---- backward ---- */

/* dc' from dh and the dc passed back by the next step, which is absent after the last. */
static sdlf_status cell_gradient(const lstm *l, int64_t t, sdlf_tensor dh, sdlf_tensor left, sdlf_tensor *dc)
{
    sdlf_tensor out = sdlf_recurrent_part(sdlf_recurrent_at(l->gates, t), OUT, 1), through = sdlf_recurrent_one(&l->r);
    sdlf_tensor slope = sdlf_recurrent_one(&l->r);
    sdlf_status status = multiply(l, dh, out, through);
    if (status == SDLF_OK)
        status = sdlf_recurrent_slope(&l->r, SDLF_TANH, sdlf_tensor_narrow(l->squashed, 0, t, 1), through, slope);
    *dc = slope;
    if (status != SDLF_OK || !sdlf_tensor_present(&left)) return status;
    *dc = sdlf_recurrent_one(&l->r);
    return sdlf_layer_binary(l->r.context, SDLF_BINARY_ADD, slope, left, *dc);
}

/* rows (N,4 H) = the gradient of the gates before their activations. */
static sdlf_status gate_gradient(const lstm *l, int64_t t, sdlf_tensor dh, sdlf_tensor dc, sdlf_tensor rows)
{
    sdlf_tensor gates = sdlf_recurrent_at(l->gates, t);
    sdlf_tensor after = sdlf_recurrent_scratch(&l->r, gates.shape), before = sdlf_recurrent_scratch(&l->r, gates.shape);
    const sdlf_tensor factor[GATES] = {[IN] = sdlf_recurrent_part(gates, CELL, 1),
                                       [FORGET] = sdlf_tensor_narrow(l->cells, 0, t, 1),
                                       [CELL] = sdlf_recurrent_part(gates, IN, 1),
                                       [OUT] = sdlf_tensor_narrow(l->squashed, 0, t, 1)};
    sdlf_status status = SDLF_OK;
    for (int i = IN; i < GATES && status == SDLF_OK; i++)
        status = multiply(l, i == OUT ? dh : dc, factor[i], sdlf_recurrent_part(after, i, 1));
    for (int part = IN; part < GATES && status == SDLF_OK; part += part == IN ? 2 : 1) {
        int count = part == IN ? 2 : 1;
        status = sdlf_recurrent_slope(&l->r, part == CELL ? SDLF_TANH : SDLF_SIGMOID,
                                      sdlf_recurrent_part(gates, part, count), sdlf_recurrent_part(after, part, count),
                                      sdlf_recurrent_part(before, part, count));
    }
    return status == SDLF_OK ? sdlf_layer_copy(l->r.context, before, sdlf_recurrent_gates(&l->r, rows)) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    lstm l = lstm_of(layer, context);
    const sdlf_recurrent *r = &l.r;
    sdlf_tensor none = {.dtype = SDLF_NONE}, rows, dy, dh, dc, left = none, kept[2];
    list_saved(&l, kept);
    if (sdlf_recurrent_is_fused(r, kept)) return sdlf_recurrent_backward(r, kept);
    rows = sdlf_recurrent_scratch(r, sdlf_shape(r->steps, r->samples, GATES * r->units));
    sdlf_status status = sdlf_recurrent_take_gradient(r, &dy);
    dh = sdlf_tensor_narrow(dy, 0, dy.shape.dim[0] - 1, 1);
    for (int64_t t = r->steps - 1; t >= 0 && status == SDLF_OK; t--) {
        status = cell_gradient(&l, t, dh, left, &dc);
        if (status == SDLF_OK) status = gate_gradient(&l, t, dh, dc, sdlf_recurrent_at(rows, t));
        if (status != SDLF_OK || (t == 0 && context->input_count == 1)) continue;
        left = sdlf_recurrent_one(r);
        status = multiply(&l, dc, sdlf_recurrent_part(sdlf_recurrent_at(l.gates, t), FORGET, 1), left);
        if (status == SDLF_OK) status = sdlf_recurrent_step_back(r, t, sdlf_recurrent_at(rows, t), dy, none, &dh);
    }
    if (status == SDLF_OK) status = sdlf_recurrent_state_gradient(r, 1, dh);
    if (status == SDLF_OK) status = sdlf_recurrent_state_gradient(r, 2, left);
    return status == SDLF_OK ? sdlf_recurrent_finish(r, rows, rows) : status;
}

const sdlf_layer_class sdlf_lstm_class = {
    .name = "lstm",
    .summary = "long short-term memory over the positions of a sequence",
    .options_size = sizeof(sdlf_recurrent_options),
    .fields = sdlf_recurrent_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 3,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_lstm(sdlf_model *model, sdlf_node x, const sdlf_recurrent_options *options)
{
    return sdlf_model_add(model, &sdlf_lstm_class, options, &x, 1);
}

sdlf_node sdlf_lstm_from(sdlf_model *model, sdlf_node x, sdlf_node h0, sdlf_node c0,
                         const sdlf_recurrent_options *options)
{
    return sdlf_model_add(model, &sdlf_lstm_class, options, (const sdlf_node[]){x, h0, c0}, 3);
}
