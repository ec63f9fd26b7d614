/* SPDX-License-Identifier: MIT */
/* Shared by folding operators. See fold.h. */
#include "framework/formats/onnx/import/fold.h"

#include <math.h>
#include <string.h>

#include "framework/formats/onnx/small_floats.h"

/* Allocates `count` elements. */
static void take_elements(onnx_context *c, onnx_tensor *tensor)
{
    tensor->block = onnx_block_take(&c->import->file->blocks, (size_t)tensor->count * onnx_type_size(tensor->type));
    if (tensor->block != NULL)
        tensor->data = onnx_block_bytes(tensor->block);
    else
        onnx_no_memory(c);
}

onnx_tensor onnx_new_tensor(onnx_context *c, onnx_type type, sdlf_shape shape)
{
    onnx_tensor tensor = {.name = "", .type = type, .shape = shape, .count = sdlf_shape_count(shape)};
    const int64_t total = ONNX_FOLD_TOTAL + ONNX_FOLD_TIMES * c->import->weight_elements;
    if (!onnx_ok(c)) return tensor;
    if (tensor.count < 0 || tensor.count > ONNX_FOLD_LIMIT) {
        onnx_unsupported(c, "working out a constant of shape %s: one of at most %d elements is worked out",
                         sdlf_shape_print(shape).text, ONNX_FOLD_LIMIT);
        tensor.count = 0;
    } else if (tensor.count > total - c->import->folded) {
        onnx_unsupported(c, "working out a constant of shape %s: at most %lld elements are worked out for this model",
                         sdlf_shape_print(shape).text, (long long)total);
        tensor.count = 0;
    } else {
        c->import->folded += tensor.count;
        take_elements(c, &tensor);
    }
    return tensor;
}

onnx_tensor onnx_new_weight(onnx_context *c, onnx_type type, sdlf_shape shape)
{
    static const double zero = 0;
    onnx_import *import = c->import;
    onnx_tensor tensor = {.name = "", .type = type, .shape = shape, .count = sdlf_shape_count(shape)};
    if (!onnx_ok(c)) return tensor;
    if (tensor.count < 0 || tensor.count > ONNX_FOLD_TOTAL + import->weight_elements - import->weights) {
        onnx_unsupported(c, "working out a weight of shape %s: more than the file has in all",
                         sdlf_shape_print(shape).text);
        tensor.count = 0;
        return tensor;
    }
    import->weights += tensor.count;
    tensor.data = &zero;
    tensor.uniform = !import->fills && tensor.count > ONNX_FOLD_LIMIT;
    if (!tensor.uniform) take_elements(c, &tensor);
    return tensor;
}

onnx_tensor onnx_new_integers(onnx_context *c, const int64_t *item, int count)
{
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_INT64, sdlf_shape(count));
    if (onnx_ok(c) && count > 0) memcpy((void *)tensor.data, item, (size_t)count * sizeof *item);
    return tensor;
}

void onnx_strides(sdlf_shape shape, int64_t *step)
{
    uint64_t next = 1; /* for an empty shape, whose dimensions may have any size, it wraps and is never used */
    for (int i = shape.rank - 1; i >= 0; i--) {
        step[i] = (int64_t)next;
        next *= (uint64_t)shape.dim[i];
    }
}

/* Advances `index` to the next position of `shape`, and `at` by the corresponding steps. */
static void advance(sdlf_shape shape, int64_t *index, const int64_t *step, int64_t *at)
{
    for (int i = shape.rank - 1; i >= 0; i--) {
        *at += step[i];
        if (++index[i] < shape.dim[i]) return;
        *at -= step[i] * shape.dim[i];
        index[i] = 0;
    }
}

onnx_tensor onnx_pick(onnx_context *c, const onnx_tensor *from, sdlf_shape shape, int64_t start, const int64_t *step)
{
    if (from->uniform) {
        onnx_tensor same = *from;
        same.shape = shape;
        same.count = sdlf_shape_count(shape);
        return same;
    }
    onnx_tensor to = onnx_new_tensor(c, from->type, shape);
    int64_t size = (int64_t)onnx_type_size(from->type), index[SDLF_MAX_RANK] = {0}, at = start, row = 1, apart = 1;
    if (shape.rank > 0) { /* row by row along the last dimension */
        row = shape.dim[shape.rank - 1];
        apart = step[shape.rank - 1];
        shape.dim[shape.rank - 1] = 1;
    }
    if (onnx_ok(c)) onnx_tensor_load(from, 0, from->count);
    for (int64_t i = 0; onnx_ok(c) && i < to.count; i += row) {
        char *target = (char *)to.data + i * size;
        const char *source = (const char *)from->data + at * size;
        if (apart == 1) memcpy(target, source, (size_t)(row * size));
        for (int64_t k = 0; apart != 1 && k < row; k++)
            memcpy(target + k * size, source + k * apart * size, (size_t)size);
        advance(shape, index, step, &at);
    }
    return to;
}

