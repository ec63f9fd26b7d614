/* SPDX-License-Identifier: MIT */
/* QLinearAdd, QLinearMul, QLinearGlobalAveragePool, QGemm: operators of com.microsoft that onnxruntime's quantiser
 * emits besides the standard's. Each is its float operator between dequantisation and quantisation, which a plan fuses
 * to an integer one where possible. Scales and zero points must be constant. */
#include "framework/formats/onnx/import/compose.h"

/* The zero point, which may be omitted; and its type. */
static double zero_of(onnx_context *c, int input, onnx_type *type)
{
    *type = onnx_has(c, input) && onnx_ok(c) ? onnx_known(c, input)->type : ONNX_UINT8;
    return onnx_known_number(c, input, 0);
}

/* The scale, which must be positive and finite. */
static double scale_of(onnx_context *c, int input)
{
    double scale = onnx_known_number(c, input, 1);
    if (onnx_ok(c) && !(scale > 0 && scale < 3e38)) onnx_wrong(c, "input %d: a scale of %g", input, scale);
    return scale;
}

/* (x - zero) scale */
static onnx_flow dequantised(onnx_context *c, int x, int scale, int zero)
{
    onnx_type type;
    double point = zero_of(c, zero, &type);
    onnx_flow y = onnx_cast(c, onnx_in(c, x), SDLF_FLOAT32);
    if (point != 0) y = onnx_with_number(c, "sub", y, point);
    return onnx_with_number(c, "mul", y, scale_of(c, scale));
}

/* saturate(round(x / scale) + zero), ties to even */
static void give_quantised(onnx_context *c, onnx_flow x, int scale, int zero)
{
    onnx_type type;
    double point = zero_of(c, zero, &type);
    x = onnx_function(c, SDLF_UNARY_ROUND, onnx_with_number(c, "div", x, scale_of(c, scale)));
    if (point != 0) x = onnx_with_number(c, "add", x, point);
    if (onnx_ok(c) && type != ONNX_UINT8 && type != ONNX_INT8) onnx_unsupported(c, "to %s", onnx_type_name(type));
    onnx_set_output(c, 0, onnx_cast(c, x, onnx_type_computed(type)));
}

static void convert_two(onnx_context *c, const char *function)
{
    onnx_flow a = dequantised(c, 0, 1, 2), b = dequantised(c, 3, 4, 5);
    give_quantised(c, onnx_elementwise(c, function, a, b), 6, 7);
}

static void convert_add(onnx_context *c)
{
    convert_two(c, "add");
}

static void convert_mul(onnx_context *c)
{
    convert_two(c, "mul");
}

static void convert_global_average_pool(onnx_context *c)
{
    onnx_flow x = dequantised(c, 0, 1, 2);
    if (onnx_ok(c) && (onnx_flag(c, "channels_last", false) || x.shape.rank != 4))
        onnx_unsupported(c, "of an input %s%s", sdlf_shape_print(x.shape).text,
                         onnx_flag(c, "channels_last", false) ? ", channels last" : "");
    give_quantised(c, onnx_layer(c, "global_avg_pool2d", NULL, &x, 1), 3, 4);
}

/* Dequantised weights or bias: (q - zero) scale, with a single scale and zero point, or one per index of the axis. */
static onnx_tensor as_floats(onnx_context *c, int input, const onnx_tensor *scales, const onnx_tensor *zeros, int axis,
                             double more)
{
    const onnx_tensor *q = onnx_known(c, input);
    onnx_tensor y = {.name = ""};
    if (!onnx_ok(c)) return y;
    int64_t filters = q->shape.rank > axis ? q->shape.dim[axis] : 0;
    int64_t inner = filters > 0 ? sdlf_shape_span(q->shape, axis + 1, q->shape.rank) : 1;
    if ((scales->count != 1 && scales->count != filters) ||
        (zeros != NULL && zeros->count != 1 && zeros->count != filters))
        onnx_wrong(c, "input %d is %s, its scale %s", input, sdlf_shape_print(q->shape).text,
                   sdlf_shape_print(scales->shape).text);
    y = onnx_new_weight(c, ONNX_FLOAT, q->shape);
    if (!onnx_ok(c) || y.uniform) return y;
    float *to = (float *)y.data;
    onnx_tensor_convert(q, 0, q->count, SDLF_FLOAT32, to);
    for (int64_t i = 0; i < q->count; i++) {
        int64_t filter = i / inner % filters;
        float scale, zero = 0;
        onnx_tensor_convert(scales, scales->count > 1 ? filter : 0, 1, SDLF_FLOAT32, &scale);
        if (zeros != NULL) onnx_tensor_convert(zeros, zeros->count > 1 ? filter : 0, 1, SDLF_FLOAT32, &zero);
        scale = (float)more * scale;
        to[i] = (to[i] - zero) * scale;
    }
    return y;
}

static void convert_gemm(onnx_context *c)
{
    sdlf_shape a = onnx_shape(c, 0), b = onnx_shape(c, 3);
    bool transposed = onnx_flag(c, "transB", false);
    double alpha = (double)onnx_real(c, "alpha", 1);
    if (onnx_ok(c) && (a.rank != 2 || b.rank != 2 || alpha != 1 || onnx_flag(c, "transA", false)))
        onnx_unsupported(c, "of %s and %s, alpha %g", sdlf_shape_print(a).text, sdlf_shape_print(b).text, alpha);
    onnx_flow x = dequantised(c, 0, 1, 2);
    if (!onnx_ok(c)) return;
    const onnx_tensor *scales = onnx_known(c, 4), *zeros = onnx_has(c, 5) ? onnx_known(c, 5) : NULL;
    if (!onnx_ok(c)) return;
    onnx_tensor weight = as_floats(c, 3, scales, zeros, transposed ? 0 : 1, 1), bias = {.name = ""};
    if (onnx_has(c, 6)) bias = as_floats(c, 6, scales, NULL, 0, onnx_known_number(c, 1, 1));
    int64_t units = b.dim[transposed ? 0 : 1];
    if (onnx_ok(c) && onnx_has(c, 6) && (bias.shape.rank != 1 || bias.count != units))
        onnx_unsupported(c, "with a bias %s", sdlf_shape_print(bias.shape).text);
    if (!onnx_ok(c)) return;
    onnx_flow y = onnx_fully_connected(c, x, &weight, transposed, 1, onnx_has(c, 6) ? &bias : NULL, 1);
    if (onnx_has(c, 7))
        give_quantised(c, y, 7, 8);
    else
        onnx_set_output(c, 0, y);
}

const onnx_operator onnx_qlinear_operators[] = {
    {.type = "com.microsoft.QLinearAdd",
     .since = 1,
     .minimum_inputs = 7,
     .maximum_inputs = 8,
     .known = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7,
     .attributes = " ",
     .convert = convert_add},
    {.type = "com.microsoft.QLinearMul",
     .since = 1,
     .minimum_inputs = 7,
     .maximum_inputs = 8,
     .known = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7,
     .attributes = " ",
     .convert = convert_mul},
    {.type = "com.microsoft.QLinearGlobalAveragePool",
     .since = 1,
     .minimum_inputs = 4,
     .maximum_inputs = 5,
     .known = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
     .attributes = " channels_last ",
     .convert = convert_global_average_pool},
    {.type = "com.microsoft.QGemm",
     .since = 1,
     .minimum_inputs = 6,
     .maximum_inputs = 9,
     .known = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8,
     .attributes = " alpha transA transB ",
     .convert = convert_gemm},
    {.type = NULL},
};
