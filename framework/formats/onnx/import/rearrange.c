/* SPDX-License-Identifier: MIT */
/* Operators that move elements: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth; and Cast. Constants are
 * folded. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/small_floats.h"

/* ---- Transpose ---- */

/* True if the order only moves dimensions of 1, other than the batch, so that the elements keep their order. */
static bool is_still(sdlf_shape shape, const int *order, int batch)
{
    int last = -1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[order[i]] == 1 && order[i] != batch) continue;
        if (order[i] < last) return false;
        last = order[i];
    }
    return true;
}

static sdlf_shape permuted(sdlf_shape shape, const int *order)
{
    sdlf_shape result = {.rank = shape.rank};
    for (int i = 0; i < shape.rank; i++) result.dim[i] = shape.dim[order[i]];
    return result;
}

onnx_flow onnx_transpose(onnx_context *c, onnx_flow x, const int *order)
{
    sdlf_transpose_options options = {.order = {.rank = x.shape.rank}};
    int batch = onnx_batch_axis(c, x), axis = -1;
    if (!onnx_ok(c) || x.shape.rank < 2) return x;
    for (int i = 0; i < x.shape.rank; i++) {
        options.order.dim[i] = order[i];
        if (order[i] == batch) axis = i;
    }
    if (is_still(x.shape, order, batch)) return onnx_reshape_batch(c, x, permuted(x.shape, order), axis);
    return onnx_layer(c, "transpose", &options, &x, 1);
}

static void convert_transpose(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    onnx_list perm = onnx_integers(c, "perm");
    int order[SDLF_MAX_RANK];
    bool used[SDLF_MAX_RANK] = {false};
    if (perm.count >= 0 && perm.count != shape.rank)
        onnx_wrong(c, "attribute 'perm' has %d numbers for %d dimensions", perm.count, shape.rank);
    for (int i = 0; i < shape.rank && onnx_ok(c); i++) {
        order[i] = perm.count >= 0 ? onnx_axis(c, perm.item[i], shape.rank) : shape.rank - 1 - i;
        if (onnx_ok(c) && used[order[i]]) onnx_wrong(c, "attribute 'perm' has axis %d twice", order[i]);
        if (onnx_ok(c)) used[order[i]] = true;
    }
    if (!onnx_ok(c)) return;
    if (!onnx_is_constant(c, 0)) {
        onnx_set_output(c, 0, onnx_transpose(c, onnx_in(c, 0), order));
        return;
    }
    int64_t step[SDLF_MAX_RANK], moved[SDLF_MAX_RANK];
    onnx_strides(shape, step);
    for (int i = 0; i < shape.rank; i++) moved[i] = step[order[i]];
    onnx_tensor tensor = onnx_pick(c, onnx_known(c, 0), permuted(shape, order), 0, moved);
    tensor.learned = onnx_known(c, 0)->learned;
    tensor.name = onnx_known(c, 0)->name;
    onnx_set_output_constant(c, 0, &tensor);
}

/* ---- Expand and Tile ---- */

static sdlf_shape shape_from(onnx_context *c, onnx_list list)
{
    sdlf_shape shape = SDLF_SCALAR;
    if (list.count > SDLF_MAX_RANK)
        onnx_unsupported(c, "%d dimensions; at most %d are supported", list.count, SDLF_MAX_RANK);
    for (int i = 0; i < list.count && onnx_ok(c); i++) {
        if (list.item[i] < 0) onnx_wrong(c, "dimension %d is %lld", i, (long long)list.item[i]);
        shape.dim[shape.rank++] = list.item[i];
    }
    return shape;
}

static void convert_expand(onnx_context *c)
{
    sdlf_shape from = onnx_shape(c, 0), wanted = shape_from(c, onnx_known_integers(c, 1));
    sdlf_shape shape = onnx_broadcast(c, from, wanted);
    int64_t step[SDLF_MAX_RANK];
    if (!onnx_ok(c)) return;
    bool same = sdlf_shape_equal(from, shape);
    if (onnx_is_constant(c, 0) && (!onnx_has_trainable_input(c) || sdlf_shape_count(from) == sdlf_shape_count(shape))) {
        onnx_broadcast_steps(from, shape, step);
        onnx_tensor tensor = onnx_pick(c, onnx_known(c, 0), shape, 0, step);
        tensor.learned = onnx_known(c, 0)->learned;
        tensor.name = onnx_known(c, 0)->name;
        onnx_set_output_constant(c, 0, &tensor);
        return;
    }
    onnx_flow x = onnx_in(c, 0);
    onnx_set_output(c, 0, same ? x : onnx_layer(c, "expand", &(sdlf_expand_options){.shape = wanted}, &x, 1));
}

