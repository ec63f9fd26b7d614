/* SPDX-License-Identifier: MIT */
/* Gemm and MatMul. With a constant second operand they are fully connected layers with a trainable weight. */
#include "framework/formats/onnx/import/compose.h"

/* True if it has one value per unit, so that a fully connected layer's bias can be filled from it. */
static bool is_bias(const onnx_tensor *tensor, int64_t units)
{
    return tensor->count == units && tensor->shape.rank >= 1 && tensor->shape.dim[tensor->shape.rank - 1] == units;
}

/* x (...,K) times the constant, (K,N) or, transposed, (N,K). */
onnx_flow onnx_fully_connected(onnx_context *c, onnx_flow x, const onnx_tensor *weight, bool transposed, float alpha,
                               const onnx_tensor *bias, float beta)
{
    int64_t inner = weight->shape.dim[transposed ? 1 : 0], units = weight->shape.dim[transposed ? 0 : 1];
    int rank = x.shape.rank;
    if (!onnx_ok(c)) return x;
    if (inner != x.shape.dim[rank - 1] || units < 1 || units > INT32_MAX)
        onnx_wrong(c, "its factors are %s and %s%s", sdlf_shape_print(x.shape).text,
                   sdlf_shape_print(weight->shape).text, transposed ? ", transposed" : "");
    sdlf_fully_connected_options options = {.units = (int)units, .no_bias = bias == NULL, .axis = rank > 2 ? -1 : 0};
    onnx_flow y = onnx_layer(c, "fully_connected", &options, &x, 1);
    onnx_fill_with(c, y, "weight", (onnx_fill){.tensor = *weight, .transpose = !transposed, .scale = alpha});
    if (bias != NULL) onnx_fill_with(c, y, "bias", (onnx_fill){.tensor = *bias, .scale = beta});
    return y;
}

static onnx_flow scaled(onnx_context *c, onnx_flow x, float factor)
{
    if (factor == 1) return x;
    return onnx_with_number(c, "mul", x, (double)factor);
}

static onnx_flow transposed_matrix(onnx_context *c, onnx_flow x, bool transposed)
{
    return transposed ? onnx_transpose(c, x, (const int[]){1, 0}) : x;
}

static void convert_gemm(onnx_context *c)
{
    sdlf_shape a = onnx_shape(c, 0), b = onnx_shape(c, 1);
    float alpha = onnx_real(c, "alpha", 1), beta = onnx_real(c, "beta", 1);
    bool transpose_a = onnx_flag(c, "transA", false), transpose_b = onnx_flag(c, "transB", false);
    if (a.rank != 2 || b.rank != 2) {
        onnx_wrong(c, "its factors are %s and %s; matrices were expected", sdlf_shape_print(a).text,
                   sdlf_shape_print(b).text);
        return;
    }
    onnx_flow x = transposed_matrix(c, onnx_in(c, 0), transpose_a);
    bool has_c = onnx_has(c, 2) && beta != 0;
    const onnx_tensor *bias = has_c && onnx_is_constant(c, 2) ? onnx_known(c, 2) : NULL;
    int64_t units = b.dim[transpose_b ? 0 : 1];
    if (onnx_is_constant(c, 1) && alpha != 0 && (!has_c || (bias != NULL && is_bias(bias, units)))) {
        onnx_set_output(c, 0, onnx_fully_connected(c, x, onnx_known(c, 1), transpose_b, alpha, bias, beta));
        return;
    }
    onnx_flow factors[] = {x, onnx_in(c, 1)};
    onnx_flow y = onnx_layer(c, "matmul", &(sdlf_matmul_options){.transpose_b = transpose_b}, factors, 2);
    y = scaled(c, y, alpha);
    if (has_c) {
        onnx_flow terms[] = {y, scaled(c, onnx_in(c, 2), beta)};
        y = onnx_binary(c, "add", terms);
    }
    onnx_set_output(c, 0, y);
}

static void convert_matmul(onnx_context *c)
{
    sdlf_shape a = onnx_shape(c, 0), b = onnx_shape(c, 1);
    const Onnx__NodeProto *behind = NULL;
    if (!onnx_is_constant(c, 1) || b.rank != 2 || a.rank < 2) {
        onnx_flow factors[] = {onnx_in(c, 0), onnx_in(c, 1)};
        onnx_set_output(c, 0, onnx_layer(c, "matmul", NULL, factors, 2));
        return;
    }
    const onnx_tensor *weight = onnx_known(c, 1), *bias = onnx_constant_behind(c, "Add", &behind);
    if (bias != NULL && !(bias->shape.rank <= a.rank && is_bias(bias, b.dim[1]))) bias = NULL;
    onnx_flow y = onnx_fully_connected(c, onnx_in(c, 0), weight, false, 1, bias, 1);
    onnx_set_output(c, 0, y);
    if (bias != NULL) onnx_absorb(c, behind, y);
}

const onnx_operator onnx_product_operators[] = {
    {.type = "Gemm",
     .since = 7,
     .minimum_inputs = 2,
     .maximum_inputs = 3,
     .attributes = " alpha beta transA transB ",
     .convert = convert_gemm},
    {.type = "MatMul",
     .since = 1,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " ",
     .convert = convert_matmul},
    {.type = NULL},
};
