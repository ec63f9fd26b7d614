/* SPDX-License-Identifier: MIT */
/* MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv: products of 8-bit integers, as exact as the standard's in
 * int32.
 *
 * Matrix products use the layer matmul, which supports bytes and their zero points. For convolutions, differences from
 * zero points are at most 255 in magnitude, and float32 holds every integer up to 2^24: accumulators stay exact as long
 * as their terms cannot add up to more. Otherwise the weights are split into their upper and lower four bits, and the
 * partial results are added in int32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/compose.h"

enum { EXACT = 1 << 24, LARGEST = 255 };

static bool is_byte(sdlf_dtype dtype)
{
    return dtype == SDLF_UINT8 || dtype == SDLF_INT8;
}

/* Input i, which is a scalar, or has one value per row (column) of the last two axes. */
static onnx_flow along(onnx_context *c, int input, bool rows, int rank)
{
    onnx_flow x = onnx_cast(c, onnx_in(c, input), SDLF_FLOAT32);
    if (!onnx_ok(c) || sdlf_shape_count(x.shape) == 1) return onnx_reshape(c, x, SDLF_SCALAR);
    if (rows && x.shape.rank == 1 && rank > 1) return onnx_split_axis(c, x, 0, x.shape.dim[0]);
    return x;
}

/* True if the input is a constant scalar. */
static bool is_number(onnx_context *c, int input)
{
    return onnx_is_constant(c, input) && onnx_known(c, input)->count == 1;
}

/* x plus or minus an integer, as a layer; 0 adds no layer. */
static onnx_flow with_integer(onnx_context *c, const char *function, onnx_flow x, int input)
{
    double number = onnx_known_number(c, input, 0);
    return number != 0 ? onnx_with_number(c, function, x, number) : x;
}

/* x - zero point, as floats. */
static onnx_flow centred(onnx_context *c, int input, int zero)
{
    onnx_flow x = onnx_in(c, input);
    if (onnx_ok(c) && !is_byte(x.dtype)) onnx_unsupported(c, "of %s", sdlf_dtype_name(x.dtype));
    x = onnx_cast(c, x, SDLF_FLOAT32);
    if (onnx_has(c, zero) && is_number(c, zero)) return with_integer(c, "sub", x, zero);
    return onnx_has(c, zero)
               ? onnx_elementwise(c, "sub", x,
                                  onnx_reshape(c, onnx_cast(c, onnx_in(c, zero), SDLF_FLOAT32), SDLF_SCALAR))
               : x;
}

/* ---- matrix products ---- */

/* (a - zero point) (b - zero point) in int32, of inputs by these indices. */
static onnx_flow product(onnx_context *c, int a, int a_zero, int b, int b_zero)
{
    onnx_flow x[4] = {onnx_in(c, a), onnx_in(c, b)};
    for (int i = 0; i < 2 && onnx_ok(c); i++)
        if (!is_byte(x[i].dtype)) onnx_unsupported(c, "of %s", sdlf_dtype_name(x[i].dtype));
    int count = onnx_has(c, b_zero) ? 4 : onnx_has(c, a_zero) ? 3 : 2;
    if (count > 2) x[2] = onnx_has(c, a_zero) ? onnx_in(c, a_zero) : onnx_number(c, x[0].dtype, 0);
    if (count > 3) x[3] = onnx_in(c, b_zero);
    for (int i = 2; i < count && onnx_ok(c); i++)
        if (x[i].dtype != x[i - 2].dtype)
            onnx_wrong(c, "its operands are %s, and their zero points %s", sdlf_dtype_name(x[i - 2].dtype),
                       sdlf_dtype_name(x[i].dtype));
    return onnx_layer(c, "matmul", &(sdlf_matmul_options){.name = NULL}, x, count);
}

static void convert_matmul_integer(onnx_context *c)
{
    onnx_set_output(c, 0, product(c, 0, 2, 1, 3));
}

/* saturate(round(x / scale) + zero point), in the zero point's type; x is already divided by `scale`. */
static void give_quantised(onnx_context *c, onnx_flow x, int zero)
{
    if (is_number(c, zero)) {
        onnx_type type = onnx_known(c, zero)->type;
        if (type != ONNX_UINT8 && type != ONNX_INT8) onnx_unsupported(c, "to %s", onnx_type_name(type));
        x = with_integer(c, "add", onnx_function(c, SDLF_UNARY_ROUND, x), zero);
        onnx_set_output(c, 0, onnx_cast(c, x, onnx_type_computed(type))); /* which saturates */
        return;
    }
    onnx_flow y = onnx_in(c, zero);
    if (onnx_ok(c) && (!is_byte(y.dtype) || sdlf_shape_count(y.shape) != 1))
        onnx_unsupported(c, "to %s, zero points of shape %s", sdlf_dtype_name(y.dtype), sdlf_shape_print(y.shape).text);
    sdlf_dtype dtype = y.dtype;
    y = onnx_reshape(c, onnx_cast(c, y, SDLF_FLOAT32), SDLF_SCALAR);
    x = onnx_elementwise(c, "add", onnx_function(c, SDLF_UNARY_ROUND, x), y);
    onnx_set_output(c, 0, onnx_cast(c, x, dtype)); /* which saturates */
}

