/* SPDX-License-Identifier: MIT */
/* binary, binary_backward, select: elementwise over operands of any strides. */
#include "calculators/integer_functions.h"
#include "calculators/reference/reference.h"

#include <math.h>
#include <string.h>

/* Element e (in row-major order) of an operand as float64 or int64; the scalar if it is absent. */
static double real_at(const sdlf_tensor *x, int64_t e, double scalar)
{
    double value = scalar;
    if (sdlf_tensor_present(x)) sdlf_convert(SDLF_FLOAT64, &value, x->dtype, element_address(x, e), 1);
    return value;
}

static int64_t integer_at(const sdlf_tensor *x, int64_t e, sdlf_dtype dtype, double scalar)
{
    int64_t value, element;
    if (sdlf_tensor_present(x)) {
        sdlf_convert(SDLF_INT64, &value, x->dtype, element_address(x, e), 1);
        return value;
    }
    sdlf_convert(dtype, &element, SDLF_FLOAT64, &scalar, 1);
    sdlf_convert(SDLF_INT64, &value, dtype, &element, 1);
    return value;
}

/* The floored remainder of a / b. */
static double modulo(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double of_reals(sdlf_binary_function function, double a, double b)
{
    switch (function) {
    case SDLF_BINARY_ADD: return a + b;
    case SDLF_BINARY_SUBTRACT: return a - b;
    case SDLF_BINARY_MULTIPLY: return a * b;
    case SDLF_BINARY_DIVIDE: return a / b;
    case SDLF_BINARY_POWER: return pow(a, b);
    case SDLF_BINARY_MINIMUM: return isnan(a) || a < b ? a : b;
    case SDLF_BINARY_MAXIMUM: return isnan(a) || a > b ? a : b;
    case SDLF_BINARY_PRELU: return a < 0 ? b * a : a;
    case SDLF_BINARY_REMAINDER: return fmod(a, b);
    case SDLF_BINARY_MODULO: return modulo(a, b);
    case SDLF_BINARY_EQUAL: return a == b;
    case SDLF_BINARY_LESS: return a < b;
    default: return a <= b;
    }
}

/* Sums, differences and products modulo 2^64; the result's type keeps the low bits. */
static int64_t of_integers(sdlf_binary_function function, int64_t a, int64_t b)
{
    switch (function) {
    case SDLF_BINARY_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SDLF_BINARY_SUBTRACT: return (int64_t)((uint64_t)a - (uint64_t)b);
    case SDLF_BINARY_MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
    case SDLF_BINARY_DIVIDE: return b == 0 ? 0 : b == -1 ? (int64_t) - (uint64_t)a : a / b;
    case SDLF_BINARY_POWER: return sdlf_integer_power(a, b);
    case SDLF_BINARY_MINIMUM: return a < b ? a : b;
    case SDLF_BINARY_MAXIMUM: return a > b ? a : b;
    case SDLF_BINARY_REMAINDER: return sdlf_integer_remainder(a, b);
    case SDLF_BINARY_MODULO: return sdlf_integer_modulo(a, b);
    case SDLF_BINARY_BIT_AND: return a & b;
    case SDLF_BINARY_BIT_OR: return a | b;
    case SDLF_BINARY_BIT_XOR: return a ^ b;
    case SDLF_BINARY_SHIFT_LEFT: return sdlf_integer_shift_left(a, b);
    case SDLF_BINARY_SHIFT_RIGHT: return sdlf_integer_shift_right(a, b);
    case SDLF_BINARY_EQUAL: return a == b;
    case SDLF_BINARY_LESS: return a < b;
    case SDLF_BINARY_LESS_EQUAL: return a <= b;
    case SDLF_BINARY_AND: return a && b;
    case SDLF_BINARY_OR: return a || b;
    default: return a != b; /* xor */
    }
}

static void put_integer(const sdlf_tensor *y, int64_t e, int64_t value)
{
    switch (y->dtype) {
    case SDLF_INT64: ((int64_t *)y->data)[e] = value; break;
    case SDLF_INT32: ((uint32_t *)y->data)[e] = (uint32_t)value; break;
    default: ((uint8_t *)y->data)[e] = (uint8_t)value; break;
    }
}

sdlf_status binary_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    sdlf_dtype dtype = sdlf_tensor_present(a) ? a->dtype : b->dtype;
    sdlf_binary_function function = operation->binary.function;
    int64_t count = sdlf_tensor_count(y);
    double scalar = operation->binary.scalar;
    if (dtype == SDLF_FLOAT32) scalar = (double)(float)scalar;
    for (int64_t e = 0; e < count; e++) {
        if (!sdlf_dtype_is_float(dtype)) {
            put_integer(y, e, of_integers(function, integer_at(a, e, dtype, scalar), integer_at(b, e, dtype, scalar)));
            continue;
        }
        double value = of_reals(function, real_at(a, e, scalar), real_at(b, e, scalar));
        sdlf_convert(y->dtype, element_address(y, e), SDLF_FLOAT64, &value, 1);
    }
    return SDLF_OK;
}

static void derivatives(sdlf_binary_function function, double a, double b, double *by_a, double *by_b)
{
    *by_a = *by_b = 1;
    switch (function) {
    case SDLF_BINARY_SUBTRACT: *by_b = -1; break;
    case SDLF_BINARY_MULTIPLY: *by_a = b, *by_b = a; break;
    case SDLF_BINARY_DIVIDE: *by_a = 1 / b, *by_b = -a / (b * b); break;
    case SDLF_BINARY_POWER: *by_a = b * pow(a, b - 1), *by_b = a == 0 ? 0 : pow(a, b) * log(a); break;
    case SDLF_BINARY_MINIMUM: *by_a = a < b ? 1 : a == b ? 0.5 : 0, *by_b = 1 - *by_a; break;
    case SDLF_BINARY_MAXIMUM: *by_a = a > b ? 1 : a == b ? 0.5 : 0, *by_b = 1 - *by_a; break;
    case SDLF_BINARY_PRELU: *by_a = a < 0 ? b : 1, *by_b = a < 0 ? a : 0; break;
    case SDLF_BINARY_REMAINDER: *by_b = -trunc(a / b); break;
    case SDLF_BINARY_MODULO: *by_b = -floor(a / b); break;
    default: break;
    }
}

sdlf_status binary_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *dy = &operation->in[2];
    const sdlf_tensor *da = &operation->out[0], *db = &operation->out[1];
    double scalar = dy->dtype == SDLF_FLOAT32 ? (double)(float)operation->binary.scalar : operation->binary.scalar;
    int64_t count = sdlf_tensor_count(dy);
    for (int64_t e = 0; e < count; e++) {
        double by_a, by_b;
        derivatives(operation->binary.function, real_at(a, e, scalar), real_at(b, e, scalar), &by_a, &by_b);
        if (sdlf_tensor_present(da)) put(da, e, get(dy, e) * by_a);
        if (sdlf_tensor_present(db)) put(db, e, get(dy, e) * by_b);
    }
    return SDLF_OK;
}

/* y = condition ? a : b */
sdlf_status select_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    size_t size = sdlf_dtype_size(y->dtype);
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        const sdlf_tensor *from = &operation->in[*element_address(&operation->in[0], e) ? 1 : 2];
        if (sdlf_tensor_present(from)) {
            memcpy(element_address(y, e), element_address(from, e), size);
        } else {
            memset(element_address(y, e), 0, size);
        }
    }
    return SDLF_OK;
}
