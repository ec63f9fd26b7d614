/* SPDX-License-Identifier: MIT */
/* lstm and gru as the standard's LSTM and GRU, which have another gate order, and time as the first axis. */
#include "framework/formats/onnx/export/export.h"

/* Rows of a parameter, reordered in blocks of `units` rows per gate, with a leading axis of 1 for the direction. */
static const char *reordered(onnx_export *e, const char *name, const int *order, int gates, int64_t units)
{
    const char *parameter = export_parameter(e, name), *part[5] = {NULL};
    for (int i = 0; i < gates; i++) {
        int64_t start = order[i] * units, end = start + units, axis = 0;
        part[i] = export_step(e, "Slice",
                              (const char *const[]){parameter, export_list_integers(e, &start, 1),
                                                    export_list_integers(e, &end, 1), export_list_integers(e, &axis, 1),
                                                    NULL},
                              NULL);
    }
    return export_step(e, "Concat", part, (const export_attribute[]){export_integer("axis", 0), {0}});
}

static const char *with_direction(onnx_export *e, const char *x)
{
    return export_step2(e, "Unsqueeze", x, export_shape(e, sdlf_shape(0)));
}

static const char *biases(onnx_export *e, const int *order, int gates, int64_t units)
{
    const char *both[] = {reordered(e, "bias_ih", order, gates, units), reordered(e, "bias_hh", order, gates, units),
                          NULL};
    return export_step(e, "Concat", both, (const export_attribute[]){export_integer("axis", 0), {0}});
}

/* An initial state, expanded to the batch. */
static const char *state(onnx_export *e, int input, sdlf_shape shape)
{
    const char *given = export_in(e, input);
    if (export_varies(e, 0, 0) && !export_varies(e, input, 0)) export_needs_fixed_batch(e);
    if (!sdlf_shape_equal(export_in_shape(e, input), shape))
        given = export_step2(e, "Expand", given, export_shape(e, shape));
    return with_direction(e, given);
}

static void export_recurrent(onnx_export *e, const char *type, const int *order, int gates)
{
    const sdlf_recurrent_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0);
    for (int axis = 1; axis < x.rank; axis++)
        if (export_varies(e, 0, axis)) export_needs_fixed_batch(e);
    const export_attribute attributes[] = {
        export_integer("hidden_size", options->units),
        export_word("direction", options->reverse ? "reverse" : "forward"),
        gates == 3 ? export_integer("linear_before_reset", 1) : (export_attribute){0},
        {0},
    };
    const char *rows = export_step(e, "Transpose", (const char *const[]){export_in(e, 0), NULL},
                                   (const export_attribute[]){export_integers("perm", sdlf_shape(1, 0, 2)), {0}});
    const char *weight = with_direction(e, reordered(e, "weight_ih", order, gates, options->units));
    const char *recurrent = with_direction(e, reordered(e, "weight_hh", order, gates, options->units));
    const char *bias = options->no_bias ? "" : with_direction(e, biases(e, order, gates, options->units));
    const char *inputs[] = {rows, weight, recurrent, bias, NULL, NULL, NULL, NULL};
    for (int i = 1; i < export_in_count(e); i++)
        inputs[4] = "", inputs[4 + i] = state(e, i, sdlf_shape(x.dim[0], options->units));
    const char *y = export_step(e, type, inputs, attributes);
    y = export_step2(e, "Squeeze", y, export_shape(e, sdlf_shape(1))); /* (T,N,H) */
    if (!options->last) {
        export_node(e, "Transpose", (const char *const[]){y, NULL},
                    (const export_attribute[]){export_integers("perm", sdlf_shape(1, 0, 2)), {0}});
        return;
    }
    const char *at = export_number(e, options->reverse ? 0 : (double)(x.dim[1] - 1), SDLF_INT64);
    export_node(e, "Gather", (const char *const[]){y, at, NULL}, NULL); /* axis 0 */
}

void export_lstm(onnx_export *e)
{
    export_recurrent(e, "LSTM", (const int[]){0, 3, 1, 2}, 4); /* input, output, forget, cell */
}

void export_gru(onnx_export *e)
{
    export_recurrent(e, "GRU", (const int[]){1, 0, 2}, 3); /* update, reset, hidden */
}
