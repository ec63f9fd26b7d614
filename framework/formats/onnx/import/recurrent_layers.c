/* SPDX-License-Identifier: MIT */
/* LSTM and GRU as the layers lstm and gru: with constant weights, the default activations, and for GRU
 * linear_before_reset. Not supported are row lengths, peepholes, clipping and the last cell state of LSTM. */
#include <string.h>

#include "framework/formats/onnx/import/recurrent.h"

enum { X, W, R, B, LENGTHS, H0, C0, PEEPHOLES };

static bool has_usual_activations(onnx_context *c, int gates, int directions)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    size_t each = gates == 4 ? 3 : 2;
    const Onnx__AttributeProto *attribute = onnx_attribute(c, "activations");
    if (attribute == NULL) return true;
    for (size_t i = 0; i < attribute->n_strings && i < each * (size_t)directions; i++) {
        const char *wanted = usual[i % each];
        bool same = attribute->strings[i].len == strlen(wanted) &&
                    memcmp(attribute->strings[i].data, wanted, attribute->strings[i].len) == 0;
        if (!same) return false;
    }
    return true;
}

/* True if the input is a constant whose elements all have that value. */
static bool is_all(onnx_context *c, int input, double value)
{
    const onnx_tensor *tensor = onnx_is_constant(c, input) ? onnx_known(c, input) : NULL;
    if (tensor == NULL || tensor->learned) return false;
    for (int64_t i = 0; i < tensor->count; i++) {
        double element;
        onnx_tensor_convert(tensor, i, 1, SDLF_FLOAT64, &element);
        if (element < value || element > value) return false;
        if (tensor->uniform) return true;
    }
    return true;
}

/* True if the initial state is not zero. */
static bool starts_from(onnx_context *c, int input)
{
    return onnx_has(c, input) && !is_all(c, input, 0);
}

/* Checks the shapes of the weights. */
static bool have_shapes(onnx_context *c, int gates, int directions, int64_t hidden)
{
    sdlf_shape x = onnx_shape(c, X), w = onnx_shape(c, W), r = onnx_shape(c, R);
    if (x.rank != 3 || w.rank != 3 || r.rank != 3 || hidden < 1) return false;
    int64_t rows = gates * hidden;
    if (!sdlf_shape_equal(w, sdlf_shape(directions, rows, x.dim[2])) ||
        !sdlf_shape_equal(r, sdlf_shape(directions, rows, hidden)))
        return false;
    return !onnx_has(c, B) || sdlf_shape_equal(onnx_shape(c, B), sdlf_shape(directions, 2 * rows));
}

static bool are_layers(onnx_context *c, int gates, int directions, int time)
{
    sdlf_shape r = onnx_shape(c, R);
    int64_t hidden = r.rank == 3 ? r.dim[2] : 0;
    bool constant = onnx_is_constant(c, W) && onnx_is_constant(c, R) && (!onnx_has(c, B) || onnx_is_constant(c, B));
    if (!constant || onnx_is_constant(c, X) || !has_usual_activations(c, gates, directions)) return false;
    if (onnx_has_attribute(c, "clip") || onnx_flag(c, "input_forget", false)) return false;
    if (onnx_integer(c, "hidden_size", hidden) != hidden || !have_shapes(c, gates, directions, hidden)) return false;
    if (gates == 3 && onnx_integer(c, "linear_before_reset", 0) == 0) return false;
    if (gates == 4 && onnx_has(c, PEEPHOLES)) return false;
    if (gates == 4 && c->output_count > 2 && c->output[2] != NULL && c->output[2]->readers > 0) return false;
    if (gates == 4 && starts_from(c, H0) != starts_from(c, C0)) return false;
    onnx_flow x = onnx_in(c, X);
    if (!onnx_ok(c) || x.dtype != SDLF_FLOAT32 || onnx_batch_axis(c, x) == time) return false;
    return !onnx_has(c, LENGTHS) || is_all(c, LENGTHS, (double)x.shape.dim[time]);
}

/* The layer of one direction, (N,T,hidden). */
static onnx_flow make_layer(onnx_context *c, onnx_flow x, int gates, int direction, bool batch_first)
{
    static const int order[2][4] = {{1, 0, 2},
                                    {0, 2, 3, 1}}; /* of the standard's gates: the layers' are r, z, n; i, f, g, o */
    int64_t hidden = onnx_shape(c, R).dim[2], rows = gates * hidden, columns = x.shape.dim[2];
    onnx_word how = onnx_text(c, "direction", "forward");
    bool starts = starts_from(c, H0), reverse = strcmp(how.text, "reverse") == 0 || direction == 1;
    onnx_flow inputs[3] = {x};
    for (int i = 0; i < gates - 2 && starts; i++)
        inputs[1 + i] = onnx_recurrent_state(c, H0 + i, direction, hidden, batch_first);
    sdlf_recurrent_options options = {.units = (int)hidden, .reverse = reverse, .no_bias = !onnx_has(c, B)};
    onnx_flow y = onnx_layer(c, gates == 4 ? "lstm" : "gru", &options, inputs, starts ? gates - 1 : 1);
    const struct {
        const char *parameter;
        int input;
        int64_t first, block;
    } fill[] = {{"weight_ih", W, direction * rows * columns, hidden * columns},
                {"weight_hh", R, direction * rows * hidden, hidden * hidden},
                {"bias_ih", B, 2 * direction * rows, hidden},
                {"bias_hh", B, (2 * direction + 1) * rows, hidden}};
    for (int i = 0; i < (onnx_has(c, B) ? 4 : 2) && onnx_ok(c); i++) {
        onnx_fill one = {.tensor = c->input[fill[i].input]->tensor, .first = fill[i].first, .block = fill[i].block};
        memcpy(one.order, order[gates - 3], sizeof one.order);
        onnx_fill_with(c, y, fill[i].parameter, one);
    }
    return y;
}

bool onnx_recurrent_as_layers(onnx_context *c, int gates, int directions)
{
    static const int exchanged[] = {1, 0, 2};
    bool batch_first = onnx_flag(c, "layout", false);
    int time = batch_first ? 1 : 0;
    onnx_flow y[2], h[2];
    if (!onnx_ok(c) || gates < 3 || !are_layers(c, gates, directions, time)) return false;
    onnx_word how = onnx_text(c, "direction", "forward");
    onnx_flow x = onnx_in(c, X);
    if (!batch_first) x = onnx_transpose(c, x, exchanged);
    for (int d = 0; d < directions && onnx_ok(c); d++) {
        onnx_flow states = make_layer(c, x, gates, d, batch_first);
        bool reverse = strcmp(how.text, "reverse") == 0 || d == 1;
        if (!onnx_ok(c)) return true;
        onnx_flow last = onnx_take(c, states, 1, reverse ? 0 : states.shape.dim[1] - 1, 1, 1); /* (N,1,hidden) */
        h[d] = batch_first ? last : onnx_transpose(c, last, exchanged);
        y[d] = onnx_recurrent_with_axes(c, batch_first ? states : onnx_transpose(c, states, exchanged),
                                        batch_first ? 2 : 1, -1);
    }
    if (!onnx_ok(c)) return true;
    onnx_set_output(c, 0, onnx_join(c, y, directions, batch_first ? 2 : 1));
    onnx_set_output(c, 1, onnx_join(c, h, directions, batch_first ? 1 : 0));
    return true;
}
