/* SPDX-License-Identifier: MIT */
/* Attention and RotaryEmbedding, decomposed into matrix products and a softmax. */
#include <math.h>

#include "framework/formats/onnx/import/compose.h"

/* ---- Attention ---- */

typedef struct attention {
    onnx_flow q, k, v; /* (N, heads, length, size) */
    int64_t past;      /* keys in `past_key` */
    bool has_length;
    onnx_flow length; /* number of valid keys, (N,1,1,1) */
    bool has_allowed, has_bias;
    onnx_flow allowed; /* bool, broadcasts with (N, heads, queries, keys): others get weight 0 */
    onnx_flow bias;    /* added to scores */
} attention;

/* Splits heads: (N, length, heads size) to (N, heads, length, size), which a 4-D input already is. */
static onnx_flow heads_apart(onnx_context *c, onnx_flow x, const char *attribute)
{
    int64_t heads = onnx_integer(c, attribute, 0);
    if (!onnx_ok(c) || x.shape.rank == 4) return x;
    if (x.shape.rank != 3 || heads < 1 || x.shape.dim[2] % heads != 0) {
        onnx_wrong(c, "an input %s, and attribute '%s' is %lld", sdlf_shape_print(x.shape).text, attribute,
                   (long long)heads);
        return x;
    }
    return onnx_transpose(c, onnx_split_axis(c, x, 2, heads), (const int[]){0, 2, 1, 3});
}

static onnx_flow with_past(onnx_context *c, onnx_flow x, int past)
{
    const onnx_flow both[] = {onnx_in(c, past), x};
    return onnx_join(c, both, 2, 2);
}

static void allow(onnx_context *c, attention *a, onnx_flow these)
{
    a->allowed = a->has_allowed ? onnx_elementwise(c, "and", a->allowed, these) : these;
    a->has_allowed = true;
}

/* The indices of queries and of keys, counted from the first key: (queries,1) and (keys). */
static onnx_flow queries(onnx_context *c, const attention *a)
{
    int64_t count = a->q.shape.dim[2];
    onnx_flow own = onnx_count_up(c, a->has_length ? -count : a->past, 1, count, 0, 2);
    return a->has_length ? onnx_elementwise(c, "add", own, a->length) : own;
}

/* Allows keys no later than the query, or within a window around it; and only valid keys. */
static void allow_places(onnx_context *c, attention *a)
{
    int64_t left = onnx_integer(c, "left_window_size", -1), right = onnx_integer(c, "right_window_size", -1);
    bool causal = onnx_flag(c, "is_causal", false);
    onnx_flow keys = onnx_count_up(c, 0, 1, a->k.shape.dim[2], 0, 1);
    if (left < -1 || right < -1) onnx_wrong(c, "attribute 'left_window_size' or 'right_window_size'");
    if (a->has_length) allow(c, a, onnx_elementwise(c, "less", keys, a->length));
    if (causal) allow(c, a, onnx_elementwise(c, "less_equal", keys, queries(c, a)));
    if (left >= 0)
        allow(c, a,
              onnx_elementwise(c, "greater_equal", keys, onnx_with_number(c, "sub", queries(c, a), (double)left)));
    if (right >= 0)
        allow(c, a, onnx_elementwise(c, "less_equal", keys, onnx_with_number(c, "add", queries(c, a), (double)right)));
}

/* The mask may cover fewer keys than there are; the remaining ones are then excluded. */
static void allow_mask(onnx_context *c, attention *a)
{
    onnx_flow mask = onnx_in(c, 3);
    int64_t keys = a->k.shape.dim[2];
    bool truth = mask.dtype == SDLF_BOOL;
    int last = mask.shape.rank - 1;
    if (onnx_ok(c) && (last < 0 || mask.shape.dim[last] > keys))
        onnx_wrong(c, "a mask of shape %s for %lld keys", sdlf_shape_print(mask.shape).text, (long long)keys);
    if (!onnx_ok(c)) return;
    int64_t missing = keys - mask.shape.dim[last];
    if (missing > 0) {
        onnx_flow places = onnx_count_up(c, 0, 1, keys, 0, 1);
        allow(c, a, onnx_with_number(c, "less", places, (double)mask.shape.dim[last]));
        mask = onnx_pad_axis(c, onnx_cast(c, mask, SDLF_FLOAT32), last, 0, missing, 0);
        if (truth) mask = onnx_with_number(c, "greater", mask, 0);
    }
    if (truth) {
        allow(c, a, mask);
        return;
    }
    a->bias = mask;
    a->has_bias = true;
}

