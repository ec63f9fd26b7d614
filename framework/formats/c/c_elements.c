/* SPDX-License-Identifier: MIT */
/* Statements of elementwise functions: activations, binary functions, sums of two. */
#include "framework/formats/c/c_export.h"

#include <string.h>

/* ---- unary ---- */

/* y = f(v); A and B are constants of the activation. */
static const struct {
    const char *formula;
    enum { NO_NUMBERS, LOW_HIGH, SLOPE, ALPHA_BETA } numbers;
} functions[SDLF_ACTIVATION_FUNCTION_COUNT] = {
    [SDLF_IDENTITY] = {"v", NO_NUMBERS},
    [SDLF_RELU] = {"v < 0 ? 0 : v", NO_NUMBERS},
    [SDLF_CLIP] = {"v < A ? A : v > B ? B : v", LOW_HIGH},
    [SDLF_LEAKY_RELU] = {"v > 0 ? v : A * v", SLOPE},
    [SDLF_SIGMOID] = {"1 / (1 + expf(-v))", NO_NUMBERS},
    [SDLF_TANH] = {"tanhf(v)", NO_NUMBERS},
    [SDLF_SILU] = {"v / (1 + expf(-v))", NO_NUMBERS},
    [SDLF_HARD_SWISH] = {"v <= -3 ? 0 : v >= 3 ? v : v * (v / 6 + 0.5f)", NO_NUMBERS},
    [SDLF_ELU] = {"v > 0 ? v : A * expm1f(v)", ALPHA_BETA},
    [SDLF_SELU] = {"B * (v > 0 ? v : A * expm1f(v))", ALPHA_BETA},
    [SDLF_CELU] = {"v > 0 ? v : A * expm1f(v / A)", ALPHA_BETA},
    [SDLF_GELU] = {"0.5f * v * (1 + erff(v * 0.707106781f))", NO_NUMBERS},
    [SDLF_GELU_TANH] = {"0.5f * v * (1 + tanhf(0.797884561f * (v + 0.044715f * v * v * v)))", NO_NUMBERS},
    [SDLF_MISH] = {"v * tanhf(v > 20 ? v : log1pf(expf(v)))", NO_NUMBERS},
    [SDLF_SOFTPLUS] = {"v > 20 ? v : log1pf(expf(v))", NO_NUMBERS},
    [SDLF_SOFTSIGN] = {"v / (1 + fabsf(v))", NO_NUMBERS},
    [SDLF_HARD_SIGMOID] = {"A * v + B < 0 ? 0 : A * v + B > 1 ? 1 : A * v + B", ALPHA_BETA},
    [SDLF_ERF] = {"erff(v)", NO_NUMBERS},
    [SDLF_SQRT] = {"sqrtf(v)", NO_NUMBERS},
    [SDLF_EXP] = {"expf(v)", NO_NUMBERS},
    [SDLF_LOG] = {"logf(v)", NO_NUMBERS},
    [SDLF_ABS] = {"fabsf(v)", NO_NUMBERS},
    [SDLF_NEGATE] = {"-v", NO_NUMBERS},
    [SDLF_RECIPROCAL] = {"1 / v", NO_NUMBERS},
    [SDLF_FLOOR] = {"floorf(v)", NO_NUMBERS},
    [SDLF_CEIL] = {"ceilf(v)", NO_NUMBERS},
    [SDLF_ROUND] = {"rintf(v)", NO_NUMBERS},
    [SDLF_SIN] = {"sinf(v)", NO_NUMBERS},
    [SDLF_COS] = {"cosf(v)", NO_NUMBERS},
    [SDLF_TAN] = {"tanf(v)", NO_NUMBERS},
    [SDLF_ASIN] = {"asinf(v)", NO_NUMBERS},
    [SDLF_ACOS] = {"acosf(v)", NO_NUMBERS},
    [SDLF_ATAN] = {"atanf(v)", NO_NUMBERS},
    [SDLF_SINH] = {"sinhf(v)", NO_NUMBERS},
    [SDLF_COSH] = {"coshf(v)", NO_NUMBERS},
    [SDLF_ASINH] = {"asinhf(v)", NO_NUMBERS},
    [SDLF_ACOSH] = {"acoshf(v)", NO_NUMBERS},
    [SDLF_ATANH] = {"atanhf(v)", NO_NUMBERS},
    [SDLF_SIGN] = {"v > 0 ? 1 : v < 0 ? -1 : v", NO_NUMBERS},
};

void c_print_activation(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const sdlf_activation *activation = &o->activation;
    c_loops loops;
    float a = activation->alpha, b = activation->beta;
    if (functions[activation->function].numbers == LOW_HIGH) a = activation->low, b = activation->high;
    if (functions[activation->function].numbers == SLOPE) a = activation->slope;
    c_open(e, &loops, (const sdlf_tensor *const[]){&o->in[0], &o->out[0]}, 2, true);
    c_print(e, "%sconst float v = %s;\n", c_indent(loops.depth).text, c_element(e, &o->in[0], loops.index[0]).text);
    c_print(e, "%s%s = ", c_indent(loops.depth).text, c_element(e, &o->out[0], loops.index[1]).text);
    for (const char *at = functions[activation->function].formula; *at != '\0'; at++) {
        c_name number = c_number(*at == 'A' ? a : b);
        if (*at == 'A' || *at == 'B')
            c_write(e, number.text, strlen(number.text));
        else
            c_write(e, at, 1);
    }
    c_print(e, ";\n");
    c_close(e, &loops);
}

/* ---- binary ---- */

