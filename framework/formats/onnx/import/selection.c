/* SPDX-License-Identifier: MIT */
/* NonZero, Compress and Unique: the number of selected elements depends on the data. See dynamic_length.h. */
#include "framework/formats/onnx/import/dynamic_length.h"

#include <string.h>

enum { MOST_PAIRS = 1 << 24, MOST_INNER = 64 };

/* ---- NonZero ---- */

static void convert_non_zero(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), count;
    if (!onnx_ok(c)) return;
    sdlf_shape shape = x.shape.rank > 0 ? x.shape : sdlf_shape(1);
    onnx_flow is = onnx_flat(c, x);
    if (is.dtype != SDLF_BOOL) is = onnx_not(c, onnx_with_number(c, "equal", is, 0));
    onnx_flow order = onnx_true_first(c, is, &count), part[SDLF_MAX_RANK];
    for (int i = 0; i < shape.rank && onnx_ok(c); i++) {
        onnx_flow step = onnx_number(c, SDLF_INT64, (double)sdlf_shape_span(shape, i + 1, shape.rank));
        part[i] = onnx_elementwise(c, "div", order, step);
        if (i > 0) part[i] = onnx_elementwise(c, "modulo", part[i], onnx_number(c, SDLF_INT64, (double)shape.dim[i]));
        part[i] = onnx_split_axis(c, part[i], 0, 1);
    }
    if (onnx_ok(c)) onnx_set_output_dynamic_length(c, 0, onnx_join(c, part, shape.rank, 0), 1, count);
}

/* ---- Compress ---- */

/* Selects where the condition is true; it may be constant or computed. */
static void convert_compress(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), count;
    bool flat = !onnx_has_attribute(c, "axis");
    int axis = flat ? 0 : onnx_axis(c, onnx_integer(c, "axis", 0), x.shape.rank);
    sdlf_shape condition = onnx_shape(c, 1);
    if (flat) x = onnx_flat(c, x);
    if (onnx_ok(c) && (condition.rank != 1 || condition.dim[0] > x.shape.dim[axis]))
        onnx_wrong(c, "a condition %s for %lld elements", sdlf_shape_print(condition).text,
                   (long long)x.shape.dim[axis]);
    if (!onnx_ok(c)) return;
    if (onnx_batch_axis(c, x) == axis) x = onnx_batch_fixed(c, x);
    if (!onnx_is_constant(c, 1)) {
        onnx_flow order = onnx_true_first(c, onnx_flat(c, onnx_in(c, 1)), &count);
        onnx_set_output_dynamic_length(c, 0, onnx_gather(c, x, order, axis), axis, count);
        return;
    }
    onnx_numbers is = onnx_load_numbers(c, onnx_known(c, 1));
    int64_t taken = 0;
    if (onnx_ok(c) && is.real) onnx_wrong(c, "a condition is of bools");
    for (int64_t i = 0; onnx_ok(c) && i < is.count; i++)
        if (is.integer[i] != 0) is.integer[taken++] = i;
    if (onnx_ok(c) && taken == 0) onnx_unsupported(c, "a condition that is false throughout");
    if (onnx_ok(c)) onnx_set_output(c, 0, onnx_gather(c, x, onnx_int64s(c, is.integer, sdlf_shape(taken)), axis));
}

/* ---- Unique ---- */

/* Compares all pairs of rows (n, inner), giving (n, n) bools: row i equals row j; row j sorts before row i. */
static void compare_rows(onnx_context *c, onnx_flow rows, onnx_flow *equal, onnx_flow *before)
{
    int64_t count = rows.shape.dim[0], inner = rows.shape.dim[1];
    for (int64_t k = inner - 1; k >= 0 && onnx_ok(c); k--) {
        onnx_flow column = onnx_reshape_batch(c, onnx_take(c, rows, 1, k, 1, 1), sdlf_shape(count), -1);
        onnx_flow mine = onnx_split_axis(c, column, 0, count), other = onnx_split_axis(c, column, 0, 1);
        onnx_flow same = onnx_elementwise(c, "equal", mine, other), less = onnx_elementwise(c, "less", other, mine);
        *before = k == inner - 1 ? less : onnx_elementwise(c, "or", less, onnx_elementwise(c, "and", same, *before));
        *equal = k == inner - 1 ? same : onnx_elementwise(c, "and", same, *equal);
    }
}

