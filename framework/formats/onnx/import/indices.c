/* SPDX-License-Identifier: MIT */
/* Gathers with indices that span several axes, or differ from row to row: GatherElements, GatherND,
 * ReverseSequence. Indices count across the whole tensor, so they are valid only for the batch that the model is
 * made for. */
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

/* For each position of `shape` the sum of its indices times `step`, excluding `axis`. */
static onnx_flow offsets(onnx_context *c, sdlf_shape shape, const int64_t *step, int axis)
{
    sdlf_shape own = shape;
    int64_t index[SDLF_MAX_RANK] = {0};
    own.dim[axis] = 1;
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_INT64, own);
    for (int64_t i = 0; i < tensor.count && onnx_ok(c); i++) {
        int64_t place = 0;
        for (int d = 0; d < own.rank; d++) place += index[d] * step[d];
        ((int64_t *)tensor.data)[i] = place;
        for (int d = own.rank - 1; d >= 0 && ++index[d] == own.dim[d]; d--) index[d] = 0;
    }
    return onnx_constant_layer(c, &tensor);
}

static onnx_flow times(onnx_context *c, onnx_flow x, int64_t factor)
{
    return factor == 1 ? x : onnx_elementwise(c, "mul", x, onnx_int64s(c, &factor, SDLF_SCALAR));
}

onnx_flow onnx_gather_along(onnx_context *c, onnx_flow x, onnx_flow index, int axis)
{
    int64_t step[SDLF_MAX_RANK];
    if (!onnx_ok(c)) return x;
    bool fits = index.shape.rank == x.shape.rank;
    for (int d = 0; d < x.shape.rank && fits; d++) fits = d == axis || index.shape.dim[d] <= x.shape.dim[d];
    if (!fits)
        onnx_wrong(c, "indices %s of an input %s", sdlf_shape_print(index.shape).text, sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return x;
    onnx_strides(x.shape, step);
    if (onnx_batch_axis(c, index) >= 0) index = onnx_batch_fixed(c, index);
    onnx_flow place = times(c, onnx_wrap(c, index, x.shape.dim[axis]), step[axis]);
    place = onnx_elementwise(c, "add", place, offsets(c, index.shape, step, axis));
    return onnx_gather(c, onnx_flat(c, x), place, 0);
}

static void convert_gather_elements(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), index = onnx_in(c, 1);
    int axis = onnx_axis(c, onnx_integer(c, "axis", 0), x.shape.rank);
    if (onnx_ok(c)) onnx_check_indices(c, 1, &x.shape.dim[axis], 1);
    onnx_set_output(c, 0, onnx_gather_along(c, x, index, axis));
}

/* ---- GatherND ---- */

