/* SPDX-License-Identifier: MIT */
/* Unary elementwise functions. Functions for which an opset has no operator are decomposed. */
#include "framework/formats/onnx/export/export.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The layer is exactly this operator, without attributes. */
static void plain(onnx_export *e, const char *type)
{
    export_node(e, type, (const char *const[]){export_in(e, 0), NULL}, NULL);
}

static const char *number(onnx_export *e, double value)
{
    return export_number(e, value, SDLF_FLOAT32);
}

static void product(onnx_export *e, const char *a, const char *b)
{
    export_node(e, "Mul", (const char *const[]){a, b, NULL}, NULL);
}

void export_activation(onnx_export *e)
{
    static const struct {
        const char *layer, *type;
    } types[] = {{"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].layer, e->now->layer.type->name) == 0) plain(e, types[i].type);
}

void export_leaky_relu(onnx_export *e)
{
    const sdlf_leaky_relu_options *options = export_options(e);
    export_node(e, "LeakyRelu", (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){export_real("alpha", options->slope), {0}});
}

/* clip, and relu6, which is clip to [0, 6]. A bound of the largest float means none. */
void export_clip(onnx_export *e)
{
    bool six = strcmp(e->now->layer.type->name, "relu6") == 0;
    const sdlf_clip_options *options = six ? &(sdlf_clip_options){.low = 0, .high = 6} : export_options(e);
    const char *low = options->low > -FLT_MAX ? number(e, (double)options->low) : "";
    const char *high = options->high < FLT_MAX ? number(e, (double)options->high) : "";
    export_node(e, "Clip", (const char *const[]){export_in(e, 0), low, high, NULL}, NULL);
}

/* ---- the layer unary ---- */

/* x (1 + erf(x / sqrt 2)) / 2, or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf. */
static void gelu(onnx_export *e, bool by_tanh)
{
    const char *x = export_in(e, 0), *inner;
    if (e->opset >= 20) {
        export_node(e, "Gelu", (const char *const[]){x, NULL},
                    (const export_attribute[]){export_word("approximate", by_tanh ? "tanh" : "none"), {0}});
        return;
    }
    if (by_tanh) {
        const char *square = export_step2(e, "Mul", x, x);
        const char *cube = export_step2(e, "Mul", square, x);
        const char *sum = export_step2(e, "Add", x, export_step2(e, "Mul", cube, number(e, 0.044715)));
        inner = export_step1(e, "Tanh", export_step2(e, "Mul", sum, number(e, 0.79788456080286535588)));
    } else {
        inner = export_step1(e, "Erf", export_step2(e, "Mul", x, number(e, 0.70710678118654752440)));
    }
    const char *half = export_step2(e, "Mul", x, number(e, 0.5));
    product(e, half, export_step2(e, "Add", inner, number(e, 1)));
}

static void mish(onnx_export *e)
{
    const char *x = export_in(e, 0);
    if (e->opset >= 18)
        plain(e, "Mish");
    else
        product(e, x, export_step1(e, "Tanh", export_step1(e, "Softplus", x)));
}

/* Operators with the attributes alpha and gamma or beta; 0 means the function's default. */
static void with_constants(onnx_export *e, const char *type, const char *second, float alpha, float beta)
{
    const sdlf_unary_options *options = export_options(e);
    if (options->alpha != 0) alpha = options->alpha;
    if (options->beta != 0) beta = options->beta;
    export_attribute last = {0};
    if (second != NULL) last = export_real(second, beta);
    export_node(e, type, (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){export_real("alpha", alpha), last, {0}});
}

void export_unary(onnx_export *e)
{
    static const char *const types[SDLF_UNARY_FUNCTION_COUNT] = {
        [SDLF_UNARY_HARD_SWISH] = "HardSwish",
        [SDLF_UNARY_SOFTPLUS] = "Softplus",
        [SDLF_UNARY_SOFTSIGN] = "Softsign",
        [SDLF_UNARY_ERF] = "Erf",
        [SDLF_UNARY_SQRT] = "Sqrt",
        [SDLF_UNARY_EXP] = "Exp",
        [SDLF_UNARY_LOG] = "Log",
        [SDLF_UNARY_ABS] = "Abs",
        [SDLF_UNARY_NEGATE] = "Neg",
        [SDLF_UNARY_RECIPROCAL] = "Reciprocal",
        [SDLF_UNARY_FLOOR] = "Floor",
        [SDLF_UNARY_CEIL] = "Ceil",
        [SDLF_UNARY_ROUND] = "Round",
        [SDLF_UNARY_SIN] = "Sin",
        [SDLF_UNARY_COS] = "Cos",
        [SDLF_UNARY_TAN] = "Tan",
        [SDLF_UNARY_ASIN] = "Asin",
        [SDLF_UNARY_ACOS] = "Acos",
        [SDLF_UNARY_ATAN] = "Atan",
        [SDLF_UNARY_SINH] = "Sinh",
        [SDLF_UNARY_COSH] = "Cosh",
        [SDLF_UNARY_ASINH] = "Asinh",
        [SDLF_UNARY_ACOSH] = "Acosh",
        [SDLF_UNARY_ATANH] = "Atanh",
        [SDLF_UNARY_SIGN] = "Sign",
    };
    int function = ((const sdlf_unary_options *)export_options(e))->function;
    const char *x = export_in(e, 0);
    switch (function) {
    case SDLF_UNARY_SILU: product(e, x, export_step1(e, "Sigmoid", x)); break;
    case SDLF_UNARY_ELU: with_constants(e, "Elu", NULL, 1, 0); break;
    case SDLF_UNARY_SELU:
        with_constants(e, "Selu", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f);
        break;
    case SDLF_UNARY_CELU: with_constants(e, "Celu", NULL, 1, 0); break;
    case SDLF_UNARY_HARD_SIGMOID: with_constants(e, "HardSigmoid", "beta", 0.2f, 0.5f); break;
    case SDLF_UNARY_GELU: gelu(e, false); break;
    case SDLF_UNARY_GELU_TANH: gelu(e, true); break;
    case SDLF_UNARY_MISH: mish(e); break;
    default: plain(e, types[function]); break;
    }
}