/* For each i, the number of true j. */
static onnx_flow how_many(onnx_context *c, onnx_flow is)
{
    return onnx_reduce(c, onnx_cast(c, is, SDLF_FLOAT32), SDLF_REDUCE_LAYER_SUM, sdlf_shape(1), false);
}

static void convert_unique(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), equal = x, before = x, count;
    bool flat = !onnx_has_attribute(c, "axis"), sorted = onnx_flag(c, "sorted", true);
    int axis = flat ? 0 : onnx_axis(c, onnx_integer(c, "axis", 0), x.shape.rank), order[SDLF_MAX_RANK];
    if (!onnx_ok(c)) return;
    x = flat ? onnx_flat(c, x) : onnx_batch_axis(c, x) >= 0 ? onnx_batch_fixed(c, x) : x;
    if (!onnx_ok(c)) return;
    int64_t length = x.shape.dim[axis], inner = sdlf_shape_count(x.shape) / length;
    if (length > MOST_PAIRS / length || inner > MOST_INNER) {
        onnx_unsupported(c, "of %lld rows of %lld elements: each is compared with each, %d pairs of %d at most",
                         (long long)length, (long long)inner, MOST_PAIRS, MOST_INNER);
        return;
    }
    for (int i = 0; i < x.shape.rank; i++) order[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    compare_rows(c, onnx_reshape_batch(c, onnx_transpose(c, x, order), sdlf_shape(length, inner), -1), &equal, &before);
    onnx_flow earlier =
        onnx_elementwise(c, "less", onnx_count_up(c, 0, 1, length, 1, 2), onnx_count_up(c, 0, 1, length, 0, 2));
    onnx_flow first = onnx_with_number(c, "equal", how_many(c, onnx_elementwise(c, "and", equal, earlier)), 0);
    /* the rank of each first occurrence among the first occurrences */
    onnx_flow place =
        how_many(c, onnx_elementwise(c, "and", sorted ? before : earlier, onnx_split_axis(c, first, 0, 1)));
    onnx_flow behind = onnx_number(c, SDLF_FLOAT32, (double)length);
    onnx_flow key = onnx_choose(c, first, place, behind);
    sdlf_top_k_layer_options options = {.k = (int)length, .axis = -1, .smallest = true};
    onnx_flow which = onnx_layer_output(c, onnx_layer(c, "top_k", &options, &key, 1), 1);
    count = onnx_reduce(c, onnx_cast(c, first, SDLF_FLOAT32), SDLF_REDUCE_LAYER_SUM, sdlf_shape(0), false);
    count = onnx_cast(c, count, SDLF_INT64);
    onnx_set_output_dynamic_length(c, 0, onnx_gather(c, x, which, axis), axis, count);
    if (onnx_ok(c) && c->output_count > 1 && c->output[1] != NULL)
        onnx_set_output_dynamic_length(c, 1, which, 0, count);
    if (onnx_ok(c) && c->output_count > 2 && c->output[2] != NULL) {
        onnx_flow its = onnx_elementwise(c, "and", equal, onnx_split_axis(c, first, 0, 1)); /* one in each row */
        its = onnx_elementwise(c, "mul", onnx_cast(c, its, SDLF_FLOAT32), onnx_split_axis(c, place, 0, 1));
        its = onnx_reduce(c, its, SDLF_REDUCE_LAYER_SUM, sdlf_shape(1), false);
        onnx_set_output(c, 2, onnx_cast(c, its, SDLF_INT64));
    }
    if (onnx_ok(c) && c->output_count > 3 && c->output[3] != NULL)
        onnx_set_output_dynamic_length(c, 3, onnx_gather(c, onnx_cast(c, how_many(c, equal), SDLF_INT64), which, 0), 0,
                                       count);
}

const onnx_operator onnx_selection_operators[] = {
    {.type = "NonZero",
     .since = 9,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_non_zero},
    {.type = "Compress",
     .since = 9,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " axis ",
     .convert = convert_compress},
    {.type = "Unique",
     .since = 11,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " axis sorted ",
     .convert = convert_unique},
    {.type = NULL},
};
