/* SPDX-License-Identifier: MIT */
/* Operators that keep the elements: Reshape, Flatten, Squeeze, Unsqueeze, Identity. Constants are viewed in the new
 * shape without a copy; flows get a reshape layer, which is free. */
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* Output 0 is input 0 in that shape, whose axis `axis` has the batch, if any; or, for a guess, may have it. */
static void give_as(onnx_context *c, sdlf_shape shape, int axis, bool guess)
{
    if (!onnx_ok(c)) return;
    if (sdlf_shape_count(shape) < 0 || sdlf_shape_count(shape) != sdlf_shape_count(onnx_shape(c, 0))) {
        onnx_wrong(c, "its input is %s, its output would be %s", sdlf_shape_print(onnx_shape(c, 0)).text,
                   sdlf_shape_print(shape).text);
        return;
    }
    if (onnx_is_constant(c, 0)) {
        onnx_tensor tensor = *onnx_known(c, 0);
        tensor.shape = shape;
        onnx_set_output_constant(c, 0, &tensor);
    } else {
        onnx_flow x = onnx_in(c, 0);
        onnx_set_output(c, 0, guess ? onnx_reshape_told(c, x, shape, axis) : onnx_reshape_batch(c, x, shape, axis));
    }
}

static int batch_axis(onnx_context *c)
{
    return onnx_is_constant(c, 0) ? -1 : onnx_batch_axis(c, onnx_in(c, 0));
}

static void convert_reshape(onnx_context *c)
{
    sdlf_shape from = onnx_shape(c, 0), shape = SDLF_SCALAR;
    onnx_list list = onnx_known_integers(c, 1);
    bool zero_stays = onnx_flag(c, "allowzero", false);
    int open = -1;
    if (!onnx_ok(c)) return;
    if (list.count > SDLF_MAX_RANK) {
        onnx_unsupported(c, "a shape of %d dimensions; at most %d are supported", list.count, SDLF_MAX_RANK);
        return;
    }
    shape.rank = list.count;
    for (int i = 0; i < list.count; i++) {
        int64_t dim = list.item[i];
        if (dim == 0 && !zero_stays && i < from.rank) dim = from.dim[i];
        if (dim < -1 || (dim == -1 && open >= 0)) {
            onnx_wrong(c, "dimension %d of the shape is %lld", i, (long long)dim);
            return;
        }
        if (dim == -1) open = i;
        shape.dim[i] = dim == -1 ? 1 : dim;
    }
    if (open >= 0 && sdlf_shape_count(shape) > 0) shape.dim[open] = sdlf_shape_count(from) / sdlf_shape_count(shape);
    give_as(c, shape, open, true);
}

static void convert_flatten(onnx_context *c)
{
    sdlf_shape from = onnx_shape(c, 0);
    int64_t given = onnx_integer(c, "axis", 1), axis = given < 0 ? given + from.rank : given;
    if (axis < 0 || axis > from.rank) {
        onnx_wrong(c, "axis %lld is not one of %d dimensions", (long long)given, from.rank);
        return;
    }
    sdlf_shape shape = sdlf_shape(sdlf_shape_span(from, 0, (int)axis), sdlf_shape_span(from, (int)axis, from.rank));
    int batch = batch_axis(c);
    give_as(c, shape, batch < 0 ? -1 : batch >= axis, false);
}

/* The axes: an attribute before opset 13, an input since. count -1: none are given. */
static onnx_list axes_of(onnx_context *c)
{
    if (c->opset < 13) return onnx_integers(c, "axes");
    return onnx_has(c, 1) ? onnx_known_integers(c, 1) : (onnx_list){NULL, -1};
}

static void convert_squeeze(onnx_context *c)
{
    sdlf_shape from = onnx_shape(c, 0), shape = SDLF_SCALAR;
    onnx_list axes = axes_of(c);
    bool gone[SDLF_MAX_RANK] = {false};
    for (int i = 0; axes.count < 0 && i < from.rank; i++) gone[i] = from.dim[i] == 1;
    for (int i = 0; i < axes.count && onnx_ok(c); i++) gone[onnx_axis(c, axes.item[i], from.rank)] = true;
    int batch = batch_axis(c), axis = -1;
    for (int i = 0; i < from.rank && onnx_ok(c); i++) {
        if (gone[i]) continue;
        if (i == batch) axis = shape.rank;
        shape.dim[shape.rank++] = from.dim[i];
    }
    give_as(c, shape, axis, false);
}

static void convert_unsqueeze(onnx_context *c)
{
    sdlf_shape from = onnx_shape(c, 0), shape = SDLF_SCALAR;
    onnx_list axes = axes_of(c);
    bool added[SDLF_MAX_RANK] = {false};
    if (onnx_ok(c) && axes.count < 0) onnx_wrong(c, "its axes are missing");
    if (!onnx_ok(c)) return;
    shape.rank = from.rank + axes.count;
    if (shape.rank > SDLF_MAX_RANK) {
        onnx_unsupported(c, "%d dimensions; at most %d are supported", shape.rank, SDLF_MAX_RANK);
        return;
    }
    for (int i = 0; i < axes.count; i++) {
        int axis = onnx_axis(c, axes.item[i], shape.rank);
        if (onnx_ok(c) && added[axis]) onnx_wrong(c, "axis %d is duplicated", axis);
        if (!onnx_ok(c)) return;
        added[axis] = true;
    }
    int batch = batch_axis(c), axis = -1;
    for (int i = 0, next = 0; i < shape.rank; i++) {
        if (!added[i] && next == batch) axis = i;
        shape.dim[i] = added[i] ? 1 : from.dim[next++];
    }
    give_as(c, shape, axis, false);
}

static void convert_identity(onnx_context *c)
{
    give_as(c, onnx_shape(c, 0), batch_axis(c), false);
}

const onnx_operator onnx_shape_operators[] = {
    {.type = "Reshape",
     .since = 5,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " allowzero ",
     .convert = convert_reshape,
     .fold = convert_reshape},
    {.type = "Flatten",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " axis ",
     .convert = convert_flatten,
     .fold = convert_flatten},
    {.type = "Squeeze",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " axes ",
     .convert = convert_squeeze,
     .fold = convert_squeeze},
    {.type = "Unsqueeze",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 2,
     .known = 2,
     .attributes = " axes ",
     .convert = convert_unsqueeze,
     .fold = convert_unsqueeze},
    {.type = "Identity",
     .since = 1,
     .from_first = true,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_identity,
     .fold = convert_identity},
    {.type = NULL},
};