onnx_tensor onnx_materialize(onnx_context *c, const onnx_tensor *tensor)
{
    onnx_tensor_load(tensor, 0, tensor->count);
    if (!tensor->uniform) return *tensor;
    onnx_tensor solid = onnx_new_tensor(c, tensor->type, tensor->shape);
    size_t size = onnx_type_size(tensor->type);
    for (int64_t i = 0; onnx_ok(c) && i < solid.count; i++)
        memcpy((char *)solid.data + (size_t)i * size, tensor->data, size);
    return solid;
}

/* ---- numbers ---- */

static bool is_real(onnx_type type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16 ||
           onnx_type_is_small_float(type);
}

onnx_numbers onnx_new_numbers(onnx_context *c, bool real, sdlf_shape shape)
{
    onnx_tensor memory = onnx_new_tensor(c, real ? ONNX_DOUBLE : ONNX_INT64, shape);
    onnx_numbers numbers = {.real = real, .shape = shape, .count = onnx_ok(c) ? memory.count : 0};
    if (real)
        numbers.number = (double *)memory.data;
    else
        numbers.integer = (int64_t *)memory.data;
    return numbers;
}

int64_t onnx_to_integer(double value)
{
    int64_t integer;
    sdlf_convert(SDLF_INT64, &integer, SDLF_FLOAT64, &value, 1);
    return integer;
}

onnx_numbers onnx_load_numbers(onnx_context *c, const onnx_tensor *tensor)
{
    onnx_numbers numbers = onnx_new_numbers(c, is_real(tensor->type), tensor->shape);
    void *out = numbers.real ? (void *)numbers.number : (void *)numbers.integer;
    onnx_tensor_convert(tensor, 0, numbers.count, numbers.real ? SDLF_FLOAT64 : SDLF_INT64, out);
    for (int64_t i = 0; tensor->type == ONNX_UINT64 && onnx_ok(c) && i < numbers.count; i++)
        if (numbers.integer[i] == INT64_MAX) onnx_unsupported(c, "of a constant of uint64 of 2^63 and more");
    return numbers;
}

/* Integer overflow keeps the low bits; floats round to nearest. */
static int64_t low_bits(onnx_type type, int64_t value)
{
    switch (type) {
    case ONNX_INT32: return (int32_t)(uint32_t)value;
    case ONNX_UINT8: return (uint8_t)value;
    case ONNX_INT8: return (int8_t)(uint8_t)value;
    default: return onnx_type_wrap(type, value);
    }
}

onnx_tensor onnx_store_numbers(onnx_context *c, const onnx_numbers *numbers, onnx_type type)
{
    onnx_tensor tensor = onnx_new_tensor(c, type, numbers->shape);
    const void *from = numbers->real ? (const void *)numbers->number : (const void *)numbers->integer;
    size_t size = onnx_type_size(type);
    if (!onnx_ok(c)) return tensor;
    bool wraps = !numbers->real && (type == ONNX_INT32 || type == ONNX_UINT8 || type == ONNX_INT8);
    if (onnx_type_dtype(type) != SDLF_NONE && !wraps) {
        sdlf_convert(onnx_type_dtype(type), (void *)tensor.data, numbers->real ? SDLF_FLOAT64 : SDLF_INT64, from,
                     tensor.count);
        return tensor;
    }
    for (int64_t i = 0; i < tensor.count; i++) {
        if (onnx_type_is_small_float(type)) {
            double number = numbers->real ? numbers->number[i] : (double)numbers->integer[i];
            ((uint8_t *)tensor.data)[i] = onnx_small_float_encode(type, number, onnx_rounding_of(c));
            continue;
        }
        int64_t value = numbers->real ? onnx_to_integer(numbers->number[i]) : numbers->integer[i];
        value = low_bits(type, value);
        memcpy((char *)tensor.data + (size_t)i * size, &value, size);
    }
    return tensor;
}

/* ---- broadcasting ---- */

sdlf_shape onnx_broadcast(onnx_context *c, sdlf_shape a, sdlf_shape b)
{
    sdlf_shape shape = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int i = 0; i < shape.rank; i++) {
        int ia = i - (shape.rank - a.rank), ib = i - (shape.rank - b.rank);
        int64_t da = ia >= 0 ? a.dim[ia] : 1, db = ib >= 0 ? b.dim[ib] : 1;
        if (da != db && da != 1 && db != 1)
            onnx_wrong(c, "shapes %s and %s do not broadcast", sdlf_shape_print(a).text, sdlf_shape_print(b).text);
        shape.dim[i] = da == 1 ? db : da;
    }
    return shape;
}

void onnx_broadcast_steps(sdlf_shape from, sdlf_shape to, int64_t *step)
{
    int64_t own[SDLF_MAX_RANK];
    onnx_strides(from, own);
    for (int i = 0; i < to.rank; i++) {
        int at = i - (to.rank - from.rank);
        step[i] = at < 0 || from.dim[at] == 1 ? 0 : own[at];
    }
}
