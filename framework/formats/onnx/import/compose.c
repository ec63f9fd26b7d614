/* SPDX-License-Identifier: MIT */
/* Building blocks of operators. See compose.h. */
#include "framework/formats/onnx/import/compose.h"

#include <string.h>

onnx_flow onnx_elementwise(onnx_context *c, const char *function, onnx_flow a, onnx_flow b)
{
    const onnx_flow operands[] = {a, b};
    return onnx_binary(c, function, operands);
}

onnx_flow onnx_function(onnx_context *c, sdlf_unary_function function, onnx_flow x)
{
    return onnx_layer(c, "unary", &(sdlf_unary_options){.function = (int)function}, &x, 1);
}

onnx_flow onnx_choose(onnx_context *c, onnx_flow condition, onnx_flow a, onnx_flow b)
{
    const onnx_flow operands[] = {condition, a, b};
    return onnx_layer(c, "select", NULL, operands, 3);
}

onnx_flow onnx_not(onnx_context *c, onnx_flow x)
{
    return onnx_with_number(c, "equal", x, 0);
}

onnx_flow onnx_product(onnx_context *c, onnx_flow a, onnx_flow b, bool transpose_b)
{
    const onnx_flow factors[] = {a, b};
    return onnx_layer(c, "matmul", &(sdlf_matmul_options){.transpose_b = transpose_b}, factors, 2);
}

onnx_flow onnx_gather(onnx_context *c, onnx_flow x, onnx_flow index, int axis)
{
    const onnx_flow operands[] = {x, index};
    return onnx_layer(c, "gather", &(sdlf_gather_options){.axis = axis - x.shape.rank}, operands, 2);
}

onnx_flow onnx_softmax(onnx_context *c, onnx_flow x, int axis)
{
    return onnx_layer(c, "softmax", &(sdlf_softmax_options){.axis = axis - x.shape.rank}, &x, 1);
}

/* ---- constants ---- */

onnx_flow onnx_number(onnx_context *c, sdlf_dtype dtype, double number)
{
    onnx_tensor tensor = onnx_new_tensor(c, sdlf_dtype_is_float(dtype) ? ONNX_FLOAT : onnx_type_of(dtype), SDLF_SCALAR);
    if (onnx_ok(c)) sdlf_convert(onnx_type_dtype(tensor.type), (void *)tensor.data, SDLF_FLOAT64, &number, 1);
    return onnx_constant_layer(c, &tensor);
}

onnx_flow onnx_int64s(onnx_context *c, const int64_t *item, sdlf_shape shape)
{
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_INT64, shape);
    if (onnx_ok(c)) memcpy((void *)tensor.data, item, (size_t)tensor.count * sizeof *item);
    return onnx_constant_layer(c, &tensor);
}

onnx_flow onnx_count_up(onnx_context *c, int64_t from, int64_t step, int64_t count, int axis, int rank)
{
    sdlf_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = i == axis ? count : 1;
    onnx_tensor tensor = onnx_new_tensor(c, ONNX_INT64, shape);
    for (int64_t i = 0; i < count && onnx_ok(c); i++) ((int64_t *)tensor.data)[i] = from + i * step;
    return onnx_constant_layer(c, &tensor);
}

/* ---- shapes ---- */

onnx_flow onnx_flat(onnx_context *c, onnx_flow x)
{
    if (onnx_batch_axis(c, x) >= 0) x = onnx_batch_fixed(c, x);
    return onnx_ok(c) ? onnx_reshape_batch(c, x, sdlf_shape(sdlf_shape_count(x.shape)), -1) : x;
}

onnx_flow onnx_wrap(onnx_context *c, onnx_flow index, int64_t length)
{
    index = onnx_cast(c, index, SDLF_INT64);
    onnx_flow moved = onnx_elementwise(c, "add", index, onnx_number(c, SDLF_INT64, (double)length));
    return onnx_choose(c, onnx_with_number(c, "less", index, 0), moved, index);
}

onnx_flow onnx_split_axis(onnx_context *c, onnx_flow x, int axis, int64_t first)
{
    if (!onnx_ok(c)) return x;
    if (x.shape.rank == SDLF_MAX_RANK || first < 1 || x.shape.dim[axis] % first != 0) {
        onnx_wrong(c, "axis %d of %s is to be split by %lld", axis, sdlf_shape_print(x.shape).text, (long long)first);
        return x;
    }
    sdlf_shape shape = {.rank = x.shape.rank + 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i < axis        ? x.shape.dim[i]
                       : i == axis     ? first
                       : i == axis + 1 ? x.shape.dim[axis] / first
                                       : x.shape.dim[i - 1];
    int batch = onnx_batch_axis(c, x);
    return onnx_reshape_batch(c, x, shape, batch > axis ? batch + 1 : batch);
}

onnx_flow onnx_join_axes(onnx_context *c, onnx_flow x, int first, int last)
{
    sdlf_shape shape = SDLF_SCALAR;
    if (!onnx_ok(c)) return x;
    for (int i = 0; i < first; i++) shape.dim[shape.rank++] = x.shape.dim[i];
    shape.dim[shape.rank++] = sdlf_shape_span(x.shape, first, last + 1);
    for (int i = last + 1; i < x.shape.rank; i++) shape.dim[shape.rank++] = x.shape.dim[i];
    int batch = onnx_batch_axis(c, x);
    return onnx_reshape_batch(c, x, shape, batch > last ? batch - (last - first) : batch > first ? first : batch);
}
