/* SPDX-License-Identifier: MIT */
/* LSTM, GRU and RNN. Variants that the layers lstm and gru do not support (recurrent_layers.c) are unrolled: one GEMM
 * of all inputs with the weights, then some layers per time step. The sequence length is that of the input during
 * import, at most 1024 steps; rows may end earlier (sequence_lens). */
#include <string.h>

#include "framework/formats/onnx/import/recurrent.h"

typedef struct activation {
    char name[16];
    float alpha, beta;
} activation;

/* One direction of a recurrent operator. */
typedef struct cell {
    int gates, direction;
    int64_t hidden, steps;
    bool backward;
    int time; /* axis of x */
    float clip;
    activation f[3];
    bool has_length;
    onnx_flow length;  /* (N,1) */
    onnx_flow product; /* x W^T plus all biases that can be added: (steps, N, gates hidden), or axes 0 and 1 swapped */
    onnx_flow recurrent; /* R, (gates hidden, hidden) */
    bool reset_last;     /* GRU's linear_before_reset */
    bool has_bias;
    onnx_flow bias; /* of GRU's hidden gate, (hidden), if it is reset too */
    bool has_peephole;
    onnx_flow peephole; /* (1, 3 hidden) */
    bool has_h, has_c;
    onnx_flow h, c; /* (N, hidden) */
} cell;

/* ---- attributes ---- */

static float listed(onnx_context *c, const char *name, int at, float fallback)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(c, name);
    return attribute != NULL && (size_t)at < attribute->n_floats ? attribute->floats[at] : fallback;
}

static activation activation_of(onnx_context *c, int at, const char *usual)
{
    static const struct {
        const char *name;
        float alpha, beta;
    } defaults[] = {{"LeakyRelu", 0.01f, 0}, {"HardSigmoid", 0.2f, 0.5f}, {"Elu", 1, 0}};
    activation f = {.alpha = 1};
    const Onnx__AttributeProto *attribute = onnx_attribute(c, "activations");
    size_t length = strlen(usual);
    const char *name = usual;
    if (attribute != NULL && (size_t)at < attribute->n_strings) {
        name = (const char *)attribute->strings[at].data;
        length = attribute->strings[at].len;
    }
    if (length < sizeof f.name) memcpy(f.name, name, length);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (strcmp(f.name, defaults[i].name) == 0) f.alpha = defaults[i].alpha, f.beta = defaults[i].beta;
    f.alpha = listed(c, "activation_alpha", at, f.alpha);
    f.beta = listed(c, "activation_beta", at, f.beta);
    return f;
}

static onnx_flow activate(onnx_context *c, const cell *k, int which, onnx_flow x)
{
    static const struct {
        const char *name, *layer;
    } plain[] = {{"Sigmoid", "sigmoid"}, {"Tanh", "tanh"}, {"Relu", "relu"}};
    const activation *f = &k->f[which];
    if (k->clip > 0) x = onnx_layer(c, "clip", &(sdlf_clip_options){.low = -k->clip, .high = k->clip}, &x, 1);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(f->name, plain[i].name) == 0) return onnx_layer(c, plain[i].layer, NULL, &x, 1);
    sdlf_unary_options unary = {.function = SDLF_UNARY_FUNCTION_COUNT, .alpha = f->alpha, .beta = f->beta};
    if (strcmp(f->name, "Softsign") == 0) unary.function = SDLF_UNARY_SOFTSIGN;
    if (strcmp(f->name, "Softplus") == 0) unary.function = SDLF_UNARY_SOFTPLUS;
    if (strcmp(f->name, "Elu") == 0 && f->alpha > 0) unary.function = SDLF_UNARY_ELU;
    if (strcmp(f->name, "HardSigmoid") == 0 && f->alpha > 0 && f->beta > 0) unary.function = SDLF_UNARY_HARD_SIGMOID;
    if (unary.function != SDLF_UNARY_FUNCTION_COUNT) return onnx_layer(c, "unary", &unary, &x, 1);
    if (strcmp(f->name, "LeakyRelu") == 0 && f->alpha > 0)
        return onnx_layer(c, "leaky_relu", &(sdlf_leaky_relu_options){.slope = f->alpha}, &x, 1);
    if (strcmp(f->name, "ScaledTanh") == 0) {
        x = onnx_with_number(c, "mul", x, (double)f->beta);
        return onnx_with_number(c, "mul", onnx_layer(c, "tanh", NULL, &x, 1), (double)f->alpha);
    }
    if (strcmp(f->name, "Affine") == 0)
        return onnx_with_number(c, "add", onnx_with_number(c, "mul", x, (double)f->alpha), (double)f->beta);
    onnx_unsupported(c, "activation '%s'", f->name);
    return x;
}

/* ---- inputs ---- */