static void convert_tile(onnx_context *c)
{
    sdlf_shape repeats = shape_from(c, onnx_known_integers(c, 1)), shape = onnx_shape(c, 0);
    if (onnx_ok(c) && repeats.rank != shape.rank)
        onnx_wrong(c, "%d repeats for %d dimensions", repeats.rank, shape.rank);
    onnx_flow x = onnx_in(c, 0);
    onnx_set_output(c, 0, onnx_layer(c, "tile", &(sdlf_tile_options){.repeats = repeats}, &x, 1));
}

/* ---- images ---- */

static void convert_depth_to_space(onnx_context *c)
{
    onnx_word mode = onnx_text(c, "mode", "DCR");
    bool crd = strcmp(mode.text, "CRD") == 0, back = strcmp(c->type->type, "SpaceToDepth") == 0;
    int64_t block = onnx_integer(c, "blocksize", 0);
    if (!crd && strcmp(mode.text, "DCR") != 0) onnx_wrong(c, "attribute 'mode' is '%s'", mode.text);
    if (block < 1 || block > 65535) onnx_wrong(c, "attribute 'blocksize' is %lld", (long long)block);
    sdlf_depth_to_space_options options = {.block = onnx_ok(c) ? (int)block : 1, .mode = crd};
    onnx_flow x = onnx_in(c, 0);
    onnx_set_output(c, 0, onnx_layer(c, back ? "space_to_depth" : "depth_to_space", &options, &x, 1));
}

/* ---- Cast ---- */

onnx_flow onnx_cast(onnx_context *c, onnx_flow x, sdlf_dtype dtype)
{
    int choice = onnx_dtype_choice(dtype);
    if (!onnx_ok(c) || x.dtype == dtype || (choice == 0 && sdlf_dtype_is_float(x.dtype))) return x;
    return onnx_layer(c, "cast", &(sdlf_cast_options){.dtype = choice}, &x, 1);
}

onnx_flow onnx_small_as_float(onnx_context *c, onnx_flow x)
{
    bool small = x.dtype == SDLF_UINT8 || x.dtype == SDLF_INT8 || x.dtype == SDLF_BOOL;
    return small ? onnx_cast(c, x, SDLF_FLOAT32) : x;
}

static bool is_integer_of(onnx_flow x, sdlf_dtype to)
{
    return onnx_is_integer(x) && (to == SDLF_INT32 || to == SDLF_INT64 || to == SDLF_UINT8 || to == SDLF_INT8);
}

/* Integers cast to a smaller type, or one of other signedness, keep their low bits. The layer cast saturates, but
 * products wrap around: shifting up to the highest bits and down again sign-extends the smaller integer. */
static onnx_flow low_bits(onnx_context *c, onnx_flow x, sdlf_dtype to)
{
    if (!onnx_ok(c) || sdlf_dtype_size(to) > sdlf_dtype_size(x.dtype) || to == x.dtype) return x;
    if (sdlf_dtype_size(x.dtype) == 1) x = onnx_cast(c, x, SDLF_INT32);
    double step = ldexp(1, (int)(8 * (sdlf_dtype_size(x.dtype) - sdlf_dtype_size(to))));
    x = onnx_with_number(c, "div", onnx_with_number(c, "mul", x, step), step);
    if (to != SDLF_UINT8) return x;
    x = onnx_with_number(c, "add", x, 256); /* makes the remainder nonnegative */
    onnx_flow parts[] = {x, onnx_with_number(c, "mul", onnx_with_number(c, "div", x, 256), 256)};
    return onnx_binary(c, "sub", parts);
}

/* The target type: an attribute, or the type of CastLike's input 1. */
static int64_t target_of(onnx_context *c)
{
    if (strcmp(c->type->type, "CastLike") != 0) return onnx_integer(c, "to", 0);
    if (onnx_is_constant(c, 1)) return c->input[1]->tensor.type;
    if (onnx_narrow_input(c, 1) != ONNX_UNDEFINED) return onnx_narrow_input(c, 1);
    return onnx_has(c, 1) ? onnx_type_of(c->input[1]->flow.dtype) : ONNX_UNDEFINED;
}

/* Integers, or truncated floats, as an integer type that SDLF lacks: the low bits, sign-extended if it is
 * signed. */
static onnx_flow wrapped(onnx_context *c, onnx_flow x, onnx_type to)
{
    int bits = (int)(8 * onnx_type_size((int)to)) / onnx_type_packed((int)to);
    sdlf_dtype held = onnx_type_computed((int)to), in = bits == 32 || x.dtype == SDLF_INT64 ? SDLF_INT64 : SDLF_INT32;
    double half = onnx_type_wrap((int)to, -1) < 0 ? ldexp(1, bits - 1) : 0;
    x = onnx_cast(c, x, in);
    if (half > 0) x = onnx_with_number(c, "add", x, half);
    x = onnx_elementwise(c, "bit_and", x, onnx_number(c, in, ldexp(1, bits) - 1));
    if (half > 0) x = onnx_with_number(c, "sub", x, half);
    return onnx_cast(c, x, held);
}

