/* SPDX-License-Identifier: MIT */
/* Elementwise arithmetic on constants; the operator's name selects the function. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

/* ---- two operands ---- */

/* Sums and products of integers wrap around, as machine integers do. */
static int64_t add_i(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t sub_i(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static int64_t mul_i(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static int64_t div_i(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? sub_i(0, a) : a / b;
}
static int64_t min_i(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t max_i(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t mod_i(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t equal_i(int64_t a, int64_t b)
{
    return a == b;
}
static int64_t greater_i(int64_t a, int64_t b)
{
    return a > b;
}
static int64_t less_i(int64_t a, int64_t b)
{
    return a < b;
}
static int64_t not_less_i(int64_t a, int64_t b)
{
    return a >= b;
}
static int64_t not_greater_i(int64_t a, int64_t b)
{
    return a <= b;
}
static int64_t and_i(int64_t a, int64_t b)
{
    return a && b;
}
static int64_t or_i(int64_t a, int64_t b)
{
    return a || b;
}
static int64_t pow_i(int64_t a, int64_t b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    int64_t power = 1;
    for (; b > 0; b /= 2, a = mul_i(a, a))
        if (b % 2 == 1) power = mul_i(power, a);
    return power;
}
static double add_r(double a, double b)
{
    return a + b;
}
static double sub_r(double a, double b)
{
    return a - b;
}
static double mul_r(double a, double b)
{
    return a * b;
}
static double div_r(double a, double b)
{
    return a / b;
}
static double equal_r(double a, double b)
{
    return a == b;
}
static double greater_r(double a, double b)
{
    return a > b;
}
static double less_r(double a, double b)
{
    return a < b;
}
static double not_less_r(double a, double b)
{
    return a >= b;
}
static double not_greater_r(double a, double b)
{
    return a <= b;
}
static double min_r(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmin(a, b);
}
static double max_r(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

static const onnx_scalar_function binaries[] = {
    {"Add", add_r, add_i, false},
    {"Sub", sub_r, sub_i, false},
    {"Mul", mul_r, mul_i, false},
    {"Div", div_r, div_i, false},
    {"Pow", pow, pow_i, false},
    {"Mod", fmod, mod_i, false},
    {"Min", min_r, min_i, false},
    {"Max", max_r, max_i, false},
    {"Sum", add_r, add_i, false},
    {"Equal", equal_r, equal_i, true},
    {"Greater", greater_r, greater_i, true},
    {"Less", less_r, less_i, true},
    {"GreaterOrEqual", not_less_r, not_less_i, true},
    {"LessOrEqual", not_greater_r, not_greater_i, true},
    {"And", NULL, and_i, true},
    {"Or", NULL, or_i, true},
};

const onnx_scalar_function *onnx_scalar_function_find(const char *name)
{
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        if (strcmp(binaries[i].name, name) == 0) return &binaries[i];
    return NULL;
}

/* Elements of an operand, broadcast to the shape of the result. */
static onnx_numbers spread(onnx_context *c, const onnx_tensor *tensor, sdlf_shape shape)
{
    int64_t step[SDLF_MAX_RANK];
    onnx_broadcast_steps(tensor->shape, shape, step);
    onnx_tensor whole = onnx_pick(c, tensor, shape, 0, step);
    return onnx_load_numbers(c, &whole);
}

static onnx_numbers as_real(onnx_context *c, const onnx_numbers *numbers)
{
    if (numbers->real) return *numbers;
    onnx_numbers real = onnx_new_numbers(c, true, numbers->shape);
    for (int64_t i = 0; i < real.count; i++) real.number[i] = (double)numbers->integer[i];
    return real;
}

static onnx_tensor apply(onnx_context *c, const onnx_scalar_function *function, const onnx_tensor *a,
                         const onnx_tensor *b)
{
    sdlf_shape shape = onnx_broadcast(c, a->shape, b->shape);
    if (!onnx_ok(c)) return *a;
    onnx_numbers x = spread(c, a, shape), y = spread(c, b, shape);
    if (x.real != y.real && strcmp(function->name, "Pow") == 0) { /* the exponent may have another type */
        x = as_real(c, &x);
        y = as_real(c, &y);
    }
    if (!onnx_ok(c) || x.real != y.real || (x.real && function->real == NULL)) {
        onnx_wrong(c, "operands of %s and %s", onnx_type_name(a->type), onnx_type_name(b->type));
        return *a;
    }
    for (int64_t i = 0; i < x.count; i++) {
        if (x.real)
            x.number[i] = function->real(x.number[i], y.number[i]);
        else
            x.integer[i] = function->integer(x.integer[i], y.integer[i]);
    }
    return onnx_store_numbers(c, &x, function->compares ? ONNX_BOOL : a->type);
}

void onnx_fold_binary(onnx_context *c)
{
    const onnx_scalar_function *function = onnx_scalar_function_find(c->type->type);
    if (function == NULL) {
        onnx_unsupported(c, "of constants alone");
        return;
    }
    onnx_tensor result = *onnx_known(c, 0);
    for (int i = 1; i < c->input_count && onnx_ok(c); i++) result = apply(c, function, &result, onnx_known(c, i));
    onnx_set_output_constant(c, 0, &result);
}

/* ---- one operand ---- */

static double neg_r(double x)
{
    return -x;
}
static double inverse_r(double x)
{
    return 1 / x;
}
static int64_t neg_i(int64_t x)
{
    return sub_i(0, x);
}
static int64_t abs_i(int64_t x)
{
    return x < 0 ? sub_i(0, x) : x;
}
static int64_t same_i(int64_t x)
{
    return x;
}
static int64_t not_i(int64_t x)
{
    return !x;
}

void onnx_fold_unary(onnx_context *c)
{
    static const struct {
        const char *name;
        double (*real)(double);
        int64_t (*integer)(int64_t);
    } functions[] = {
        {"Neg", neg_r, neg_i},    {"Abs", fabs, abs_i},
        {"Floor", floor, same_i}, {"Ceil", ceil, same_i},
        {"Round", rint, NULL},    {"Sqrt", sqrt, NULL},
        {"Exp", exp, NULL},       {"Log", log, NULL},
        {"Erf", erf, NULL},       {"Reciprocal", inverse_r, NULL},
        {"Not", NULL, not_i},
    };
    size_t count = sizeof functions / sizeof functions[0], at = 0;
    while (at < count && strcmp(functions[at].name, c->type->type) != 0) at++;
    onnx_numbers x = onnx_load_numbers(c, onnx_known(c, 0));
    if (at == count || (x.real ? functions[at].real == NULL : functions[at].integer == NULL)) {
        onnx_unsupported(c, "of a constant of %s", onnx_type_name(onnx_known(c, 0)->type));
        return;
    }
    for (int64_t i = 0; i < x.count; i++) {
        if (x.real)
            x.number[i] = functions[at].real(x.number[i]);
        else
            x.integer[i] = functions[at].integer(x.integer[i]);
    }
    onnx_tensor result = onnx_store_numbers(c, &x, onnx_known(c, 0)->type);
    onnx_set_output_constant(c, 0, &result);
}

/* ---- the others ---- */

void onnx_fold_where(onnx_context *c)
{
    const onnx_tensor *condition = onnx_known(c, 0), *x = onnx_known(c, 1), *y = onnx_known(c, 2);
    if (!onnx_ok(c)) return;
    sdlf_shape shape = onnx_broadcast(c, onnx_broadcast(c, condition->shape, x->shape), y->shape);
    if (!onnx_ok(c)) return;
    if (condition->type != ONNX_BOOL) onnx_wrong(c, "a condition of %s", onnx_type_name(condition->type));
    if (x->type != y->type) onnx_wrong(c, "operands of %s and %s", onnx_type_name(x->type), onnx_type_name(y->type));
    int64_t step[SDLF_MAX_RANK];
    onnx_numbers chosen = spread(c, condition, shape);
    onnx_broadcast_steps(x->shape, shape, step);
    onnx_tensor result = onnx_pick(c, x, shape, 0, step);
    onnx_broadcast_steps(y->shape, shape, step);
    onnx_tensor other = onnx_pick(c, y, shape, 0, step);
    result = onnx_materialize(c, &result);
    other = onnx_materialize(c, &other);
    size_t size = onnx_type_size(result.type);
    for (int64_t i = 0; onnx_ok(c) && i < chosen.count; i++)
        if (!chosen.integer[i])
            memcpy((char *)result.data + (size_t)i * size, (const char *)other.data + (size_t)i * size, size);
    onnx_set_output_constant(c, 0, &result);
}
