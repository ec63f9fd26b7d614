/* SPDX-License-Identifier: MIT */
/* ScatterND, ScatterElements, Scatter, TensorScatter and MaxUnpool: rows of a tensor replaced by, or combined with,
 * updates at given indices.
 *
 * The scatter is inverted: for every row, the update that goes there is determined, the last one if there are several.
 * With constant indices a gather and a select remain; otherwise every row is compared with every update. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

enum { MOST_PAIRS = 1 << 24 };

/* x is (rows, inner), updates (count, inner): update m goes to row place[m]. */
typedef struct scattering {
    onnx_flow x, updates;
    int64_t rows, inner, count;
    onnx_flow place;      /* (count), unless constant */
    const int64_t *known; /* the constant indices */
} scattering;

/* ---- inverting the indices ---- */

/* The index of each row's update and whether it has one, (rows) and (rows,1), from constant indices. */
static void invert_constant(onnx_context *c, const scattering *s, onnx_flow *row, onnx_flow *has)
{
    onnx_tensor number = onnx_new_tensor(c, ONNX_INT64, sdlf_shape(s->rows));
    onnx_tensor mask = onnx_new_tensor(c, ONNX_BOOL, sdlf_shape(s->rows, 1));
    if (!onnx_ok(c)) return;
    memset((void *)number.data, 0, (size_t)s->rows * sizeof(int64_t));
    memset((void *)mask.data, 0, (size_t)s->rows);
    for (int64_t m = 0; m < s->count && onnx_ok(c); m++) {
        if (s->known[m] < 0 || s->known[m] >= s->rows) {
            onnx_wrong(c, "place %lld is not one of %lld", (long long)s->known[m], (long long)s->rows);
            return;
        }
        ((int64_t *)number.data)[s->known[m]] = m;
        ((uint8_t *)mask.data)[s->known[m]] = 1;
    }
    *row = onnx_constant_layer(c, &number);
    *has = onnx_constant_layer(c, &mask);
}

static void check_pairs(onnx_context *c, const scattering *s, int64_t each)
{
    if (onnx_ok(c) && s->count > 0 && each > 0 && s->rows > MOST_PAIRS / s->count / each)
        onnx_unsupported(c, "%lld updates at places that are computed, of %lld: at most %d pairs are compared",
                         (long long)s->count, (long long)s->rows, MOST_PAIRS);
}

/* (rows, count): true if the update goes to the row. */
static onnx_flow pairs(onnx_context *c, const scattering *s)
{
    onnx_flow place = s->place;
    if (s->known != NULL) place = onnx_int64s(c, s->known, sdlf_shape(s->count));
    return onnx_elementwise(c, "equal", onnx_count_up(c, 0, 1, s->rows, 0, 2), place);
}

static void invert(onnx_context *c, const scattering *s, onnx_flow *row, onnx_flow *has)
{
    check_pairs(c, s, 1);
    onnx_flow number =
        onnx_cast(c, onnx_count_up(c, 1, 1, s->count, 0, 1), SDLF_FLOAT32); /* exact: there are fewer than 2^24 */
    onnx_flow numbers = onnx_elementwise(c, "mul", onnx_cast(c, pairs(c, s), SDLF_FLOAT32), number);
    onnx_flow last = onnx_reduce(c, numbers, SDLF_REDUCE_LAYER_MAX, sdlf_shape(1), true);
    *has = onnx_with_number(c, "greater", last, 0);
    *row =
        onnx_cast(c, onnx_with_number(c, "sub", onnx_reshape_batch(c, last, sdlf_shape(s->rows), -1), 1), SDLF_INT64);
}

/* ---- updating rows ---- */

/* Reduces all updates of a row, (rows, count, inner), and combines the result with x. */
static onnx_flow combine(onnx_context *c, const scattering *s, const char *function, sdlf_reduce_function reduction,
                         double neutral)
{
    check_pairs(c, s, s->inner);
    if (!onnx_ok(c)) return s->x;
    bool floats = sdlf_dtype_is_float(s->x.dtype);
    if (!floats && isinf(neutral)) onnx_unsupported(c, "the largest or least of %s", sdlf_dtype_name(s->x.dtype));
    onnx_flow hot = onnx_split_axis(c, pairs(c, s), 1, s->count);
    onnx_flow each = onnx_choose(c, hot, s->updates, onnx_number(c, s->x.dtype, neutral));
    onnx_flow all = floats ? onnx_reduce(c, each, reduction, sdlf_shape(1), false)
                           : onnx_reduce_integers(c, each, reduction, sdlf_shape(1), false);
    return onnx_elementwise(c, function, s->x, all);
}

