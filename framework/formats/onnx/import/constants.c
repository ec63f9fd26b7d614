/* SPDX-License-Identifier: MIT */
/* Operators that produce constants: Constant, ConstantOfShape, Shape, Size, Range. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* The tensor in an attribute. Its bytes are protobuf-c's copy, so positions in messages are relative to its start. */
static onnx_tensor read_attribute(onnx_context *c, const Onnx__AttributeProto *attribute)
{
    onnx_tensor tensor = {.name = ""};
    if (attribute->t.len == 0) {
        onnx_wrong(c, "attribute '%s' holds no tensor", attribute->name);
        return tensor;
    }
    const uint8_t *bytes = attribute->t.data;
    wire_reader reader = {
        .path = "its attribute", .file = bytes, .at = bytes, .end = bytes + attribute->t.len, .message = "TensorProto"};
    sdlf_status status = onnx_tensor_read(&tensor, reader, &c->import->file->folder, &c->import->file->arena);
    if (status != SDLF_OK && onnx_ok(c)) c->status = status;
    return tensor;
}

static void give_numbers(onnx_context *c, onnx_type type, const void *data, size_t count, bool scalar)
{
    onnx_tensor tensor = onnx_new_tensor(c, type, scalar ? SDLF_SCALAR : sdlf_shape((int64_t)count));
    if (onnx_ok(c) && count > 0) memcpy((void *)tensor.data, data, count * onnx_type_size(type));
    onnx_set_output_constant(c, 0, &tensor);
}

static void fold_constant(onnx_context *c)
{
    const Onnx__AttributeProto *a;
    if ((a = onnx_attribute(c, "value")) != NULL) {
        onnx_tensor tensor = read_attribute(c, a);
        onnx_set_output_constant(c, 0, &tensor);
    } else if ((a = onnx_attribute(c, "value_float")) != NULL) {
        give_numbers(c, ONNX_FLOAT, &a->f, 1, true);
    } else if ((a = onnx_attribute(c, "value_int")) != NULL) {
        give_numbers(c, ONNX_INT64, &a->i, 1, true);
    } else if ((a = onnx_attribute(c, "value_floats")) != NULL) {
        give_numbers(c, ONNX_FLOAT, a->floats, a->n_floats, false);
    } else if ((a = onnx_attribute(c, "value_ints")) != NULL) {
        give_numbers(c, ONNX_INT64, a->ints, a->n_ints, false);
    } else {
        onnx_unsupported(c, "a constant without a value of numbers");
    }
}

/* A shape from a list of numbers. */
static sdlf_shape shape_of(onnx_context *c, onnx_list list)
{
    sdlf_shape shape = {.rank = list.count > 0 ? list.count : 0};
    if (shape.rank > SDLF_MAX_RANK) {
        onnx_unsupported(c, "a shape of %d dimensions; at most %d are supported", shape.rank, SDLF_MAX_RANK);
        return SDLF_SCALAR;
    }
    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = list.item[i];
        if (shape.dim[i] < 0) onnx_wrong(c, "dimension %d of a shape is %lld", i, (long long)shape.dim[i]);
    }
    return shape;
}

static void fold_constant_of_shape(onnx_context *c)
{
    static const float zero = 0;
    onnx_tensor value = {.name = "", .type = ONNX_FLOAT, .shape = sdlf_shape(1), .count = 1, .data = &zero};
    const Onnx__AttributeProto *attribute = onnx_attribute(c, "value");
    if (attribute != NULL) value = read_attribute(c, attribute);
    sdlf_shape shape = shape_of(c, onnx_known_integers(c, 0));
    if (onnx_ok(c) && value.count != 1) onnx_wrong(c, "attribute 'value' has %lld elements", (long long)value.count);
    if (!onnx_ok(c)) return;
    value.uniform = true;
    value.shape = shape;
    value.count = sdlf_shape_count(shape);
    if (value.count < 0) onnx_wrong(c, "a constant of shape %s", sdlf_shape_print(shape).text);
    onnx_set_output_constant(c, 0, &value);
}

static void fold_shape(onnx_context *c)
{
    sdlf_shape shape = onnx_shape(c, 0);
    int64_t start = onnx_integer(c, "start", 0), end = onnx_integer(c, "end", shape.rank);
    start = start < 0 ? start + shape.rank : start;
    end = end < 0 ? end + shape.rank : end;
    start = start < 0 ? 0 : start > shape.rank ? shape.rank : start;
    end = end < start ? start : end > shape.rank ? shape.rank : end;
    onnx_tensor tensor = onnx_new_integers(c, shape.dim + start, (int)(end - start));
    onnx_set_output_constant(c, 0, &tensor);
}

static void fold_size(onnx_context *c)
{
    int64_t count = sdlf_shape_count(onnx_shape(c, 0));
    give_numbers(c, ONNX_INT64, &count, 1, true);
}

static void fold_range(onnx_context *c)
{
    const onnx_tensor *start = onnx_known(c, 0), *limit = onnx_known(c, 1), *delta = onnx_known(c, 2);
    if (!onnx_ok(c)) return;
    if (start->count != 1 || limit->count != 1 || delta->count != 1 || start->type != delta->type ||
        start->type != limit->type) {
        onnx_wrong(c, "three numbers of one type were expected");
        return;
    }
    onnx_numbers first = onnx_load_numbers(c, start), last = onnx_load_numbers(c, limit),
                 step = onnx_load_numbers(c, delta);
    if (!onnx_ok(c)) return;
    double from = first.real ? first.number[0] : (double)first.integer[0];
    double to = last.real ? last.number[0] : (double)last.integer[0];
    double by = step.real ? step.number[0] : (double)step.integer[0];
    double count = by != 0 ? ceil((to - from) / by) : 0;
    if (by == 0 || !(count <= ONNX_FOLD_LIMIT)) {
        onnx_wrong(c, "a range from %.9g to %.9g in steps of %.9g: at most %d numbers were expected", from, to, by,
                   (int)ONNX_FOLD_LIMIT);
        return;
    }
    onnx_numbers range = onnx_new_numbers(c, first.real, sdlf_shape(count > 0 ? (int64_t)count : 0));
    for (int64_t i = 0; i < range.count; i++) {
        if (range.real)
            range.number[i] = from + (double)i * by;
        else
            range.integer[i] = /* wraps, like the standard's integers */
                (int64_t)((uint64_t)first.integer[0] + (uint64_t)i * (uint64_t)step.integer[0]);
    }
    onnx_tensor tensor = onnx_store_numbers(c, &range, start->type);
    onnx_set_output_constant(c, 0, &tensor);
}

const onnx_operator onnx_constant_operators[] = {
    {.type = "Constant",
     .since = 1,
     .attributes = " value value_float value_floats value_int value_ints ",
     .fold = fold_constant},
    {.type = "ConstantOfShape",
     .since = 9,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .known = 1,
     .attributes = " value ",
     .fold = fold_constant_of_shape},
    {.type = "Shape",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " start end ",
     .fold = fold_shape,
     .of_shape = true},
    {.type = "Size",
     .since = 1,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .fold = fold_size,
     .of_shape = true},
    {.type = "Range",
     .since = 11,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .known = 7,
     .attributes = " ",
     .fold = fold_range},
    {.type = NULL},
};