/* Scores of (N, heads, queries, keys). If several query heads share a key head (grouped-query attention), they form a
 * temporary axis of their own. */
static onnx_flow grouped_product(onnx_context *c, onnx_flow x, onnx_flow shared, bool transpose)
{
    int64_t own = x.shape.dim[1], groups = shared.shape.dim[1];
    if (!onnx_ok(c) || own == groups) return onnx_product(c, x, shared, transpose);
    if (groups < 1 || own % groups != 0)
        onnx_wrong(c, "%lld heads of queries, and %lld of keys", (long long)own, (long long)groups);
    x = onnx_split_axis(c, x, 1, groups);
    onnx_flow one = onnx_split_axis(c, shared, 1, groups);
    return onnx_join_axes(c, onnx_product(c, x, one, transpose), 1, 2);
}

/* Rows in which all keys are masked get weight 0: their softmax would be NaN. */
static onnx_flow weights(onnx_context *c, const attention *a, onnx_flow scores)
{
    onnx_flow y = onnx_softmax(c, scores, 3), none = onnx_number(c, SDLF_FLOAT32, -INFINITY);
    if (!a->has_allowed && !a->has_bias) return y;
    onnx_flow bias = a->bias;
    if (a->has_allowed)
        bias = onnx_choose(c, a->allowed, a->has_bias ? a->bias : onnx_number(c, SDLF_FLOAT32, 0), none);
    onnx_flow largest = onnx_reduce(c, bias, SDLF_REDUCE_LAYER_MAX, sdlf_shape(-1), true);
    return onnx_choose(c, onnx_elementwise(c, "equal", largest, none), onnx_number(c, SDLF_FLOAT32, 0), y);
}

static void check_inputs(onnx_context *c, const attention *a)
{
    if (onnx_ok(c) && (onnx_has(c, 4) != onnx_has(c, 5) || (onnx_has(c, 4) && onnx_has(c, 6))))
        onnx_wrong(c, "past keys and values come together, and without the number of keys");
    if (onnx_ok(c) && (a->q.shape.rank != 4 || a->k.shape.rank != 4 || a->v.shape.rank != 4))
        onnx_wrong(c, "inputs of three or four dimensions were expected");
}

static void convert_attention(onnx_context *c)
{
    attention a = {.has_bias = false};
    bool flat = onnx_shape(c, 0).rank == 3;
    double cap = (double)onnx_real(c, "softcap", 0);
    int64_t mode = onnx_integer(c, "qk_matmul_output_mode", 0);
    a.q = heads_apart(c, onnx_in(c, 0), "q_num_heads");
    a.k = heads_apart(c, onnx_in(c, 1), "kv_num_heads");
    a.v = heads_apart(c, onnx_in(c, 2), "kv_num_heads");
    check_inputs(c, &a);
    if (!onnx_ok(c)) return;
    if (onnx_has(c, 4)) {
        a.past = onnx_shape(c, 4).rank == 4 ? onnx_shape(c, 4).dim[2] : 0;
        a.k = with_past(c, a.k, 4);
        a.v = with_past(c, a.v, 5);
    }
    if (onnx_has(c, 6)) {
        a.length = onnx_cast(c, onnx_in(c, 6), SDLF_INT64);
        for (int i = 0; i < 3 && onnx_ok(c); i++) a.length = onnx_split_axis(c, a.length, i, a.length.shape.dim[i]);
        a.has_length = true;
    }
    onnx_set_output(c, 1, a.k);
    onnx_set_output(c, 2, a.v);
    allow_places(c, &a);
    if (onnx_has(c, 3)) allow_mask(c, &a);
    double scale =
        onnx_has_attribute(c, "scale") ? (double)onnx_real(c, "scale", 1) : 1 / sqrt((double)a.q.shape.dim[3]);
    onnx_flow scores = grouped_product(c, onnx_with_number(c, "mul", a.q, scale), a.k, true);
    if (mode == 0) onnx_set_output(c, 3, scores);
    if (cap > 0) {
        onnx_flow part = onnx_with_number(c, "mul", scores, 1 / cap);
        scores = onnx_with_number(c, "mul", onnx_layer(c, "tanh", NULL, &part, 1), cap);
    }
    if (mode == 1) onnx_set_output(c, 3, scores);
    if (a.has_bias) scores = onnx_elementwise(c, "add", scores, a.bias);
    if (a.has_allowed) scores = onnx_choose(c, a.allowed, scores, onnx_number(c, SDLF_FLOAT32, -INFINITY));
    if (mode == 2) onnx_set_output(c, 3, scores);
    scores = weights(c, &a, scores);
    if (mode == 3) onnx_set_output(c, 3, scores);
    onnx_flow y = grouped_product(c, scores, a.v, false);
    if (flat) y = onnx_join_axes(c, onnx_transpose(c, y, (const int[]){0, 2, 1, 3}), 2, 3);
    onnx_set_output(c, 0, y);
}