static onnx_flow scatter(onnx_context *c, const scattering *s)
{
    static const struct {
        const char *name, *function;
        sdlf_reduce_function reduction;
        double neutral;
    } reductions[] = {{"add", "add", SDLF_REDUCE_LAYER_SUM, 0},
                      {"mul", "mul", SDLF_REDUCE_LAYER_PRODUCT, 1},
                      {"max", "max", SDLF_REDUCE_LAYER_MAX, -INFINITY},
                      {"min", "min", SDLF_REDUCE_LAYER_MIN, INFINITY}};
    onnx_word word = onnx_text(c, "reduction", "none");
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (strcmp(word.text, reductions[i].name) == 0)
            return combine(c, s, reductions[i].function, reductions[i].reduction, reductions[i].neutral);
    if (strcmp(word.text, "none") != 0) onnx_wrong(c, "attribute 'reduction' is '%s'", word.text);
    onnx_flow row = s->x, has = s->x;
    if (onnx_ok(c)) (s->known != NULL ? invert_constant : invert)(c, s, &row, &has);
    return onnx_choose(c, has, onnx_gather(c, s->updates, row, 0), s->x);
}

/* Flattens x and updates to rows, and restores x's shape for the result. */
static void give_scattered(onnx_context *c, scattering *s, onnx_flow updates)
{
    onnx_flow x = onnx_in(c, 0);
    if (onnx_ok(c) && (sdlf_shape_count(updates.shape) != s->count * s->inner || x.dtype != updates.dtype))
        onnx_wrong(c, "updates %s of %s for %lld places of %lld elements of %s", sdlf_shape_print(updates.shape).text,
                   sdlf_dtype_name(updates.dtype), (long long)s->count, (long long)s->inner, sdlf_dtype_name(x.dtype));
    if (!onnx_ok(c)) return;
    s->x = onnx_reshape_batch(c, onnx_flat(c, x), sdlf_shape(s->rows, s->inner), -1);
    s->updates = onnx_reshape_batch(c, onnx_flat(c, updates), sdlf_shape(s->count, s->inner), -1);
    if (s->known == NULL) s->place = onnx_flat(c, s->place);
    onnx_set_output(c, 0, onnx_reshape_batch(c, scatter(c, s), x.shape, -1));
}

/* The values of input 1, which is constant; the caller may modify them. */
static int64_t *constant_indices(onnx_context *c)
{
    onnx_numbers numbers = onnx_load_numbers(c, onnx_known(c, 1));
    if (onnx_ok(c) && numbers.real) onnx_wrong(c, "indices are integers");
    return onnx_ok(c) ? numbers.integer : NULL;
}

/* An index into a dimension, counted from its end if negative; 0 after a failure. */
static int64_t checked_index(onnx_context *c, int64_t index, int64_t length)
{
    if (index >= -length && index < length) return index < 0 ? index + length : index;
    onnx_wrong(c, "index %lld of a dimension of %lld", (long long)index, (long long)length);
    return 0;
}

/* ---- ScatterND ---- */

static void convert_scatter_nd(onnx_context *c)
{
    sdlf_shape x = onnx_shape(c, 0), index = onnx_shape(c, 1);
    int last = index.rank - 1;
    int64_t depth = last >= 0 ? index.dim[last] : 0, size[SDLF_MAX_RANK], step[SDLF_MAX_RANK];
    if (depth < 1 || depth > x.rank || sdlf_shape_count(index) < 1) {
        onnx_wrong(c, "indices %s of an input %s", sdlf_shape_print(index).text, sdlf_shape_print(x).text);
        return;
    }
    scattering s = {.rows = sdlf_shape_span(x, 0, (int)depth),
                    .inner = sdlf_shape_span(x, (int)depth, x.rank),
                    .count = sdlf_shape_span(index, 0, last)};
    for (int i = 0; i < depth; i++) {
        size[i] = x.dim[i];
        step[i] = sdlf_shape_span(x, i + 1, (int)depth);
    }
    if (onnx_is_constant(c, 1)) {
        int64_t *places = constant_indices(c);
        for (int64_t m = 0; m < s.count && onnx_ok(c); m++) {
            int64_t place = 0;
            for (int i = 0; i < depth; i++) place += checked_index(c, places[m * depth + i], size[i]) * step[i];
            places[m] = place;
        }
        s.known = places;
    } else {
        onnx_flow place = onnx_cast(c, onnx_in(c, 1), SDLF_INT64);
        if (onnx_batch_axis(c, place) >= 0) place = onnx_batch_fixed(c, place);
        onnx_flow moved = onnx_elementwise(c, "add", place, onnx_int64s(c, size, sdlf_shape(depth)));
        place = onnx_choose(c, onnx_with_number(c, "less", place, 0), moved, place);
        place = onnx_elementwise(c, "mul", place, onnx_int64s(c, step, sdlf_shape(depth)));
        s.place = onnx_reduce_integers(c, place, SDLF_REDUCE_LAYER_SUM, sdlf_shape(last), false);
    }
    if (onnx_ok(c)) give_scattered(c, &s, onnx_in(c, 2));
}