/* Without axis `axis`, of length 1. */
static onnx_flow without(onnx_context *c, onnx_flow x, int axis)
{
    if (!onnx_ok(c)) return x;
    int batch = onnx_batch_axis(c, x);
    return onnx_reshape_batch(c, x, sdlf_shape_without(x.shape, axis), batch > axis ? batch - 1 : batch);
}

/* The direction's part of input i, and `count` elements of its second axis from `first` on; 0: all. */
static onnx_flow part(onnx_context *c, int input, int direction, int64_t first, int64_t count)
{
    onnx_flow x = onnx_in(c, input);
    if (onnx_ok(c) && (x.shape.rank < 2 || direction >= x.shape.dim[0] || first + count > x.shape.dim[1]))
        onnx_wrong(c, "input %d is %s", input, sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return x;
    x = without(c, onnx_take(c, x, 0, direction, 1, 1), 0);
    return count > 0 ? onnx_take(c, x, 0, first, count, 1) : x;
}

onnx_flow onnx_recurrent_state(onnx_context *c, int input, int direction, int64_t hidden, bool batch_first)
{
    int axis = batch_first ? 1 : 0;
    onnx_flow x = onnx_in(c, input);
    if (onnx_ok(c) && (x.shape.rank != 3 || x.shape.dim[axis] <= direction || x.shape.dim[2] != hidden))
        onnx_wrong(c, "input %d is %s", input, sdlf_shape_print(x.shape).text);
    return onnx_ok(c) ? without(c, onnx_take(c, x, axis, direction, 1, 1), axis) : x;
}

static onnx_flow state(onnx_context *c, int input, const cell *k)
{
    return onnx_recurrent_state(c, input, k->direction, k->hidden, k->time == 1);
}

/* ---- one step ---- */

static onnx_flow gate(onnx_context *c, const cell *k, onnx_flow gates, int first, int count)
{
    return onnx_take(c, gates, 1, first * k->hidden, count * k->hidden, 1);
}

/* sum + the peephole weights times the cell state */
static onnx_flow peep(onnx_context *c, const cell *k, onnx_flow sum, int which, onnx_flow state_of_cell)
{
    if (!k->has_peephole) return sum;
    onnx_flow weight = onnx_take(c, k->peephole, 0, which * k->hidden, k->hidden, 1);
    return onnx_elementwise(c, "add", sum, onnx_elementwise(c, "mul", weight, state_of_cell));
}

/* gates: input, output, forget, cell. */
static void lstm(onnx_context *c, cell *k, onnx_flow x)
{
    onnx_flow gates = k->has_h ? onnx_elementwise(c, "add", x, onnx_product(c, k->h, k->recurrent, true)) : x;
    bool peeps = k->has_peephole && k->has_c;
    onnx_flow cell_gate = activate(c, k, 1, gate(c, k, gates, 3, 1)), in, forget = cell_gate, out, three = gates;
    if (!k->has_peephole) three = activate(c, k, 0, gate(c, k, gates, 0, 3));
    in = gate(c, k, three, 0, 1);
    if (peeps) in = peep(c, k, in, 0, k->c);
    if (k->has_peephole) in = activate(c, k, 0, in);
    onnx_flow next = onnx_elementwise(c, "mul", in, cell_gate);
    if (k->has_c) {
        forget = gate(c, k, three, 2, 1);
        if (peeps) forget = activate(c, k, 0, peep(c, k, forget, 2, k->c));
        next = onnx_elementwise(c, "add", onnx_elementwise(c, "mul", forget, k->c), next);
    }
    out = gate(c, k, three, 1, 1);
    if (k->has_peephole) out = activate(c, k, 0, peep(c, k, out, 1, next));
    cell free_of_clip = *k;
    free_of_clip.clip = 0; /* which applies to the gates only */
    k->c = next;
    k->h = onnx_elementwise(c, "mul", out, activate(c, &free_of_clip, 2, next));
}

/* gates: update, reset, hidden. */
static void gru(onnx_context *c, cell *k, onnx_flow x)
{
    onnx_flow two = gate(c, k, x, 0, 2), hidden = gate(c, k, x, 2, 1), add = hidden;
    onnx_flow first = onnx_take(c, k->recurrent, 0, 0, 2 * k->hidden, 1);
    onnx_flow last = onnx_take(c, k->recurrent, 0, 2 * k->hidden, k->hidden, 1);
    if (k->has_h) two = onnx_elementwise(c, "add", two, onnx_product(c, k->h, first, true));
    two = activate(c, k, 0, two);
    onnx_flow update = gate(c, k, two, 0, 1), reset = gate(c, k, two, 1, 1);
    bool adds = k->has_h || k->has_bias;
    if (k->reset_last && adds) {
        if (k->has_h) add = onnx_product(c, k->h, last, true);
        if (k->has_bias) add = k->has_h ? onnx_elementwise(c, "add", add, k->bias) : k->bias;
        add = onnx_elementwise(c, "mul", reset, add);
    } else if (k->has_h) {
        add = onnx_product(c, onnx_elementwise(c, "mul", reset, k->h), last, true);
    }
    if (adds) hidden = onnx_elementwise(c, "add", hidden, add);
    hidden = activate(c, k, 1, hidden);
    onnx_flow rest = onnx_layer(
        c, "binary", &(sdlf_binary_layer_options){.function = SDLF_LAYER_SUBTRACT, .scalar = 1, .scalar_first = true},
        &update, 1);
    onnx_flow next = onnx_elementwise(c, "mul", rest, hidden);
    if (k->has_h) next = onnx_elementwise(c, "add", next, onnx_elementwise(c, "mul", update, k->h));
    k->h = next;
}

static void rnn(onnx_context *c, cell *k, onnx_flow x)
{
    if (k->has_h) x = onnx_elementwise(c, "add", x, onnx_product(c, k->h, k->recurrent, true));
    k->h = activate(c, k, 0, x);
}

static void step(onnx_context *c, cell *k, int64_t t, onnx_flow *y)
{
    onnx_flow x = without(c, onnx_take(c, k->product, k->time, t, 1, 1), k->time);
    onnx_flow zero = onnx_number(c, SDLF_FLOAT32, 0), h = k->has_h ? k->h : zero,
              state_of_cell = k->has_c ? k->c : zero;
    if (k->gates == 4) lstm(c, k, x);
    if (k->gates == 3) gru(c, k, x);
    if (k->gates == 1) rnn(c, k, x);
    *y = k->h;
    if (k->has_length) { /* rows that have ended, or in reverse not started, keep their state */
        onnx_flow within = onnx_with_number(c, "greater", k->length, (double)t);
        *y = onnx_choose(c, within, k->h, zero);
        k->h = onnx_choose(c, within, k->h, h);
        if (k->gates == 4) k->c = onnx_choose(c, within, k->c, state_of_cell);
    }
    k->has_h = true;
    k->has_c = k->gates == 4;
}

/* ---- the operator ---- */

static cell make_cell(onnx_context *c, int gates, int direction, int directions)
{
    onnx_word how = onnx_text(c, "direction", "forward");
    cell k = {.gates = gates, .direction = direction, .time = onnx_flag(c, "layout", false)};
    static const char *const usual[5][3] = {
        [1] = {"Tanh"}, [3] = {"Sigmoid", "Tanh"}, [4] = {"Sigmoid", "Tanh", "Tanh"}};
    int functions = gates == 4 ? 3 : gates == 3 ? 2 : 1;
    onnx_flow x = onnx_in(c, 0), weight = part(c, 1, direction, 0, 0);
    k.recurrent = part(c, 2, direction, 0, 0);
    k.backward = strcmp(how.text, "reverse") == 0 || direction == 1;
    k.clip = onnx_real(c, "clip", 0);
    if (onnx_flag(c, "input_forget", false)) onnx_unsupported(c, "attribute 'input_forget' other than 0");
    if (directions > 1 && onnx_ok(c) && onnx_shape(c, 1).dim[0] != 2)
        onnx_wrong(c, "weights of two directions were expected");
    if (onnx_ok(c) && (x.shape.rank != 3 || weight.shape.rank != 2 || k.recurrent.shape.rank != 2 ||
                       weight.shape.dim[0] != k.recurrent.shape.dim[0] ||
                       k.recurrent.shape.dim[0] != gates * k.recurrent.shape.dim[1]))
        onnx_wrong(c, "inputs of shape %s, weights %s and %s", sdlf_shape_print(x.shape).text,
                   sdlf_shape_print(weight.shape).text, sdlf_shape_print(k.recurrent.shape).text);
    if (!onnx_ok(c)) return k;
    k.hidden = k.recurrent.shape.dim[1];
    k.steps = x.shape.dim[k.time];
    if (onnx_integer(c, "hidden_size", k.hidden) != k.hidden)
        onnx_wrong(c, "attribute 'hidden_size' is not %lld", (long long)k.hidden);
    for (int i = 0; i < functions; i++) k.f[i] = activation_of(c, direction * functions + i, usual[gates][i]);
    k.product = onnx_product(c, x, weight, true);
    k.reset_last = gates == 3 && onnx_integer(c, "linear_before_reset", 0) != 0;
    if (onnx_has(c, 3)) {
        int64_t all = gates * k.hidden;
        onnx_flow own = part(c, 3, direction, 0, all), other = part(c, 3, direction, all, all);
        k.has_bias = k.reset_last;
        if (k.reset_last) {
            k.bias = onnx_take(c, other, 0, 2 * k.hidden, k.hidden, 1);
            other = onnx_pad_axis(c, onnx_take(c, other, 0, 0, 2 * k.hidden, 1), 0, 0, k.hidden, 0);
        }
        k.product = onnx_elementwise(c, "add", k.product, onnx_elementwise(c, "add", own, other));
    }
    if (onnx_has(c, 4)) {
        k.has_length = true;
        k.length = onnx_cast(c, onnx_in(c, 4), SDLF_INT64);
        k.length = onnx_split_axis(c, k.length, 0, k.length.shape.dim[0]);
    }
    k.has_h = onnx_has(c, 5);
    if (k.has_h) k.h = state(c, 5, &k);
    k.has_c = gates == 4 && onnx_has(c, 6);
    if (k.has_c) k.c = state(c, 6, &k);
    k.has_peephole = gates == 4 && onnx_has(c, 7);
    if (k.has_peephole) k.peephole = part(c, 7, direction, 0, 3 * k.hidden);
    return k;
}

onnx_flow onnx_recurrent_with_axes(onnx_context *c, onnx_flow x, int first, int second)
{
    for (int i = 0; i < 2 && onnx_ok(c); i++) {
        int axis = i == 0 ? first : second, batch = onnx_batch_axis(c, x);
        if (axis < 0) continue;
        sdlf_shape shape = {.rank = x.shape.rank + 1};
        for (int d = 0; d < shape.rank; d++) shape.dim[d] = d == axis ? 1 : x.shape.dim[d - (d > axis)];
        x = onnx_reshape_batch(c, x, shape, batch >= axis ? batch + 1 : batch);
    }
    return x;
}

enum { MOST_STEPS = 1024 };

static void convert_recurrent(onnx_context *c)
{
    int gates = c->type->type[0] == 'L' ? 4 : c->type->type[0] == 'G' ? 3 : 1;
    onnx_word how = onnx_text(c, "direction", "forward");
    int directions = strcmp(how.text, "bidirectional") == 0 ? 2 : 1;
    bool layout = onnx_flag(c, "layout", false);
    onnx_flow y[2], h[2], state_of_cell[2];
    if (directions == 1 && strcmp(how.text, "forward") != 0 && strcmp(how.text, "reverse") != 0)
        onnx_wrong(c, "attribute 'direction' is '%s'", how.text);
    if (onnx_recurrent_as_layers(c, gates, directions)) return;
    for (int d = 0; d < directions && onnx_ok(c); d++) {
        cell k = make_cell(c, gates, d, directions);
        if (onnx_ok(c) && (k.steps < 1 || k.steps > MOST_STEPS))
            onnx_unsupported(c, "a sequence of %lld steps, which are unrolled: 1 to %d were expected",
                             (long long)k.steps, MOST_STEPS);
        onnx_flow *parts = onnx_arena_array(&c->import->file->arena, MOST_STEPS, sizeof *parts);
        if (parts == NULL) onnx_no_memory(c);
        for (int64_t i = 0; i < k.steps && onnx_ok(c); i++) {
            int64_t t = k.backward ? k.steps - 1 - i : i;
            step(c, &k, t, &parts[t]);
            parts[t] = onnx_recurrent_with_axes(c, parts[t], layout ? 1 : 0, layout ? 2 : 1);
        }
        if (!onnx_ok(c)) return;
        y[d] = onnx_join(c, parts, (int)k.steps, layout ? 1 : 0);
        h[d] = onnx_recurrent_with_axes(c, k.h, layout ? 1 : 0, -1);
        if (gates == 4) state_of_cell[d] = onnx_recurrent_with_axes(c, k.c, layout ? 1 : 0, -1);
    }
    if (!onnx_ok(c)) return;
    onnx_set_output(c, 0, onnx_join(c, y, directions, layout ? 2 : 1));
    onnx_set_output(c, 1, onnx_join(c, h, directions, layout ? 1 : 0));
    if (gates == 4) onnx_set_output(c, 2, onnx_join(c, state_of_cell, directions, layout ? 1 : 0));
}

const onnx_operator onnx_recurrent_operators[] = {
    {.type = "LSTM",
     .since = 7,
     .minimum_inputs = 3,
     .maximum_inputs = 8,
     .attributes = " activation_alpha activation_beta activations clip direction hidden_size input_forget layout ",
     .convert = convert_recurrent},
    {.type = "GRU",
     .since = 7,
     .minimum_inputs = 3,
     .maximum_inputs = 6,
     .attributes =
         " activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset ",
     .convert = convert_recurrent},
    {.type = "RNN",
     .since = 7,
     .minimum_inputs = 3,
     .maximum_inputs = 6,
     .attributes = " activation_alpha activation_beta activations clip direction hidden_size layout ",
     .convert = convert_recurrent},
    {.type = NULL},
};
