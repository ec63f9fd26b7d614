/* SPDX-License-Identifier: MIT */
/* Operators whose result, or part of it, follows a pattern of positions known during import: Trilu, EyeLike, OneHot,
 * CumSum, CumProd. */
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

/* ---- triangles ---- */

/* A mask (rows, columns): true if column - row is on the requested side of diagonal k. */
static onnx_flow triangle(onnx_context *c, int64_t rows, int64_t columns, int64_t k, bool upper)
{
    onnx_tensor mask = onnx_new_tensor(c, ONNX_BOOL, sdlf_shape(rows, columns));
    for (int64_t i = 0; i < rows && onnx_ok(c); i++)
        for (int64_t j = 0; j < columns; j++) ((uint8_t *)mask.data)[i * columns + j] = upper ? j - i >= k : j - i <= k;
    return onnx_constant_layer(c, &mask);
}

static void convert_trilu(onnx_context *c)
{
    if (onnx_is_constant(c, 0) && onnx_known(c, 0)->count == 0) { /* empty: there are no triangles */
        onnx_set_output_constant(c, 0, onnx_known(c, 0));
        return;
    }
    onnx_flow x = onnx_in(c, 0);
    double k = onnx_known_number(c, 1, 0);
    if (onnx_ok(c) && x.shape.rank < 2) onnx_wrong(c, "its input is %s", sdlf_shape_print(x.shape).text);
    if (!onnx_ok(c)) return;
    int64_t rows = x.shape.dim[x.shape.rank - 2], columns = x.shape.dim[x.shape.rank - 1];
    double within = k < -(double)rows ? -(double)rows - 1 : k > (double)columns ? (double)columns + 1 : k;
    onnx_flow mask = triangle(c, rows, columns, onnx_to_integer(within), onnx_flag(c, "upper", true));
    onnx_set_output(c, 0, onnx_choose(c, mask, x, onnx_number(c, x.dtype, 0)));
}

static void fold_eye_like(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    onnx_type own = onnx_is_constant(c, 0) ? c->input[0]->tensor.type : onnx_type_of(c->input[0]->flow.dtype);
    int64_t k = onnx_integer(c, "k", 0), type = onnx_integer(c, "dtype", own);
    bool known = type > 0 && type < ONNX_TYPE_COUNT && onnx_type_dtype((int)type) != SDLF_NONE;
    if (shape.rank != 2) onnx_wrong(c, "its input is %s; a matrix was expected", sdlf_shape_print(shape).text);
    if (!known) onnx_unsupported(c, "to %s", known ? onnx_type_name((int)type) : "that type");
    onnx_tensor eye = onnx_new_tensor(c, (onnx_type)type, shape);
    double one = 1;
    size_t size = onnx_type_size((int)type);
    if (!onnx_ok(c)) return;
    memset((void *)eye.data, 0, (size_t)eye.count * size);
    int64_t rows = eye.count > 0 ? shape.dim[0] : 0, columns = shape.dim[1]; /* 2^62 rows without a column are none */
    bool crosses = k > -rows && k < columns;
    for (int64_t i = crosses && k < 0 ? -k : 0; crosses && i < rows && i + k < columns; i++)
        sdlf_convert(onnx_type_dtype((int)type), (char *)eye.data + (size_t)(i * columns + i + k) * size, SDLF_FLOAT64,
                     &one, 1);
    onnx_set_output_constant(c, 0, &eye);
}

/* ---- OneHot ---- */

static void convert_one_hot(onnx_context *c)
{
    onnx_flow index = onnx_in(c, 0), values = onnx_in(c, 2);
    double depth = onnx_known_number(c, 1, 0);
    int rank = index.shape.rank + 1, axis = onnx_axis(c, onnx_integer(c, "axis", -1), rank);
    if (onnx_ok(c) && !(depth >= 1 && depth <= ONNX_FOLD_LIMIT)) onnx_wrong(c, "a depth of %g", depth);
    if (onnx_ok(c) && (values.shape.rank != 1 || values.shape.dim[0] != 2))
        onnx_wrong(c, "its values are %s; two were expected", sdlf_shape_print(values.shape).text);
    if (onnx_ok(c) && rank > SDLF_MAX_RANK) onnx_unsupported(c, "%d dimensions", rank);
    if (!onnx_ok(c)) return;
    sdlf_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = i == axis ? 1 : index.shape.dim[i - (i > axis)];
    int batch = onnx_batch_axis(c, index);
    index = onnx_reshape_batch(c, onnx_wrap(c, index, (int64_t)depth), shape, batch < axis ? batch : batch + 1);
    onnx_flow hot = onnx_elementwise(c, "equal", index, onnx_count_up(c, 0, 1, (int64_t)depth, axis, rank));
    onnx_flow off = onnx_reshape(c, onnx_take(c, values, 0, 0, 1, 1), SDLF_SCALAR);
    onnx_flow on = onnx_reshape(c, onnx_take(c, values, 0, 1, 1, 1), SDLF_SCALAR);
    onnx_set_output(c, 0, onnx_choose(c, hot, on, off));
}

/* ---- running sums and products ---- */

/* x shifted along the axis (or back); vacated positions, possibly all, get the neutral element. */
static onnx_flow moved(onnx_context *c, onnx_flow x, int axis, int64_t places, bool back, double neutral)
{
    int64_t length = x.shape.dim[axis];
    x = onnx_pad_axis(c, x, axis, back ? 0 : places, back ? places : 0, neutral);
    return onnx_take(c, x, axis, back ? places : 0, length, 1);
}

enum { STEPS_KEPT = 1 << 16 }; /* for a network with states, whose layers must not depend on a length */

/* Sums of 1, 2, 4, 8, ... elements: one step per bit of the length, each over all of x. */
static void convert_running(onnx_context *c)
{
    bool products = strcmp(c->type->type, "CumProd") == 0, back = onnx_flag(c, "reverse", false);
    onnx_flow x = onnx_in(c, 0);
    double number = onnx_known_number(c, 1, 0), neutral = products ? 1 : 0;
    if (!onnx_ok(c)) return;
    int axis = onnx_axis(c, onnx_to_integer(number), x.shape.rank);
    if (!onnx_ok(c)) return;
    int64_t length = x.shape.dim[axis];
    if (axis == onnx_batch_axis(c, x)) x = onnx_batch_fixed(c, x);
    if (onnx_flag(c, "exclusive", false))
        x = length > 1 ? moved(c, x, axis, 1, back, neutral)
                       : onnx_with_number(c, "add", onnx_with_number(c, "mul", x, 0), neutral);
    if (c->import->options->keep_rows && length < STEPS_KEPT) length = STEPS_KEPT;
    for (int64_t places = 1; places < length && onnx_ok(c); places *= 2)
        x = onnx_elementwise(c, products ? "mul" : "add", x, moved(c, x, axis, places, back, neutral));
    onnx_set_output(c, 0, x);
}

const onnx_operator onnx_mask_operators[] = {
    {.type = "Trilu",
     .since = 14,
     .minimum_inputs = 1,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " upper ",
     .convert = convert_trilu},
    {.type = "EyeLike",
     .since = 9,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " dtype k ",
     .fold = fold_eye_like,
     .of_shape = true},
    {.type = "OneHot",
     .since = 9,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .known = 2,
     .attributes = " axis ",
     .convert = convert_one_hot},
    {.type = "CumSum",
     .since = 11,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " exclusive reverse ",
     .convert = convert_running},
    {.type = "CumProd",
     .since = 26,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " exclusive reverse ",
     .convert = convert_running},
    {.type = NULL},
};
