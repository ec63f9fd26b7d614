/* SPDX-License-Identifier: MIT */
/* gru: gated recurrent units; see layers/sequences.h for the formula.
 *
 *   Saved: the states h (T + 1,N,H); for each step the gates r, z, n (3,N,H), and the recurrent product (N,3 H), whose
 *   last third is q = weight_hn h + bias_hn. If all steps are one operation: the states, the gates (N,3 H) and q.
 *   Backward, from the last step to the first:
 *   dz = dh (h - n), dn = dh (1 - z), through tanh and the sigmoids;
 *   dr = dn q, dq = dn r;
 *   dh = (dr, dz, dq) weight_hh + dh z + dy. */
#include "layers/recurrent.h"

enum { RESET, UPDATE, NEW, GATES };

typedef struct gru {
    sdlf_recurrent r;
    sdlf_tensor gates, products; /* (T,3,N,H), (T,N,3 H) */
} gru;

static sdlf_status infer(const sdlf_layer *layer, sdlf_signature *signature)
{
    return sdlf_recurrent_infer(layer, signature, GATES, (const int[]){GATES, GATES}, 2);
}

static gru gru_of(const sdlf_layer *layer, sdlf_layer_context *context)
{
    gru g = {.r = sdlf_recurrent_of(layer, context, GATES)};
    int64_t steps = g.r.steps, samples = g.r.samples, units = g.r.units;
    g.gates = sdlf_recurrent_saved(&g.r, 1, sdlf_shape(steps, GATES, samples, units));
    g.products = sdlf_recurrent_saved(&g.r, 2, sdlf_shape(steps, samples, GATES * units));
    return g;
}

static sdlf_status combine(const gru *g, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b, sdlf_tensor y)
{
    return sdlf_layer_binary(g->r.context, function, a, b, y);
}

static sdlf_tensor gate(const gru *g, int64_t t, int which)
{
    return sdlf_recurrent_part(sdlf_recurrent_at(g->gates, t), which, 1);
}

/* q of step t. */
static sdlf_tensor product_of_new(const gru *g, int64_t t)
{
    return sdlf_recurrent_part(sdlf_recurrent_gates(&g->r, sdlf_recurrent_at(g->products, t)), NEW, 1);
}

static sdlf_status step(const gru *g, int64_t t, sdlf_tensor projected)
{
    const sdlf_recurrent *r = &g->r;
    sdlf_tensor product = sdlf_recurrent_at(g->products, t), n = gate(g, t, NEW);
    sdlf_tensor from_x = sdlf_recurrent_gates(r, sdlf_recurrent_at(projected, t));
    sdlf_tensor from_state = sdlf_recurrent_gates(r, product), gates = sdlf_recurrent_at(g->gates, t);
    sdlf_tensor both = sdlf_recurrent_scratch(r, sdlf_shape(2, r->samples, r->units)), own = sdlf_recurrent_one(r);
    sdlf_tensor sum = sdlf_recurrent_one(r), apart = sdlf_recurrent_one(r), kept = sdlf_recurrent_one(r);
    sdlf_status status = sdlf_recurrent_product(r, t, product);
    if (status == SDLF_OK)
        status = combine(g, SDLF_BINARY_ADD, sdlf_recurrent_part(from_x, RESET, 2),
                         sdlf_recurrent_part(from_state, RESET, 2), both);
    if (status == SDLF_OK)
        status = sdlf_layer_unary(r->context, SDLF_SIGMOID, both, sdlf_recurrent_part(gates, RESET, 2));
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_MULTIPLY, gate(g, t, RESET), product_of_new(g, t), own);
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_ADD, own, sdlf_recurrent_part(from_x, NEW, 1), sum);
    if (status == SDLF_OK) status = sdlf_layer_unary(r->context, SDLF_TANH, sum, n);
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_SUBTRACT, sdlf_recurrent_state(r, t), n, apart);
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_MULTIPLY, gate(g, t, UPDATE), apart, kept);
    return status == SDLF_OK ? combine(g, SDLF_BINARY_ADD, n, kept, sdlf_recurrent_state(r, t + 1)) : status;
}

/* The tensors that the fused operations of both passes save. */
static void list_saved(const gru *g, sdlf_tensor kept[2])
{
    const sdlf_recurrent *r = &g->r;
    kept[0] = sdlf_tensor_reshape(g->gates, sdlf_shape(r->steps, r->samples, GATES * r->units));
    kept[1] = sdlf_recurrent_saved(r, 2, sdlf_shape(r->steps, r->samples, r->units));
}

static sdlf_status forward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    gru g = gru_of(layer, context);
    sdlf_tensor projected, kept[2];
    list_saved(&g, kept);
    if (sdlf_recurrent_is_fused(&g.r, kept)) return sdlf_recurrent_forward(&g.r, kept);
    sdlf_status status = sdlf_recurrent_begin(&g.r, &projected);
    for (int64_t t = 0; t < g.r.steps && status == SDLF_OK; t++) status = step(&g, t, projected);
    return status == SDLF_OK ? sdlf_recurrent_end(&g.r) : status;
}