static void convert_qlinear_matmul(onnx_context *c)
{
    onnx_flow sum = onnx_cast(c, product(c, 0, 2, 3, 5), SDLF_FLOAT32);
    int rank = onnx_shape(c, 0).rank;
    onnx_flow scale = onnx_elementwise(c, "mul", along(c, 1, true, rank), along(c, 4, false, rank));
    scale = onnx_elementwise(c, "div", scale, onnx_reshape(c, onnx_in(c, 6), SDLF_SCALAR));
    give_quantised(c, onnx_elementwise(c, "mul", sum, scale), 7);
}

/* ---- convolutions ---- */

/* The weight minus its zero point (scalar or per filter), as floats; and the largest sum of magnitudes of a
 * filter. */
static onnx_tensor centred_weight(onnx_context *c, int input, int zero, double *largest)
{
    const onnx_tensor *weight = onnx_known(c, input), *point = onnx_has(c, zero) ? onnx_known(c, zero) : NULL;
    onnx_tensor result = {.name = ""};
    if (onnx_ok(c) && !is_byte(onnx_type_dtype(weight->type)))
        onnx_unsupported(c, "of a weight of %s", onnx_type_name(weight->type));
    if (onnx_ok(c) &&
        (weight->shape.rank < 3 || (point != NULL && point->count != 1 && point->count != weight->shape.dim[0])))
        onnx_wrong(c, "its weight is %s", sdlf_shape_print(weight->shape).text);
    if (!onnx_ok(c)) return result;
    result = onnx_new_weight(c, ONNX_FLOAT, weight->shape);
    int64_t filters = weight->shape.dim[0], each = filters > 0 ? weight->count / filters : 0;
    *largest = 0;
    for (int64_t f = 0; f < filters && onnx_ok(c) && !result.uniform; f++) {
        float *to = (float *)result.data + f * each, centre = 0;
        double sum = 0;
        if (point != NULL) onnx_tensor_convert(point, point->count > 1 ? f : 0, 1, SDLF_FLOAT32, &centre);
        onnx_tensor_convert(weight, f * each, each, SDLF_FLOAT32, to);
        for (int64_t i = 0; i < each; i++) {
            to[i] -= centre;
            sum += (double)fabsf(to[i]);
        }
        *largest = fmax(*largest, sum);
    }
    return result;
}

/* The upper bits, which are multiplied by 16, or the lower four. */
static onnx_tensor bits_of(onnx_context *c, const onnx_tensor *weight, bool upper, double *largest)
{
    onnx_tensor part = onnx_new_weight(c, ONNX_FLOAT, weight->shape);
    int64_t filters = weight->shape.dim[0], each = weight->count / filters;
    *largest = 0;
    for (int64_t f = 0; f < filters && onnx_ok(c) && !part.uniform; f++) {
        double sum = 0;
        for (int64_t i = f * each; i < (f + 1) * each; i++) {
            float whole = ((const float *)weight->data)[i], high = floorf(whole / 16);
            float value = upper ? high : whole - 16 * high;
            ((float *)part.data)[i] = value;
            sum += (double)fabsf(value);
        }
        *largest = fmax(*largest, sum);
    }
    return part;
}

/* The convolution of x with the weight in int32. */
static onnx_flow convolution(onnx_context *c, onnx_flow x, int input, int zero)
{
    double largest = 0, upper = 0, lower = 0;
    onnx_tensor weight = centred_weight(c, input, zero, &largest);
    if (!onnx_ok(c)) return x;
    if (largest * LARGEST <= EXACT) return onnx_cast(c, onnx_convolve(c, x, &weight, NULL), SDLF_INT32);
    onnx_tensor high = bits_of(c, &weight, true, &upper), low = bits_of(c, &weight, false, &lower);
    if (onnx_ok(c) && fmax(upper, lower) * LARGEST > EXACT)
        onnx_unsupported(c, "filters whose magnitudes add up to %g: float32 does not hold every sum", largest);
    if (!onnx_ok(c)) return x;
    onnx_flow sum = onnx_cast(c, onnx_convolve(c, x, &high, NULL), SDLF_INT32);
    sum = onnx_with_number(c, "mul", sum, 16);
    return onnx_elementwise(c, "add", sum, onnx_cast(c, onnx_convolve(c, x, &low, NULL), SDLF_INT32));
}

static void convert_conv_integer(onnx_context *c)
{
    onnx_set_output(c, 0, convolution(c, centred(c, 0, 2), 1, 3));
}

/* A scalar, or one value per filter of x, (N, filters, ...). */
static onnx_flow of_filters(onnx_context *c, int input, int rank)
{
    onnx_flow x = onnx_in(c, input);
    sdlf_shape shape = {.rank = rank - 1};
    if (!onnx_ok(c) || sdlf_shape_count(x.shape) == 1) return onnx_reshape(c, x, SDLF_SCALAR);
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = i == 0 ? sdlf_shape_count(x.shape) : 1;
    return onnx_reshape(c, x, shape);
}