/* ---- ScatterElements ---- */

static void convert_scatter_elements(onnx_context *c)
{
    sdlf_shape x = onnx_shape(c, 0), index = onnx_shape(c, 1);
    int axis = onnx_axis(c, onnx_integer(c, "axis", 0), x.rank);
    int64_t step[SDLF_MAX_RANK], at[SDLF_MAX_RANK] = {0};
    bool fits = index.rank == x.rank && sdlf_shape_count(index) > 0;
    for (int i = 0; i < x.rank && fits; i++) fits = i == axis || index.dim[i] <= x.dim[i];
    if (!fits) onnx_wrong(c, "indices %s of an input %s", sdlf_shape_print(index).text, sdlf_shape_print(x).text);
    if (!onnx_ok(c)) return;
    onnx_strides(x, step);
    scattering s = {.rows = sdlf_shape_count(x), .inner = 1, .count = sdlf_shape_count(index)};
    onnx_tensor offset = onnx_new_tensor(c, ONNX_INT64, index);
    int64_t *places = onnx_is_constant(c, 1) ? constant_indices(c) : NULL;
    for (int64_t m = 0; m < s.count && onnx_ok(c); m++) {
        int64_t rest = 0;
        for (int i = 0; i < x.rank; i++) rest += i == axis ? 0 : at[i] * step[i];
        ((int64_t *)offset.data)[m] = rest;
        if (places != NULL) places[m] = checked_index(c, places[m], x.dim[axis]) * step[axis] + rest;
        for (int i = x.rank - 1; i >= 0 && ++at[i] == index.dim[i]; i--) at[i] = 0;
    }
    s.known = places;
    if (places == NULL && onnx_ok(c)) {
        onnx_flow place = onnx_wrap(c, onnx_in(c, 1), x.dim[axis]);
        if (onnx_batch_axis(c, place) >= 0) place = onnx_batch_fixed(c, place);
        place = onnx_elementwise(c, "mul", place, onnx_int64s(c, &step[axis], SDLF_SCALAR));
        s.place = onnx_elementwise(c, "add", place, onnx_constant_layer(c, &offset));
    }
    if (onnx_ok(c)) give_scattered(c, &s, onnx_in(c, 2));
}

/* ---- TensorScatter ---- */

/* Each sample has its own position of the update along the axis. */
static void convert_tensor_scatter(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), update = onnx_in(c, 1);
    onnx_word mode = onnx_text(c, "mode", "linear");
    int axis = onnx_axis(c, onnx_integer(c, "axis", -2), x.shape.rank);
    if (onnx_ok(c) && (axis < 1 || update.shape.rank != x.shape.rank || update.shape.dim[axis] > x.shape.dim[axis]))
        onnx_wrong(c, "an update %s of %s", sdlf_shape_print(update.shape).text, sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    int64_t length = x.shape.dim[axis], count = update.shape.dim[axis];
    onnx_flow place = onnx_count_up(c, 0, 1, length, axis, x.shape.rank);
    if (onnx_has(c, 2)) {
        onnx_flow first = onnx_cast(c, onnx_in(c, 2), SDLF_INT64);
        if (onnx_ok(c) && (first.shape.rank != 1 || first.shape.dim[0] != x.shape.dim[0]))
            onnx_wrong(c, "places %s of an input %s", sdlf_shape_print(first.shape).text,
                       sdlf_shape_print(x.shape).text);
        for (int i = 0; i + 1 < x.shape.rank && onnx_ok(c); i++)
            first = onnx_split_axis(c, first, i, first.shape.dim[i]);
        place = onnx_elementwise(c, "sub", place, first);
        if (strcmp(mode.text, "circular") == 0)
            place = onnx_elementwise(c, "modulo", place, onnx_number(c, SDLF_INT64, (double)length));
    }
    onnx_flow has = onnx_elementwise(c, "and", onnx_with_number(c, "greater_equal", place, 0),
                                     onnx_with_number(c, "less", place, (double)count));
    place = onnx_with_number(c, "min", onnx_with_number(c, "max", place, 0), (double)(count - 1));
    place = onnx_layer(c, "expand", &(sdlf_expand_options){.shape = x.shape}, &place, 1);
    onnx_set_output(c, 0, onnx_choose(c, has, onnx_gather_along(c, update, place, axis), x));
}

