/* SPDX-License-Identifier: MIT */
/* LinearAttention and CausalConvWithState: decoder operators with a state of fixed size. A sequence is unrolled, as in
 * recurrent.c: some layers per time step. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

enum { MOST_STEPS = 1024 };

/* ---- LinearAttention ---- */

/* Splits heads: (N, steps, heads size) to (N, heads, steps, size), or with `upright` to (N, heads, size, steps). */
static onnx_flow heads_apart(onnx_context *c, int input, int64_t heads, bool upright)
{
    onnx_flow x = onnx_in(c, input);
    if (onnx_ok(c) && (x.shape.rank != 3 || heads < 1 || x.shape.dim[2] % heads != 0))
        onnx_wrong(c, "input %d is %s, for %lld heads", input, sdlf_shape_print(x.shape).text, (long long)heads);
    if (!onnx_ok(c)) return x;
    x = onnx_split_axis(c, x, 2, heads);
    return onnx_transpose(c, x, upright ? (const int[]){0, 2, 3, 1} : (const int[]){0, 2, 1, 3});
}

typedef struct linear_attention {
    onnx_flow q; /* (N, heads, steps, group, size): `group` query heads read one state */
    onnx_flow k; /* (N, heads, size, steps) */
    onnx_flow v; /* (N, heads, steps, size of a value) */
    bool decays, corrects, has_state;
    onnx_flow decay, beta; /* (N, heads, size or 1, steps), after exp; (N, heads or 1, steps, 1) */
    onnx_flow state;       /* (N, heads, size, size of a value) */
    double scale;
} linear_attention;

/* state = decay state + k (v - state^T k) beta^T, and what the queries read from it, (N, heads, group, size of a
 * value) */
static onnx_flow step(onnx_context *c, linear_attention *a, int64_t t)
{
    onnx_flow k = onnx_take(c, a->k, 3, t, 1, 1), v = onnx_take(c, a->v, 2, t, 1, 1);
    if (a->decays && a->has_state) a->state = onnx_elementwise(c, "mul", a->state, onnx_take(c, a->decay, 3, t, 1, 1));
    if (a->corrects) {
        onnx_flow row = onnx_transpose(c, k, (const int[]){0, 1, 3, 2});
        if (a->has_state) v = onnx_elementwise(c, "sub", v, onnx_product(c, row, a->state, false));
        v = onnx_elementwise(c, "mul", v, onnx_take(c, a->beta, 2, t, 1, 1));
    }
    onnx_flow written = onnx_elementwise(c, "mul", k, v);
    a->state = a->has_state ? onnx_elementwise(c, "add", a->state, written) : written;
    a->has_state = true;
    onnx_flow q = onnx_join_axes(c, onnx_take(c, a->q, 2, t, 1, 1), 2, 3);
    return onnx_with_number(c, "mul", onnx_product(c, q, a->state, false), a->scale);
}

static linear_attention attention_of(onnx_context *c)
{
    onnx_word rule = onnx_text(c, "update_rule", "gated_delta");
    int64_t heads = onnx_integer(c, "kv_num_heads", 0), readers = onnx_integer(c, "q_num_heads", 0);
    linear_attention a = {.decays = strncmp(rule.text, "gated", 5) == 0,
                          .corrects = strstr(rule.text, "delta") != NULL,
                          .scale = (double)onnx_real(c, "scale", 0)};
    static const char rules[] = " linear gated delta gated_delta ";
    if (strstr(rules, rule.text) == NULL) onnx_wrong(c, "attribute 'update_rule' is '%s'", rule.text);
    if (onnx_ok(c) && (heads < 1 || readers < heads || readers % heads != 0))
        onnx_wrong(c, "attributes 'q_num_heads' and 'kv_num_heads' are %lld and %lld", (long long)readers,
                   (long long)heads);
    if (a.decays != onnx_has(c, 4) || a.corrects != onnx_has(c, 5))
        onnx_wrong(c, "attribute 'update_rule' is '%s': inputs 4, decay, and 5, beta, do not go with it", rule.text);
    a.k = heads_apart(c, 1, heads, true);
    a.v = heads_apart(c, 2, heads, false);
    onnx_flow q = onnx_in(c, 0);
    if (onnx_ok(c) && (q.shape.rank != 3 || q.shape.dim[2] % readers != 0 || q.shape.dim[1] != a.k.shape.dim[3] ||
                       q.shape.dim[2] / readers != a.k.shape.dim[2] || a.v.shape.dim[2] != q.shape.dim[1]))
        onnx_wrong(c, "queries %s for keys %s", sdlf_shape_print(q.shape).text,
                   sdlf_shape_print(onnx_shape(c, 1)).text);
    if (!onnx_ok(c)) return a;
    q = onnx_split_axis(c, onnx_split_axis(c, q, 2, heads), 3, readers / heads);
    a.q = onnx_transpose(c, q, (const int[]){0, 2, 1, 3, 4});
    if (a.scale == 0) a.scale = 1 / sqrt((double)a.k.shape.dim[2]);
    if (a.decays) a.decay = onnx_function(c, SDLF_UNARY_EXP, heads_apart(c, 4, heads, true));
    if (a.corrects) a.beta = heads_apart(c, 5, onnx_shape(c, 5).rank == 3 ? onnx_shape(c, 5).dim[2] : 0, false);
    a.has_state = onnx_has(c, 3);
    if (a.has_state) a.state = onnx_in(c, 3);
    return a;
}