/* ---- backward ---- */

/* rows (N,3 H) = r and z before their sigmoids, and a third part. */
static sdlf_status put_rows(const gru *g, sdlf_tensor both, sdlf_tensor third, sdlf_tensor rows)
{
    sdlf_tensor to = sdlf_recurrent_gates(&g->r, rows);
    sdlf_status status = sdlf_layer_copy(g->r.context, both, sdlf_recurrent_part(to, RESET, 2));
    return status == SDLF_OK ? sdlf_layer_copy(g->r.context, third, sdlf_recurrent_part(to, NEW, 1)) : status;
}

/* Both gradients (N,3 H) of step t, and `kept`: dh z. */
static sdlf_status step_gradient(const gru *g, int64_t t, sdlf_tensor dh, sdlf_tensor from_x, sdlf_tensor from_state,
                                 sdlf_tensor kept)
{
    const sdlf_recurrent *r = &g->r;
    sdlf_tensor gates = sdlf_recurrent_at(g->gates, t), n = gate(g, t, NEW);
    sdlf_tensor after = sdlf_recurrent_scratch(r, sdlf_shape(2, r->samples, r->units)), apart = sdlf_recurrent_one(r);
    sdlf_tensor both = sdlf_recurrent_scratch(r, after.shape), dn = sdlf_recurrent_one(r), dq = sdlf_recurrent_one(r);
    sdlf_tensor outer = sdlf_recurrent_one(r);
    sdlf_status status = combine(g, SDLF_BINARY_SUBTRACT, sdlf_recurrent_state(r, t), n, apart);
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_MULTIPLY, dh, apart, sdlf_recurrent_part(after, UPDATE, 1));
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_MULTIPLY, dh, gate(g, t, UPDATE), kept);
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_SUBTRACT, dh, kept, outer);
    if (status == SDLF_OK) status = sdlf_recurrent_slope(r, SDLF_TANH, n, outer, dn);
    if (status == SDLF_OK)
        status = combine(g, SDLF_BINARY_MULTIPLY, dn, product_of_new(g, t), sdlf_recurrent_part(after, RESET, 1));
    if (status == SDLF_OK) status = combine(g, SDLF_BINARY_MULTIPLY, dn, gate(g, t, RESET), dq);
    if (status == SDLF_OK)
        status = sdlf_recurrent_slope(r, SDLF_SIGMOID, sdlf_recurrent_part(gates, RESET, 2), after, both);
    if (status == SDLF_OK) status = put_rows(g, both, dn, from_x);
    return status == SDLF_OK ? put_rows(g, both, dq, from_state) : status;
}

static sdlf_status backward(const sdlf_layer *layer, sdlf_layer_context *context)
{
    gru g = gru_of(layer, context);
    const sdlf_recurrent *r = &g.r;
    sdlf_shape all = sdlf_shape(r->steps, r->samples, GATES * r->units);
    sdlf_tensor from_x = sdlf_recurrent_scratch(r, all), from_states = sdlf_recurrent_scratch(r, all), dy, dh, kept[2];
    list_saved(&g, kept);
    if (sdlf_recurrent_is_fused(r, kept)) return sdlf_recurrent_backward(r, kept);
    sdlf_status status = sdlf_recurrent_take_gradient(r, &dy);
    dh = sdlf_tensor_narrow(dy, 0, dy.shape.dim[0] - 1, 1);
    for (int64_t t = r->steps - 1; t >= 0 && status == SDLF_OK; t--) {
        sdlf_tensor rows = sdlf_recurrent_at(from_states, t), before = sdlf_recurrent_one(r);
        status = step_gradient(&g, t, dh, sdlf_recurrent_at(from_x, t), rows, before);
        if (status == SDLF_OK && (t > 0 || context->input_count > 1))
            status = sdlf_recurrent_step_back(r, t, rows, dy, before, &dh);
    }
    if (status == SDLF_OK) status = sdlf_recurrent_state_gradient(r, 1, dh);
    return status == SDLF_OK ? sdlf_recurrent_finish(r, from_x, from_states) : status;
}

const sdlf_layer_class sdlf_gru_class = {
    .name = "gru",
    .summary = "gated recurrent units over the positions of a sequence",
    .options_size = sizeof(sdlf_recurrent_options),
    .fields = sdlf_recurrent_fields,
    .minimum_inputs = 1,
    .maximum_inputs = 2,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

sdlf_node sdlf_gru(sdlf_model *model, sdlf_node x, const sdlf_recurrent_options *options)
{
    return sdlf_model_add(model, &sdlf_gru_class, options, &x, 1);
}

sdlf_node sdlf_gru_from(sdlf_model *model, sdlf_node x, sdlf_node h0, const sdlf_recurrent_options *options)
{
    return sdlf_model_add(model, &sdlf_gru_class, options, (const sdlf_node[]){x, h0}, 2);
}