static void convert_gather_nd(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), index = onnx_in(c, 1);
    int64_t batched = onnx_integer(c, "batch_dims", 0), size[SDLF_MAX_RANK], step[SDLF_MAX_RANK];
    int last = index.shape.rank - 1;
    int64_t depth = onnx_ok(c) && last >= 0 ? index.shape.dim[last] : 0;
    if (onnx_ok(c) && (batched < 0 || batched > last || depth < 1 || batched + depth > x.shape.rank))
        onnx_wrong(c, "indices %s of an input %s with %lld dimensions for batches", sdlf_shape_print(index.shape).text,
                   sdlf_shape_print(x.shape).text, (long long)batched);
    if (!onnx_ok(c)) return;
    int first = (int)batched, end = first + (int)depth;
    sdlf_shape y = {.rank = last};
    for (int i = 0; i < last; i++) y.dim[i] = index.shape.dim[i];
    for (int i = end; i < x.shape.rank && y.rank < SDLF_MAX_RANK; i++) y.dim[y.rank++] = x.shape.dim[i];
    if (last + x.shape.rank - end > SDLF_MAX_RANK) onnx_unsupported(c, "more than %d dimensions", SDLF_MAX_RANK);
    for (int i = 0; i < first; i++)
        if (index.shape.dim[i] != x.shape.dim[i]) onnx_wrong(c, "axis %d of the indices and of the input differ", i);
    if (!onnx_ok(c)) return;
    for (int i = first; i < end; i++) {
        size[i - first] = x.shape.dim[i];
        step[i - first] = sdlf_shape_span(x.shape, i + 1, end);
    }
    onnx_check_indices(c, 1, size, depth);
    int64_t rows = sdlf_shape_span(x.shape, first, end), batches = sdlf_shape_span(x.shape, 0, first);
    int64_t inner = sdlf_shape_span(x.shape, end, x.shape.rank), count = sdlf_shape_span(index.shape, 0, last);
    index = onnx_cast(c, index, SDLF_INT64);
    if (onnx_batch_axis(c, index) >= 0) index = onnx_batch_fixed(c, index);
    onnx_flow moved = onnx_elementwise(c, "add", index, onnx_int64s(c, size, sdlf_shape(depth)));
    index = onnx_choose(c, onnx_with_number(c, "less", index, 0), moved, index);
    index = onnx_elementwise(c, "mul", index, onnx_int64s(c, step, sdlf_shape(depth)));
    index = onnx_reduce_integers(c, index, SDLF_REDUCE_LAYER_SUM, sdlf_shape(last), false);
    index = onnx_reshape_batch(c, index, sdlf_shape(batches, count / (batches > 0 ? batches : 1)), -1);
    index = onnx_elementwise(c, "add", index, onnx_count_up(c, 0, rows, batches, 0, 2));
    x = onnx_reshape_batch(c, onnx_flat(c, x), sdlf_shape(batches * rows, inner), -1);
    onnx_set_output(c, 0, onnx_reshape_batch(c, onnx_gather(c, x, index, 0), y, -1));
}

/* ---- ReverseSequence ---- */

/* Reverses the first `length` elements of each row; the rest is unchanged. */
static void convert_reverse_sequence(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), length = onnx_cast(c, onnx_in(c, 1), SDLF_INT64);
    int64_t time_axis = onnx_integer(c, "time_axis", 0), batch_axis = onnx_integer(c, "batch_axis", 1);
    if (onnx_ok(c) &&
        (x.shape.rank < 2 || time_axis < 0 || time_axis > 1 || batch_axis != 1 - time_axis || length.shape.rank != 1))
        onnx_wrong(c, "attributes 'time_axis' and 'batch_axis' are %lld and %lld for an input %s", (long long)time_axis,
                   (long long)batch_axis, sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    const int time = (int)time_axis, batch = (int)batch_axis;
    if (onnx_batch_axis(c, x) >= 0) x = onnx_batch_fixed(c, x);
    int64_t size = x.shape.dim[time], count = x.shape.dim[batch];
    onnx_list known = onnx_is_constant(c, 1) ? onnx_known_integers(c, 1) : (onnx_list){NULL, 0};
    for (int i = 0; i < known.count; i++)
        if (known.item[i] < 0 || known.item[i] > size)
            onnx_wrong(c, "a sequence of %lld of %lld", (long long)known.item[i], (long long)size);
    length =
        onnx_reshape_batch(c, onnx_flat(c, length), sdlf_shape(batch == 0 ? count : 1, batch == 0 ? 1 : count), -1);
    onnx_flow place = onnx_count_up(c, 0, 1, size, time, 2);
    onnx_flow turned = onnx_with_number(c, "sub", onnx_elementwise(c, "sub", length, place), 1);
    onnx_flow row = onnx_choose(c, onnx_elementwise(c, "less", place, length), turned, place);
    row = onnx_elementwise(c, "add", times(c, row, time == 0 ? count : 1),
                           onnx_count_up(c, 0, time == 0 ? 1 : size, count, batch, 2));
    onnx_flow rows = onnx_join_axes(c, x, 0, 1);
    onnx_set_output(c, 0, onnx_gather(c, rows, row, 0));
}

const onnx_operator onnx_index_operators[] = {
    {.type = "GatherElements",
     .since = 11,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " axis ",
     .convert = convert_gather_elements},
    {.type = "GatherND",
     .since = 11,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " batch_dims ",
     .convert = convert_gather_nd},
    {.type = "ReverseSequence",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " batch_axis time_axis ",
     .convert = convert_reverse_sequence},
    {.type = NULL},
};
