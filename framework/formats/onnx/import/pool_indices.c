/* SPDX-License-Identifier: MIT */
/* MaxPool's second output: the index of the maximum of each window, counted through all of x.
 *
 * The windows' elements are concatenated to (N,C,K,M) for K elements of a window and M windows; arg_reduce finds
 * which of the K is the maximum, the first of equal ones; a table gives its offset from the window's start, and a
 * constant the start of each window. Padding elements are lower than all others; values below -3.3e38 are treated as
 * padding.
 *
 * The constant is valid for the batch that the model is made for: another one does not match the preceding reshape,
 * and is rejected. */
#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

enum { MOST_ELEMENTS = 256 }; /* of a window: each is a layer of its own */
static const double lowest = -3.4e38;

/* The geometry of x's own axes, from 2 on. */
typedef struct places {
    int rank; /* of the window */
    const onnx_window *window;
    int first;                                 /* the window's axis that corresponds to x's axis 2 */
    int64_t count[ONNX_AXES], step[ONNX_AXES]; /* windows along an axis; elements from one index to the next */
    int64_t elements, windows, channels,
        image; /* of a window; in a channel; channels times batch; elements of a channel */
} places;

static places places_of(onnx_context *c, sdlf_shape x, const onnx_window *window, bool column_major)
{
    places p = {.rank = x.rank - 2, .window = window, .first = ONNX_AXES - (x.rank - 2), .elements = 1, .windows = 1};
    p.channels = x.dim[0] * x.dim[1];
    p.image = sdlf_shape_span(x, 2, x.rank);
    for (int i = 0; i < p.rank; i++) {
        int axis = p.first + i;
        p.elements *= window->size[axis];
        p.count[i] = onnx_window_count(c, window, axis, x.dim[2 + i]);
        if (onnx_ok(c) && (p.elements > MOST_ELEMENTS || p.count[i] > ONNX_FOLD_LIMIT / p.windows))
            onnx_unsupported(c, "its output 1 for windows of more than %d elements, or more than %d windows",
                             (int)MOST_ELEMENTS, (int)ONNX_FOLD_LIMIT);
        if (!onnx_ok(c)) return p;
        p.windows *= p.count[i];
    }
    int64_t step = 1;
    for (int i = 0; i < p.rank; i++) {
        int axis = column_major ? i : p.rank - 1 - i;
        p.step[axis] = step;
        step *= x.dim[2 + axis];
    }
    return p;
}

/* Converts a row-major linear index to coordinates. */
static void unravel(int64_t number, const int64_t *side, int rank, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = number % side[i];
        number /= side[i];
    }
}

/* (N,C,K,M) */
static onnx_flow unfold(onnx_context *c, onnx_flow x, const places *p)
{
    const onnx_window *w = p->window;
    int64_t side[ONNX_AXES], index[ONNX_AXES], batch = x.shape.dim[0], channels = x.shape.dim[1];
    onnx_flow part[MOST_ELEMENTS];
    bool padded = false;
    for (int i = 0; i < p->rank; i++) padded = padded || w->before[p->first + i] > 0 || w->after[p->first + i] > 0;
    if (padded) x = onnx_with_number(c, "max", x, -3.3e38);
    for (int i = 0; i < p->rank; i++) {
        side[i] = w->size[p->first + i];
        x = onnx_pad_axis(c, x, 2 + i, w->before[p->first + i], w->after[p->first + i], lowest);
    }
    for (int64_t k = 0; k < p->elements && onnx_ok(c); k++) {
        unravel(k, side, p->rank, index);
        part[k] = x;
        for (int i = 0; i < p->rank; i++)
            part[k] = onnx_take(c, part[k], 2 + i, index[i] * w->dilation[p->first + i], p->count[i],
                                w->stride[p->first + i]);
        part[k] = onnx_reshape(c, part[k], sdlf_shape(batch, channels, 1, p->windows));
    }
    return onnx_ok(c) ? onnx_join(c, part, (int)p->elements, 2) : x;
}

/* The offset of element k of a window from the window's start. */
static onnx_flow distances(onnx_context *c, const places *p)
{
    int64_t table[MOST_ELEMENTS], side[ONNX_AXES], index[ONNX_AXES];
    for (int i = 0; i < p->rank; i++) side[i] = p->window->size[p->first + i];
    for (int64_t k = 0; k < p->elements; k++) {
        unravel(k, side, p->rank, index);
        table[k] = 0;
        for (int i = 0; i < p->rank; i++) table[k] += index[i] * p->window->dilation[p->first + i] * p->step[i];
    }
    onnx_tensor tensor = onnx_new_integers(c, table, (int)p->elements);
    return onnx_constant_layer(c, &tensor);
}

/* The start of each window, (N C, M); in the padding it may be before element 0. */
static onnx_flow beginnings(onnx_context *c, const places *p)
{
    onnx_tensor tensor = {.count = 0};
    if (p->channels > ONNX_FOLD_LIMIT) onnx_unsupported(c, "its output 1 for %lld channels", (long long)p->channels);
    if (onnx_ok(c)) tensor = onnx_new_tensor(c, ONNX_INT64, sdlf_shape(p->channels, p->windows));
    int64_t *at = (int64_t *)tensor.data, index[ONNX_AXES];
    for (int64_t channel = 0; channel < p->channels && onnx_ok(c); channel++)
        for (int64_t m = 0; m < p->windows; m++, at++) {
            unravel(m, p->count, p->rank, index);
            *at = channel * p->image;
            for (int i = 0; i < p->rank; i++)
                *at += (index[i] * p->window->stride[p->first + i] - p->window->before[p->first + i]) * p->step[i];
        }
    return onnx_constant_layer(c, &tensor);
}

onnx_flow onnx_pool_indices(onnx_context *c, onnx_flow x, const onnx_window *window, bool column_major)
{
    if (!onnx_ok(c)) return x;
    places p = places_of(c, x.shape, window, column_major);
    onnx_flow windows = unfold(c, x, &p);
    onnx_flow which = onnx_layer(c, "arg_reduce", &(sdlf_arg_reduce_layer_options){.axis = 2}, &windows, 1);
    which = onnx_layer(c, "reshape", &(sdlf_reshape_options){.shape = sdlf_shape(p.channels, p.windows), .whole = true},
                       &which, 1);
    onnx_flow lookup[] = {distances(c, &p), which};
    onnx_flow terms[] = {onnx_layer(c, "gather", &(sdlf_gather_options){.axis = -1}, lookup, 2), beginnings(c, &p)};
    sdlf_shape shape = {.rank = x.shape.rank, .dim = {x.shape.dim[0], x.shape.dim[1]}};
    for (int i = 0; i < p.rank; i++) shape.dim[2 + i] = p.count[i];
    return onnx_reshape(c, onnx_binary(c, "add", terms), shape);
}