/* The convolution with its bias in float32, if that holds every sum; false if it does not, or the bias is not
 * constant. */
static bool convolve_at_once(onnx_context *c, onnx_flow x, onnx_flow *sum)
{
    double largest = 0, added = 0;
    onnx_tensor weight = centred_weight(c, 3, 5, &largest), floats = {.name = ""};
    const onnx_tensor *bias = onnx_has(c, 8) && onnx_is_constant(c, 8) ? onnx_known(c, 8) : NULL;
    if (!onnx_ok(c) || (onnx_has(c, 8) && bias == NULL)) return false;
    if (bias != NULL) floats = onnx_new_weight(c, ONNX_FLOAT, bias->shape);
    if (bias != NULL && onnx_ok(c) && !floats.uniform) {
        float *to = (float *)floats.data;
        onnx_tensor_convert(bias, 0, bias->count, SDLF_FLOAT32, to);
        for (int64_t k = 0; k < bias->count; k++) added = fmax(added, fabs((double)to[k]));
    }
    if (!onnx_ok(c) || largest * LARGEST + added > EXACT) return false;
    *sum = onnx_convolve(c, x, &weight, bias != NULL ? &floats : NULL);
    return true;
}

/* Accumulators times x's scale and the weight's over y's, all constant: each product and quotient rounded to
 * float32. */
static onnx_flow scaled(onnx_context *c, onnx_flow sum, int rank)
{
    const onnx_tensor *scales = onnx_known(c, 4);
    float x = (float)onnx_known_number(c, 1, 1), y = (float)onnx_known_number(c, 6, 1);
    sdlf_shape shape = {.rank = rank - 1};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = i == 0 ? scales->count : 1;
    onnx_tensor factors = onnx_new_weight(c, ONNX_FLOAT, shape);
    if (!onnx_ok(c) || factors.uniform) return sum;
    float *factor = (float *)factors.data;
    onnx_tensor_convert(scales, 0, scales->count, SDLF_FLOAT32, factor);
    for (int64_t k = 0; k < scales->count; k++) {
        factor[k] = x * factor[k];
        factor[k] = factor[k] / y;
    }
    if (scales->count == 1) return onnx_with_number(c, "mul", sum, (double)factor[0]);
    return onnx_elementwise(c, "mul", sum, onnx_constant_layer(c, &factors));
}

static void convert_qlinear_conv(onnx_context *c)
{
    onnx_flow x = centred(c, 0, 2), sum = x;
    int rank = x.shape.rank;
    if (!convolve_at_once(c, x, &sum)) {
        sum = convolution(c, x, 3, 5);
        if (onnx_has(c, 8)) sum = onnx_elementwise(c, "add", sum, of_filters(c, 8, rank));
        sum = onnx_cast(c, sum, SDLF_FLOAT32);
    }
    if (onnx_ok(c) && is_number(c, 1) && is_number(c, 6) && onnx_is_constant(c, 4)) {
        give_quantised(c, scaled(c, sum, rank), 7);
        return;
    }
    onnx_flow scale = onnx_elementwise(c, "mul", onnx_reshape(c, onnx_in(c, 1), SDLF_SCALAR), of_filters(c, 4, rank));
    scale = onnx_elementwise(c, "div", scale, onnx_reshape(c, onnx_in(c, 6), SDLF_SCALAR));
    give_quantised(c, onnx_elementwise(c, "mul", sum, scale), 7);
}

/* ---- DynamicQuantizeLinear ---- */

static void convert_dynamic(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), y = onnx_layer(c, "dynamic_quantize", NULL, &x, 1);
    onnx_set_output(c, 0, y);
    for (int i = 1; i < 3; i++) onnx_set_output(c, i, onnx_layer_output(c, y, i));
}

#define CONVOLUTION " auto_pad dilations group kernel_shape pads strides "

const onnx_operator onnx_integer_product_operators[] = {
    {.type = "MatMulInteger",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 4,
     .attributes = " ",
     .convert = convert_matmul_integer},
    {.type = "QLinearMatMul",
     .since = 10,
     .minimum_inputs = 8,
     .maximum_inputs = 8,
     .attributes = " ",
     .convert = convert_qlinear_matmul},
    {.type = "ConvInteger",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 4,
     .known = 1u << 1 | 1u << 3,
     .attributes = CONVOLUTION,
     .convert = convert_conv_integer},
    {.type = "QLinearConv",
     .since = 10,
     .minimum_inputs = 8,
     .maximum_inputs = 9,
     .known = 1u << 3 | 1u << 5,
     .attributes = CONVOLUTION,
     .convert = convert_qlinear_conv},
    {.type = "DynamicQuantizeLinear",
     .since = 11,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_dynamic},
    {.type = NULL},
};
