/* SPDX-License-Identifier: MIT */
/* Elementwise operators: activations and functions. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

static void convert_plain(onnx_context *c)
{
    static const struct {
        const char *type, *layer;
    } layers[] = {{"Relu", "relu"}, {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"}};
    onnx_flow x = onnx_in(c, 0);
    if (onnx_is_integer(x)) {
        onnx_set_output(c, 0, onnx_integer_function(c, x));
        return;
    }
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (strcmp(layers[i].type, c->type->type) == 0)
            onnx_set_output(c, 0, onnx_layer(c, layers[i].layer, NULL, &x, 1));
}

static void convert_leaky_relu(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    float slope = onnx_real(c, "alpha", 0.01f);
    if (slope == 0)
        onnx_set_output(c, 0, onnx_layer(c, "relu", NULL, &x, 1));
    else
        onnx_set_output(c, 0, onnx_layer(c, "leaky_relu", &(sdlf_leaky_relu_options){.slope = slope}, &x, 1));
}

/* Applies a bound to integers: that input, or before opset 11 the value of an attribute. */
static onnx_flow bounded(onnx_context *c, onnx_flow x, int input, const char *function, double bound)
{
    if (c->opset < 11 || onnx_is_exact_number(c, input)) return onnx_with_number(c, function, x, bound);
    onnx_flow both[] = {x, onnx_reshape(c, onnx_in(c, input), SDLF_SCALAR)};
    return onnx_binary(c, function, both);
}

/* Bounds are attributes before opset 11, inputs since. Omitted bounds of floats are the largest float, which the layer
 * treats as no bound in float64; an explicit infinity is no bound either. */
static void convert_clip(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    const bool is_float = sdlf_dtype_is_float(x.dtype);
    const double most = (double)FLT_MAX;
    double low = -most, high = most;
    if (c->opset < 11) {
        low = (double)onnx_real(c, "min", -FLT_MAX);
        high = (double)onnx_real(c, "max", FLT_MAX);
    } else {
        low = onnx_known_number(c, 1, low);
        high = onnx_known_number(c, 2, high);
    }
    const bool is_open = is_float && (isinf(low) || isinf(high));
    if (isnan(low) || isnan(high) || (!isinf(low) && fabs(low) > most) || (!isinf(high) && fabs(high) > most))
        onnx_unsupported(c, "bounds %g and %g", low, high);
    if (!onnx_ok(c)) return;
    if (is_open) {
        if (low > -INFINITY) x = onnx_with_number(c, "max", x, low);
        onnx_set_output(c, 0, high < INFINITY ? onnx_with_number(c, "min", x, high) : x);
        return;
    }
    low = fmax(low, -most);
    high = fmin(high, most);
    if (!is_float) {
        if (low > -most) x = bounded(c, x, 1, "max", low);
        if (high < most) x = bounded(c, x, 2, "min", high);
        onnx_set_output(c, 0, x);
        return;
    }
    if ((float)low >= (float)high) { /* all elements become the upper bound, except NaN */
        x = onnx_with_number(c, "max", x, low);
        onnx_set_output(c, 0, onnx_with_number(c, "min", x, high));
        return;
    }
    if (low == 0 && high == 6)
        onnx_set_output(c, 0, onnx_layer(c, "relu6", NULL, &x, 1));
    else if (low == -most && high == most)
        onnx_set_output(c, 0, x);
    else
        onnx_set_output(c, 0,
                        onnx_layer(c, "clip", &(sdlf_clip_options){.low = (float)low, .high = (float)high}, &x, 1));
}

/* Functions of the layer unary, and the defaults of their attributes. */
static const struct {
    const char *type;
    sdlf_unary_function function;
    float alpha, beta;
    const char *beta_name;
} functions[] = {
    {"Elu", SDLF_UNARY_ELU, 1, 0, NULL},
    {"Selu", SDLF_UNARY_SELU, 1.67326319217681884765625f, 1.05070102214813232421875f, "gamma"},
    {"Celu", SDLF_UNARY_CELU, 1, 0, NULL},
    {"HardSigmoid", SDLF_UNARY_HARD_SIGMOID, 0.2f, 0.5f, "beta"},
    {"HardSwish", SDLF_UNARY_HARD_SWISH, 0, 0, NULL},
    {"Mish", SDLF_UNARY_MISH, 0, 0, NULL},
    {"Softplus", SDLF_UNARY_SOFTPLUS, 0, 0, NULL},
    {"Softsign", SDLF_UNARY_SOFTSIGN, 0, 0, NULL},
    {"Erf", SDLF_UNARY_ERF, 0, 0, NULL},
    {"Sqrt", SDLF_UNARY_SQRT, 0, 0, NULL},
    {"Exp", SDLF_UNARY_EXP, 0, 0, NULL},
    {"Log", SDLF_UNARY_LOG, 0, 0, NULL},
    {"Abs", SDLF_UNARY_ABS, 0, 0, NULL},
    {"Neg", SDLF_UNARY_NEGATE, 0, 0, NULL},
    {"Reciprocal", SDLF_UNARY_RECIPROCAL, 0, 0, NULL},
    {"Floor", SDLF_UNARY_FLOOR, 0, 0, NULL},
    {"Ceil", SDLF_UNARY_CEIL, 0, 0, NULL},
    {"Round", SDLF_UNARY_ROUND, 0, 0, NULL},
    {"Sin", SDLF_UNARY_SIN, 0, 0, NULL},
    {"Cos", SDLF_UNARY_COS, 0, 0, NULL},
    {"Tan", SDLF_UNARY_TAN, 0, 0, NULL},
    {"Asin", SDLF_UNARY_ASIN, 0, 0, NULL},
    {"Acos", SDLF_UNARY_ACOS, 0, 0, NULL},
    {"Atan", SDLF_UNARY_ATAN, 0, 0, NULL},
    {"Sinh", SDLF_UNARY_SINH, 0, 0, NULL},
    {"Cosh", SDLF_UNARY_COSH, 0, 0, NULL},
    {"Asinh", SDLF_UNARY_ASINH, 0, 0, NULL},
    {"Acosh", SDLF_UNARY_ACOSH, 0, 0, NULL},
    {"Atanh", SDLF_UNARY_ATANH, 0, 0, NULL},
    {"Sign", SDLF_UNARY_SIGN, 0, 0, NULL},
};