/* ---- MaxUnpool ---- */

/* Puts each element where MaxPool found it, with indices through all of its input, and zeros elsewhere. */
static void convert_max_unpool(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), place = onnx_in(c, 1);
    onnx_list kernel = onnx_integers(c, "kernel_shape"), strides = onnx_integers(c, "strides"),
              pads = onnx_integers(c, "pads");
    onnx_list wanted = onnx_has(c, 2) ? onnx_known_integers(c, 2) : (onnx_list){NULL, -1};
    int axes = x.shape.rank - 2;
    if (onnx_ok(c) &&
        (axes < 1 || kernel.count != axes || (strides.count >= 0 && strides.count != axes) ||
         (pads.count >= 0 && pads.count != 2 * axes) || (wanted.count >= 0 && wanted.count != x.shape.rank) ||
         !sdlf_shape_equal(x.shape, place.shape) || sdlf_shape_count(x.shape) < 1 || !sdlf_dtype_is_float(x.dtype)))
        onnx_wrong(c, "its input is %s, its indices %s, and its window of %d dimensions",
                   sdlf_shape_print(x.shape).text, sdlf_shape_print(place.shape).text, kernel.count);
    sdlf_shape y = x.shape;
    for (int i = 0; i < axes && onnx_ok(c); i++) {
        int64_t step = strides.count >= 0 ? strides.item[i] : 1, size = kernel.item[i];
        int64_t before = pads.count >= 0 ? pads.item[i] : 0, after = pads.count >= 0 ? pads.item[axes + i] : 0;
        const int64_t most = 1 << 20;
        bool fits = step >= 1 && step <= most && size >= 1 && size <= most && before >= 0 && before <= most &&
                    after >= 0 && after <= most && x.shape.dim[2 + i] <= most;
        y.dim[2 + i] = fits ? (x.shape.dim[2 + i] - 1) * step - before - after + size : 0;
        if (y.dim[2 + i] < 1) onnx_wrong(c, "a window, stride or pad of dimension %d", i);
    }
    if (onnx_ok(c) && sdlf_shape_count(y) < 0) onnx_wrong(c, "an output of %s", sdlf_shape_print(y).text);
    if (!onnx_ok(c)) return;
    scattering s = {.rows = sdlf_shape_count(y), .inner = 1, .count = sdlf_shape_count(x.shape)};
    check_pairs(c, &s, 1);
    onnx_tensor zeros = onnx_new_tensor(c, ONNX_FLOAT, sdlf_shape(s.rows, 1));
    if (!onnx_ok(c)) return;
    memset((void *)zeros.data, 0, (size_t)s.rows * sizeof(float));
    s.x = onnx_constant_layer(c, &zeros);
    s.updates = onnx_reshape_batch(c, onnx_flat(c, x), sdlf_shape(s.count, 1), -1);
    s.place = onnx_flat(c, place);
    onnx_flow result = onnx_reshape_batch(c, scatter(c, &s), y, -1);
    for (int i = 0; i < wanted.count && onnx_ok(c); i++) {
        if (wanted.item[i] < y.dim[i] || wanted.item[i] > INT32_MAX)
            onnx_wrong(c, "dimension %d is to have %lld elements, and has %lld", i, (long long)wanted.item[i],
                       (long long)y.dim[i]);
        if (onnx_ok(c)) result = onnx_pad_axis(c, result, i, 0, wanted.item[i] - y.dim[i], 0);
    }
    onnx_set_output(c, 0, result);
}

const onnx_operator onnx_scatter_operators[] = {
    {.type = "ScatterND",
     .since = 11,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .attributes = " reduction ",
     .convert = convert_scatter_nd},
    {.type = "ScatterElements",
     .since = 11,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .attributes = " axis reduction ",
     .convert = convert_scatter_elements},
    {.type = "Scatter",
     .since = 9,
     .until = 10,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .attributes = " axis ",
     .convert = convert_scatter_elements},
    {.type = "TensorScatter",
     .since = 24,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " axis mode ",
     .convert = convert_tensor_scatter},
    {.type = "MaxUnpool",
     .since = 9,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .known = 4,
     .attributes = " kernel_shape pads strides ",
     .convert = convert_max_unpool},
    {.type = NULL},
};
