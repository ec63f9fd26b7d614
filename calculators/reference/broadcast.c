/* SPDX-License-Identifier: MIT */
/* binary, binary_backward, select: elementwise over operands of any strides. */
#include "calculators/integer_functions.h"
#include "calculators/reference/reference.h"

#include <math.h>
#include <string.h>

/* An element of an operand as float64 or int64; the scalar if the operand is absent. */
static double real_of(const element_iterator *x, double scalar)
{
    double value = scalar;
    if (x->address == NULL) return value;
    if (x->tensor->dtype == SDLF_FLOAT64) return *(const double *)x->address;
    sdlf_convert(SDLF_FLOAT64, &value, x->tensor->dtype, x->address, 1);
    return value;
}

static int64_t integer_of(const element_iterator *x, sdlf_dtype dtype, double scalar)
{
    int64_t value, converted;
    if (x->address != NULL) {
        sdlf_convert(SDLF_INT64, &value, x->tensor->dtype, x->address, 1);
        return value;
    }
    sdlf_convert(dtype, &converted, SDLF_FLOAT64, &scalar, 1);
    sdlf_convert(SDLF_INT64, &value, dtype, &converted, 1);
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
    const sdlf_tensor *y = &operation->out[0];
    element_iterator a = first_element(&operation->in[0]), b = first_element(&operation->in[1]), to = first_element(y);
    sdlf_dtype dtype = operation->in[a.address == NULL].dtype;
    sdlf_binary_function function = operation->binary.function;
    const int64_t count = sdlf_tensor_count(y);
    double scalar = operation->binary.scalar;
    if (dtype == SDLF_FLOAT32) scalar = (double)(float)scalar;
    for (int64_t e = 0; e < count; e++, next_element(&a), next_element(&b), next_element(&to)) {
        if (!sdlf_dtype_is_float(dtype)) {
            put_integer(y, e, of_integers(function, integer_of(&a, dtype, scalar), integer_of(&b, dtype, scalar)));
            continue;
        }
        double value = of_reals(function, real_of(&a, scalar), real_of(&b, scalar));
        if (y->dtype == SDLF_FLOAT64)
            *(double *)to.address = value;
        else
            sdlf_convert(y->dtype, to.address, SDLF_FLOAT64, &value, 1);
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
    const sdlf_tensor *dy = &operation->in[2];
    element_iterator a = first_element(&operation->in[0]), b = first_element(&operation->in[1]);
    const sdlf_tensor *da = &operation->out[0], *db = &operation->out[1];
    double scalar = dy->dtype == SDLF_FLOAT32 ? (double)(float)operation->binary.scalar : operation->binary.scalar;
    const int64_t count = sdlf_tensor_count(dy);
    for (int64_t e = 0; e < count; e++, next_element(&a), next_element(&b)) {
        double by_a, by_b;
        derivatives(operation->binary.function, real_of(&a, scalar), real_of(&b, scalar), &by_a, &by_b);
        if (sdlf_tensor_present(da)) put(da, e, get(dy, e) * by_a);
        if (sdlf_tensor_present(db)) put(db, e, get(dy, e) * by_b);
    }
    return SDLF_OK;
}

/* y = condition ? a : b */
sdlf_status select_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    element_iterator in[3], to = first_element(&operation->out[0]);
    for (int i = 0; i < 3; i++) in[i] = first_element(&operation->in[i]);
    for (int64_t e = sdlf_tensor_count(&operation->out[0]); e > 0; e--, next_element(&to)) {
        const element_iterator *from = &in[*in[0].address ? 1 : 2];
        if (from->address != NULL)
            memcpy(to.address, from->address, (size_t)to.size);
        else
            memset(to.address, 0, (size_t)to.size);
        for (int i = 0; i < 3; i++) next_element(&in[i]);
    }
    return SDLF_OK;
}