static const char *formula_of_floats(sdlf_binary_function function)
{
    switch (function) {
    case SDLF_BINARY_ADD: return "a + b";
    case SDLF_BINARY_SUBTRACT: return "a - b";
    case SDLF_BINARY_MULTIPLY: return "a * b";
    case SDLF_BINARY_DIVIDE: return "a / b";
    case SDLF_BINARY_POWER: return "powf(a, b)";
    case SDLF_BINARY_MINIMUM: return "a != a || a < b ? a : b";
    case SDLF_BINARY_MAXIMUM: return "a != a || a > b ? a : b";
    case SDLF_BINARY_PRELU: return "a < 0 ? b * a : a";
    case SDLF_BINARY_REMAINDER: return "fmodf(a, b)";
    case SDLF_BINARY_MODULO: return "fmodf(a, b) != 0 && (fmodf(a, b) < 0) != (b < 0) ? fmodf(a, b) + b : fmodf(a, b)";
    case SDLF_BINARY_EQUAL: return "a == b";
    case SDLF_BINARY_LESS: return "a < b";
    case SDLF_BINARY_LESS_EQUAL: return "a <= b";
    case SDLF_BINARY_AND: return "a && b";
    case SDLF_BINARY_OR: return "a || b";
    default: return "a != b";
    }
}

/* T is the type, U the unsigned type in which sums and products wrap around. */
static const char *formula_of_integers(sdlf_binary_function function, sdlf_dtype dtype)
{
    switch (function) {
    case SDLF_BINARY_ADD: return "(T)((U)a + (U)b)";
    case SDLF_BINARY_SUBTRACT: return "(T)((U)a - (U)b)";
    case SDLF_BINARY_MULTIPLY: return "(T)((U)a * (U)b)";
    case SDLF_BINARY_DIVIDE:
        return dtype == SDLF_UINT8 ? "b == 0 ? 0 : (T)(a / b)" : "b == 0 ? 0 : b == -1 ? (T)(0 - (U)a) : (T)(a / b)";
    case SDLF_BINARY_POWER: return "(T)integer_power(a, b)";
    case SDLF_BINARY_MINIMUM: return "a < b ? a : b";
    case SDLF_BINARY_MAXIMUM: return "a > b ? a : b";
    case SDLF_BINARY_REMAINDER:
        return dtype == SDLF_UINT8 ? "b == 0 ? 0 : (T)(a % b)" : "b == 0 || b == -1 ? 0 : (T)(a % b)";
    case SDLF_BINARY_MODULO:
        if (dtype == SDLF_UINT8) return "b == 0 ? 0 : (T)(a % b)";
        return "b == 0 || b == -1 ? 0 : a % b != 0 && (a % b < 0) != (b < 0) ? (T)(a % b + b) : (T)(a % b)";
    case SDLF_BINARY_BIT_AND: return "(T)(a & b)";
    case SDLF_BINARY_BIT_OR: return "(T)(a | b)";
    case SDLF_BINARY_BIT_XOR: return "(T)(a ^ b)";
    case SDLF_BINARY_SHIFT_LEFT:
        if (dtype == SDLF_UINT8) return "b > 63 ? 0 : (T)((uint64_t)a << b)";
        return "b < 0 || b > 63 ? 0 : (T)((uint64_t)a << b)";
    case SDLF_BINARY_SHIFT_RIGHT:
        if (dtype == SDLF_UINT8) return "b > 7 ? 0 : (T)(a >> b)";
        return "(T)((int64_t)a >> (b < 0 || b > 63 ? 63 : b))";
    default: return formula_of_floats(function);
    }
}

static void print_formula(c_export *e, const char *formula, sdlf_dtype dtype)
{
    const char *wide = dtype == SDLF_INT64 ? "uint64_t" : "uint32_t";
    for (const char *at = formula; *at != '\0'; at++) {
        if (*at == 'T' || *at == 'U')
            c_print(e, "%s", *at == 'T' ? c_type(dtype) : wide);
        else
            c_write(e, at, 1);
    }
}

void c_print_binary(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const sdlf_tensor *a = &o->in[0], *b = &o->in[1], *y = &o->out[0];
    sdlf_dtype dtype = sdlf_tensor_present(a) ? a->dtype : b->dtype;
    bool floats = dtype == SDLF_FLOAT32;
    c_loops loops;
    if (o->binary.function == SDLF_BINARY_POWER && !floats) c_use(e, "integer_power");
    c_open(e, &loops, (const sdlf_tensor *const[]){a, b, y}, 3, true);
    c_name number = c_constant(dtype, o->binary.scalar);
    c_print(e, "%sconst %s a = %s, b = %s;\n", c_indent(loops.depth).text, c_type(dtype),
            sdlf_tensor_present(a) ? c_element(e, a, loops.index[0]).text : number.text,
            sdlf_tensor_present(b) ? c_element(e, b, loops.index[1]).text : number.text);
    c_print(e, "%s%s = ", c_indent(loops.depth).text, c_element(e, y, loops.index[2]).text);
    print_formula(e, floats ? formula_of_floats(o->binary.function) : formula_of_integers(o->binary.function, dtype),
                  dtype);
    c_print(e, ";\n");
    c_close(e, &loops);
}

void c_print_sum(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    c_loops loops;
    if (o->add.activation.function != SDLF_IDENTITY) c_refuse(e, step->layer, "it is a sum with an activation");
    c_open(e, &loops, (const sdlf_tensor *const[]){&o->in[0], &o->in[1], &o->out[0]}, 3, false);
    c_print(e, "%s%s = %s + %s;\n", c_indent(loops.depth).text, c_element(e, &o->out[0], loops.index[2]).text,
            c_element(e, &o->in[0], loops.index[0]).text, c_element(e, &o->in[1], loops.index[1]).text);
}