static void fold_cast(onnx_context *c)
{
    int64_t to = target_of(c);
    if (to < 0 || to >= ONNX_TYPE_COUNT || onnx_type_size((int)to) == 0) {
        onnx_unsupported(c, "to %s", to >= 0 && to < ONNX_TYPE_COUNT ? onnx_type_name((int)to) : "an unknown type");
        return;
    }
    onnx_numbers numbers = onnx_load_numbers(c, onnx_known(c, 0));
    onnx_tensor tensor = onnx_store_numbers(c, &numbers, (onnx_type)to);
    tensor.learned = onnx_known(c, 0)->learned && sdlf_dtype_is_float(onnx_type_dtype((int)to));
    onnx_set_output_constant(c, 0, &tensor);
}

static void convert_cast(onnx_context *c)
{
    (void)onnx_flag(c, "saturate", true); /* only small floats read it */
    if (onnx_is_constant(c, 0)) {
        fold_cast(c);
        return;
    }
    int64_t to = target_of(c);
    sdlf_dtype dtype = to > 0 && to < ONNX_TYPE_COUNT ? onnx_type_computed((int)to) : SDLF_NONE;
    if (dtype == SDLF_NONE)
        onnx_unsupported(c, "to %s", to >= 0 && to < ONNX_TYPE_COUNT ? onnx_type_name((int)to) : "an unknown type");
    onnx_flow x = onnx_in(c, 0);
    if (!onnx_ok(c)) return;
    bool narrow = onnx_type_dtype((int)to) == SDLF_NONE;
    if (onnx_type_is_small_float((int)to))
        x = onnx_small_float_round(c, onnx_cast(c, x, SDLF_FLOAT32), (onnx_type)to, onnx_rounding_of(c));
    else if (narrow && onnx_narrow_input(c, 0) != (onnx_type)to)
        x = wrapped(c, x, (onnx_type)to);
    else if (is_integer_of(x, dtype))
        x = low_bits(c, x, dtype);
    onnx_set_output(c, 0, onnx_cast(c, x, dtype));
    if (narrow && onnx_ok(c) && c->output[0] != NULL) c->output[0]->narrow = (onnx_type)to;
}

/* Reinterprets the bits as another type: constants of any type, or computed integers, whose bits Cast preserves. */
static void convert_bit_cast(onnx_context *c)
{
    int64_t to = onnx_integer(c, "to", 0);
    onnx_type from = onnx_narrow_input(c, 0);
    if (onnx_is_constant(c, 0)) from = onnx_known(c, 0)->type;
    if (from == ONNX_UNDEFINED && onnx_has(c, 0)) from = onnx_type_of(c->input[0]->flow.dtype);
    bool known = to > 0 && to < ONNX_TYPE_COUNT;
    if (!known || onnx_type_size((int)to) == 0 || onnx_type_size((int)to) != onnx_type_size((int)from) ||
        onnx_type_packed((int)to) != onnx_type_packed((int)from) || to == ONNX_BOOL)
        onnx_unsupported(c, "from %s to %s", onnx_type_name((int)from), onnx_type_name(known ? (int)to : -1));
    if (!onnx_ok(c)) return;
    if (onnx_is_constant(c, 0)) {
        onnx_tensor tensor = onnx_materialize(c, onnx_known(c, 0));
        tensor.type = (onnx_type)to;
        tensor.learned = false;
        onnx_set_output_constant(c, 0, &tensor);
        return;
    }
    if (sdlf_dtype_is_float(onnx_type_computed((int)to)) || sdlf_dtype_is_float(onnx_type_computed((int)from)))
        onnx_unsupported(c, "of %s, whose bits are another plan's", onnx_type_name((int)from));
    convert_cast(c);
}

const onnx_operator onnx_move_operators[] = {
    {.type = "Transpose",
     .since = 1,
     .from_first = true,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " perm ",
     .convert = convert_transpose,
     .fold = convert_transpose},
    {.type = "Expand",
     .since = 8,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " ",
     .convert = convert_expand,
     .fold = convert_expand},
    {.type = "Tile",
     .since = 6,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " ",
     .convert = convert_tile},
    {.type = "DepthToSpace",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " blocksize mode ",
     .convert = convert_depth_to_space},
    {.type = "SpaceToDepth",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " blocksize mode ",
     .convert = convert_depth_to_space},
    {.type = "Cast",
     .since = 6,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " round_mode saturate to ",
     .convert = convert_cast,
     .fold = convert_cast},
    {.type = "CastLike",
     .since = 15,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " round_mode saturate ",
     .convert = convert_cast,
     .fold = convert_cast},
    {.type = "BitCast",
     .since = 26,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " to ",
     .convert = convert_bit_cast,
     .fold = convert_bit_cast},
    {.type = NULL},
};