/* Handles attributes of 0, which the layer would replace by the default, with another layer. */
static bool convert_without_slope(onnx_context *c, const sdlf_unary_options *options, onnx_flow x)
{
    if (options->function == SDLF_UNARY_HARD_SIGMOID && (options->alpha == 0 || options->beta == 0)) {
        x = onnx_with_number(c, "mul", x, (double)options->alpha);
        x = onnx_with_number(c, "add", x, (double)options->beta);
        onnx_set_output(c, 0, onnx_layer(c, "clip", &(sdlf_clip_options){.low = 0, .high = 1}, &x, 1));
        return true;
    }
    if (options->function != SDLF_UNARY_ELU || options->alpha != 0) return false;
    onnx_set_output(c, 0, onnx_layer(c, "relu", NULL, &x, 1));
    return true;
}

static void convert_unary(onnx_context *c)
{
    size_t at = 0, count = sizeof functions / sizeof functions[0];
    while (at < count && strcmp(functions[at].type, c->type->type) != 0) at++;
    if (at == count) return;
    sdlf_unary_options options = {.function = (int)functions[at].function};
    if (functions[at].alpha != 0) options.alpha = onnx_real(c, "alpha", functions[at].alpha);
    if (functions[at].beta_name != NULL) options.beta = onnx_real(c, functions[at].beta_name, functions[at].beta);
    onnx_flow x = onnx_in(c, 0);
    if (onnx_is_integer(x)) {
        onnx_set_output(c, 0, onnx_integer_function(c, x));
        return;
    }
    if (convert_without_slope(c, &options, x)) return;
    if ((functions[at].alpha != 0 && options.alpha == 0) || (functions[at].beta != 0 && options.beta == 0))
        onnx_unsupported(c, "an attribute alpha, beta or gamma of 0");
    onnx_set_output(c, 0, onnx_layer(c, "unary", &options, &x, 1));
}

static void convert_gelu(onnx_context *c)
{
    onnx_word approximate = onnx_text(c, "approximate", "none");
    bool by_tanh = strcmp(approximate.text, "tanh") == 0;
    if (!by_tanh && strcmp(approximate.text, "none") != 0)
        onnx_wrong(c, "attribute 'approximate' is '%s'", approximate.text);
    onnx_flow x = onnx_in(c, 0);
    onnx_set_output(c, 0,
                    onnx_layer(c, "unary",
                               &(sdlf_unary_options){.function = by_tanh ? SDLF_UNARY_GELU_TANH : SDLF_UNARY_GELU}, &x,
                               1));
}

#define ONE_INPUT .minimum_inputs = 1, .maximum_inputs = 1

const onnx_operator onnx_elementwise_operators[] = {
    {.type = "Relu", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_plain},
    {.type = "Sigmoid", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_plain},
    {.type = "Tanh", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_plain},
    {.type = "LeakyRelu", .since = 6, ONE_INPUT, .attributes = " alpha ", .convert = convert_leaky_relu},
    {.type = "Clip",
     .since = 6,
     .minimum_inputs = 1,
     .maximum_inputs = 3,
     .known = 6,
     .attributes = " min max ",
     .convert = convert_clip},
    {.type = "Elu", .since = 6, ONE_INPUT, .attributes = " alpha ", .convert = convert_unary},
    {.type = "Selu", .since = 6, ONE_INPUT, .attributes = " alpha gamma ", .convert = convert_unary},
    {.type = "Celu", .since = 12, ONE_INPUT, .attributes = " alpha ", .convert = convert_unary},
    {.type = "HardSigmoid", .since = 6, ONE_INPUT, .attributes = " alpha beta ", .convert = convert_unary},
    {.type = "HardSwish", .since = 14, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Mish", .since = 18, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Gelu", .since = 20, ONE_INPUT, .attributes = " approximate ", .convert = convert_gelu},
    {.type = "Softplus", .since = 1, .from_first = true, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Softsign", .since = 1, .from_first = true, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Erf", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Sqrt", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Exp", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Log", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Abs", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Neg", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Reciprocal", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Floor", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Ceil", .since = 6, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Round", .since = 11, ONE_INPUT, .attributes = " ", .convert = convert_unary, .fold = onnx_fold_unary},
    {.type = "Sin", .since = 7, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Cos", .since = 7, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Tan", .since = 7, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Asin", .since = 7, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Acos", .since = 7, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Atan", .since = 7, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Sinh", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Cosh", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Asinh", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Acosh", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Atanh", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = "Sign", .since = 9, ONE_INPUT, .attributes = " ", .convert = convert_unary},
    {.type = NULL},
};