/* ---- RotaryEmbedding ---- */

/* The cosines or sines of every token, with an axis of 1 at `heads` to broadcast with x. */
static onnx_flow angles(onnx_context *c, int input, int heads)
{
    onnx_flow cache = onnx_in(c, input);
    if (onnx_has(c, 3)) cache = onnx_gather(c, cache, onnx_in(c, 3), 0);
    if (onnx_ok(c) && cache.shape.rank != 3) onnx_wrong(c, "its cosines are %s", sdlf_shape_print(cache.shape).text);
    if (!onnx_ok(c)) return cache;
    return onnx_split_axis(c, cache, heads, 1);
}

/* Rotates pairs of elements of each head's vector by the angle of their token: elements half of it apart, or
 * neighbours. */
static void convert_rotary(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    int64_t turned = onnx_integer(c, "rotary_embedding_dim", 0), count = onnx_integer(c, "num_heads", 0);
    bool interleaved = onnx_flag(c, "interleaved", false), flat = x.shape.rank == 3;
    if (flat) x = onnx_split_axis(c, x, 2, count); /* (N, length, heads, size) */
    if (onnx_ok(c) && x.shape.rank != 4) onnx_wrong(c, "its input is %s", sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    int64_t size = x.shape.dim[3];
    if (turned == 0) turned = size;
    if (turned < 2 || turned % 2 != 0 || turned > size) {
        onnx_wrong(c, "attribute 'rotary_embedding_dim' is %lld of %lld", (long long)turned, (long long)size);
        return;
    }
    onnx_flow cosine = angles(c, 1, flat ? 2 : 1), sine = angles(c, 2, flat ? 2 : 1);
    int64_t half = turned / 2, step = interleaved ? 2 : 1;
    onnx_flow a = onnx_take(c, x, 3, 0, half, step), b = onnx_take(c, x, 3, interleaved ? 1 : half, half, step);
    onnx_flow parts[3] = {
        onnx_elementwise(c, "sub", onnx_elementwise(c, "mul", cosine, a), onnx_elementwise(c, "mul", sine, b)),
        onnx_elementwise(c, "add", onnx_elementwise(c, "mul", sine, a), onnx_elementwise(c, "mul", cosine, b)),
        turned < size ? onnx_take(c, x, 3, turned, size - turned, 1) : x,
    };
    if (interleaved) { /* (..., half, 2) */
        for (int i = 0; i < 2; i++) parts[i] = onnx_split_axis(c, parts[i], 3, half);
        parts[0] = onnx_join_axes(c, onnx_join(c, parts, 2, 4), 3, 4);
        parts[1] = parts[2];
    }
    onnx_flow y = onnx_join(c, parts, (interleaved ? 1 : 2) + (turned < size), 3);
    onnx_set_output(c, 0, flat ? onnx_join_axes(c, y, 2, 3) : y);
}

const onnx_operator onnx_attention_operators[] = {
    {.type = "Attention",
     .since = 23,
     .minimum_inputs = 3,
     .maximum_inputs = 7,
     .attributes = " is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale "
                   "softcap softmax_precision ",
     .convert = convert_attention},
    {.type = "RotaryEmbedding",
     .since = 23,
     .minimum_inputs = 3,
     .maximum_inputs = 4,
     .attributes = " interleaved num_heads rotary_embedding_dim ",
     .convert = convert_rotary},
    {.type = NULL},
};