static void convert_linear_attention(onnx_context *c)
{
    linear_attention a = attention_of(c);
    int64_t steps = onnx_ok(c) ? a.q.shape.dim[2] : 1;
    if (steps < 1 || steps > MOST_STEPS)
        onnx_unsupported(c, "a sequence of %lld steps: 1 to %d, which are unrolled, are supported", (long long)steps,
                         MOST_STEPS);
    onnx_flow *row = onnx_arena_array(&c->import->file->arena, (size_t)(onnx_ok(c) ? steps : 1), sizeof *row);
    if (row == NULL) onnx_no_memory(c);
    for (int64_t t = 0; t < steps && onnx_ok(c); t++)
        row[t] = onnx_split_axis(c, onnx_join_axes(c, step(c, &a, t), 1, 3), 1, 1);
    if (!onnx_ok(c)) return;
    onnx_set_output(c, 0, onnx_join(c, row, (int)steps, 1));
    if (c->output_count > 1) onnx_set_output(c, 1, a.state);
}

/* ---- CausalConvWithState ---- */

/* A depthwise convolution along time of the past state and x; and the last inputs, as the next call's state. */
static void convert_causal_conv(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    const onnx_tensor *weight = onnx_known(c, 1), *bias = onnx_has(c, 2) ? onnx_known(c, 2) : NULL;
    onnx_word activation = onnx_text(c, "activation", "none");
    bool silu = strcmp(activation.text, "silu") == 0 || strcmp(activation.text, "swish") == 0;
    if (!silu && strcmp(activation.text, "none") != 0) onnx_wrong(c, "attribute 'activation' is '%s'", activation.text);
    bool fits = onnx_ok(c) && x.shape.rank == 3 && weight->shape.rank == 3 && weight->shape.dim[0] == x.shape.dim[1] &&
                weight->shape.dim[1] == 1 && weight->shape.dim[2] >= 1 && weight->shape.dim[2] <= INT16_MAX &&
                weight->shape.dim[0] <= INT32_MAX && (bias == NULL || bias->count == weight->shape.dim[0]);
    if (onnx_ok(c) && !fits)
        onnx_wrong(c, "its weight is %s and its input %s", sdlf_shape_print(weight->shape).text,
                   sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    int64_t before = weight->shape.dim[2] - 1, length = x.shape.dim[2];
    if (onnx_has(c, 3)) {
        const onnx_flow both[] = {onnx_in(c, 3), x};
        if (before > 0) x = onnx_join(c, both, 2, 2);
    } else {
        x = onnx_pad_axis(c, x, 2, before, 0, 0);
    }
    if (onnx_ok(c) && x.shape.dim[2] != before + length)
        onnx_wrong(c, "its state is %s, and %lld steps of it are read", sdlf_shape_print(onnx_shape(c, 3)).text,
                   (long long)before);
    sdlf_conv2d_options options = {.filters = (int)weight->shape.dim[0],
                                   .groups = (int)weight->shape.dim[0],
                                   .kernel = {1, (int)weight->shape.dim[2]},
                                   .no_bias = bias == NULL};
    onnx_flow image = onnx_as_image(c, x), y = onnx_layer(c, "conv2d", &options, &image, 1);
    onnx_fill_with(c, y, "weight", (onnx_fill){.tensor = *weight});
    if (bias != NULL) onnx_fill_with(c, y, "bias", (onnx_fill){.tensor = *bias});
    y = onnx_as_before(c, y, 3);
    if (silu) y = onnx_elementwise(c, "mul", y, onnx_layer(c, "sigmoid", NULL, &y, 1));
    onnx_set_output(c, 0, y);
    if (c->output_count < 2 || c->output[1] == NULL) return;
    if (before == 0 && onnx_ok(c)) {
        sdlf_shape none = x.shape;
        none.dim[2] = 0;
        onnx_tensor empty = {.name = "", .type = ONNX_FLOAT, .shape = none, .data = ""};
        empty.batched = onnx_batch_axis(c, x) >= 0;
        onnx_set_output_constant(c, 1, &empty);
        return;
    }
    onnx_set_output(c, 1, onnx_take(c, x, 2, length, before, 1));
}

const onnx_operator onnx_state_operators[] = {
    {.type = "LinearAttention",
     .since = 27,
     .minimum_inputs = 3,
     .maximum_inputs = 6,
     .attributes = " chunk_size kv_num_heads q_num_heads scale update_rule ",
     .convert = convert_linear_attention},
    {.type = "CausalConvWithState",
     .since = 27,
     .minimum_inputs = 2,
     .maximum_inputs = 4,
     .known = 6,
     .attributes = " activation ",
     .convert = convert_causal_conv},
    {.type = NULL},
};
