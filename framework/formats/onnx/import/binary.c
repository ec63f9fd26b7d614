/* SPDX-License-Identifier: MIT */
/* Operators of two broadcasting operands, variadic ones, Not and Where. */
#include <math.h>
#include <string.h>

#include "framework/formats/onnx/import/fold.h"

static const struct {
    const char *type, *name; /* the operator, and the converters' name for the function */
    sdlf_binary_layer_function function;
} functions[] = {
    {"Add", "add", SDLF_LAYER_ADD},
    {"Sub", "sub", SDLF_LAYER_SUBTRACT},
    {"Mul", "mul", SDLF_LAYER_MULTIPLY},
    {"Div", "div", SDLF_LAYER_DIVIDE},
    {"Pow", "pow", SDLF_LAYER_POWER},
    {"Min", "min", SDLF_LAYER_MINIMUM},
    {"Max", "max", SDLF_LAYER_MAXIMUM},
    {"PRelu", "prelu", SDLF_LAYER_PRELU},
    {"Equal", "equal", SDLF_LAYER_EQUAL},
    {"Less", "less", SDLF_LAYER_LESS},
    {"LessOrEqual", "less_equal", SDLF_LAYER_LESS_EQUAL},
    {"Greater", "greater", SDLF_LAYER_GREATER},
    {"GreaterOrEqual", "greater_equal", SDLF_LAYER_GREATER_EQUAL},
    {"And", "and", SDLF_LAYER_AND},
    {"Or", "or", SDLF_LAYER_OR},
    {"Xor", "xor", SDLF_LAYER_XOR},
    {"BitwiseAnd", "bit_and", SDLF_LAYER_BIT_AND},
    {"BitwiseOr", "bit_or", SDLF_LAYER_BIT_OR},
    {"BitwiseXor", "bit_xor", SDLF_LAYER_BIT_XOR},
    {"Mod", "modulo", SDLF_LAYER_MODULO},
    {"", "remainder", SDLF_LAYER_REMAINDER},
    {"", "shift_left", SDLF_LAYER_SHIFT_LEFT},
    {"", "shift_right", SDLF_LAYER_SHIFT_RIGHT},
    {"Sum", "add", SDLF_LAYER_ADD},
    {"Mean", "add", SDLF_LAYER_ADD},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

static sdlf_binary_layer_function by_name(const char *name)
{
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(functions[i].name, name) == 0) return functions[i].function;
    return SDLF_LAYER_ADD;
}

static sdlf_binary_layer_function by_type(const onnx_context *c)
{
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(functions[i].type, c->type->type) == 0) return functions[i].function;
    return SDLF_LAYER_ADD;
}

static onnx_flow apply(onnx_context *c, sdlf_binary_layer_function function, const onnx_flow *operands)
{
    if (!onnx_ok(c)) return operands[0];
    bool same = sdlf_shape_equal(operands[0].shape, operands[1].shape) && sdlf_dtype_is_float(operands[0].dtype) &&
                onnx_batch_axis(c, operands[0]) == onnx_batch_axis(c, operands[1]); /* or one is for all samples */
    if (function == SDLF_LAYER_ADD && same && sdlf_dtype_is_float(operands[1].dtype))
        return onnx_layer(c, "add", NULL, operands, 2); /* which fuses into the producers of its operands */
    return onnx_layer(c, "binary", &(sdlf_binary_layer_options){.function = (int)function}, operands, 2);
}

onnx_flow onnx_binary(onnx_context *c, const char *function, const onnx_flow *operands)
{
    return apply(c, by_name(function), operands);
}

onnx_flow onnx_with_number(onnx_context *c, const char *function, onnx_flow x, double number)
{
    return onnx_layer(c, "binary",
                      &(sdlf_binary_layer_options){.function = (int)by_name(function), .scalar = (float)number}, &x, 1);
}

/* A constant of one element that leaves the other operand's shape unchanged: a number, exact in float32 or a float
 * itself. */
static bool is_number(onnx_context *c, int input, sdlf_shape other, double *number)
{
    if (!onnx_is_constant(c, input)) return false;
    const onnx_tensor *tensor = onnx_known(c, input);
    if (tensor->count != 1 || tensor->shape.rank > other.rank || tensor->learned) return false;
    onnx_tensor_convert(tensor, 0, 1, SDLF_FLOAT64, number);
    return sdlf_dtype_is_float(onnx_type_dtype(tensor->type)) || fabs(*number) <= 1 << 24;
}

static onnx_flow number_like(onnx_context *c, onnx_flow x, double number)
{
    onnx_numbers one = onnx_new_numbers(c, false, SDLF_SCALAR);
    if (!onnx_ok(c)) return x;
    one.integer[0] = (int64_t)number;
    onnx_tensor tensor = onnx_store_numbers(c, &one, onnx_type_of(x.dtype));
    return onnx_constant_layer(c, &tensor);
}

/* Integers that are computed in a larger type wrap around like their own type: the excess bits are dropped. */
static onnx_flow wrapped(onnx_context *c, onnx_flow y)
{
    onnx_type type = onnx_narrow_input(c, 0);
    sdlf_binary_layer_function function = by_type(c);
    bool leaves = function == SDLF_LAYER_ADD || function == SDLF_LAYER_SUBTRACT || function == SDLF_LAYER_MULTIPLY ||
                  function == SDLF_LAYER_DIVIDE;
    if (type == ONNX_UNDEFINED || !leaves) return y;
    if (type == ONNX_INT16) return onnx_with_number(c, "div", onnx_with_number(c, "mul", y, 65536), 65536);
    onnx_flow bits[] = {y, number_like(c, y, type == ONNX_UINT16 ? 65535 : 4294967295.0)};
    return onnx_binary(c, "bit_and", bits);
}

static void convert_binary(onnx_context *c)
{
    sdlf_binary_layer_function function = by_type(c);
    sdlf_binary_layer_options options = {.function = (int)function};
    double number;
    bool second = is_number(c, 1, onnx_shape(c, 0), &number) && !onnx_is_constant(c, 0);
    bool first = !second && is_number(c, 0, onnx_shape(c, 1), &number) && !onnx_is_constant(c, 1);
    bool fits = !(second || first) || (number >= -3.4e38 && number <= 3.4e38); /* the range of the layer's option */
    if (fits && (second || first)) {
        onnx_flow x = onnx_in(c, second ? 0 : 1);
        options.scalar = (float)number;
        options.scalar_first = first;
        onnx_set_output(c, 0, wrapped(c, onnx_layer(c, "binary", &options, &x, 1)));
        return;
    }
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1)};
    onnx_set_output(c, 0, wrapped(c, apply(c, function, operands)));
}

/* Its slopes are parameters, whatever their names. */
static void convert_prelu(onnx_context *c)
{
    if (onnx_is_constant(c, 1) && c->input[1]->is_weight) c->input[1]->tensor.learned = true;
    convert_binary(c);
}

/* Integers to the power of floats: exact if the exponent is whole, otherwise computed as floats and truncated. */
static onnx_flow mixed_power(onnx_context *c, const onnx_flow *operands)
{
    onnx_flow base = operands[0], exponent = operands[1];
    onnx_flow as_floats[] = {onnx_cast(c, base, SDLF_FLOAT32), exponent};
    onnx_flow as_integers[] = {base, onnx_cast(c, exponent, base.dtype)};
    onnx_flow floor = onnx_layer(c, "unary", &(sdlf_unary_options){.function = SDLF_UNARY_FLOOR}, &exponent, 1);
    onnx_flow both[] = {exponent, floor};
    onnx_flow chosen[] = {onnx_binary(c, "equal", both), onnx_binary(c, "pow", as_integers),
                          onnx_cast(c, onnx_binary(c, "pow", as_floats), base.dtype)};
    return onnx_layer(c, "select", NULL, chosen, 3);
}

enum { EXACT = 1 << 24 }; /* integers up to here are exact in float32 */

/* True if the integers of that input may be larger. */
static bool may_be_large(onnx_context *c, int input)
{
    if (!onnx_is_constant(c, input)) {
        sdlf_dtype dtype = c->input[input]->flow.dtype;
        return dtype == SDLF_INT32 || dtype == SDLF_INT64;
    }
    const onnx_tensor *tensor = onnx_known(c, input);
    onnx_numbers numbers = onnx_load_numbers(c, tensor);
    for (int64_t i = 0; onnx_ok(c) && i < numbers.count; i++)
        if (numbers.integer[i] < -EXACT || numbers.integer[i] > EXACT) return true;
    return false;
}

/* Floats to the power of large integers: x^e = x^h x^l, where h is the multiple of 2^24 next to e toward zero, which is
 * even however it rounds. Both have e's sign, so that they grow or shrink together; for small e, x^h is 1. */
static onnx_flow float_power(onnx_context *c, const onnx_flow *operands)
{
    onnx_flow x = operands[0], e = operands[1];
    onnx_flow high = onnx_with_number(c, "mul", onnx_with_number(c, "div", e, EXACT), EXACT);
    onnx_flow parts[] = {e, high};
    onnx_flow by_high[] = {x, onnx_cast(c, high, x.dtype)};
    onnx_flow by_low[] = {x, onnx_cast(c, onnx_binary(c, "sub", parts), x.dtype)};
    onnx_flow factors[] = {onnx_binary(c, "pow", by_high), onnx_binary(c, "pow", by_low)};
    return onnx_binary(c, "mul", factors);
}

/* The exponent may be of another type than the base, whose type the result has. */
static void convert_power(onnx_context *c)
{
    onnx_type types[2] = {ONNX_UNDEFINED, ONNX_UNDEFINED};
    if (onnx_is_constant(c, 1)) c->input[1]->tensor.learned = false; /* for a negative base it has no gradient */
    for (int i = 0; i < 2; i++)
        types[i] = onnx_is_constant(c, i) ? c->input[i]->tensor.type : onnx_type_of(c->input[i]->flow.dtype);
    sdlf_dtype base = onnx_type_dtype(types[0]), exponent = onnx_type_dtype(types[1]);
    if (base == exponent || (sdlf_dtype_is_float(base) && sdlf_dtype_is_float(exponent))) {
        convert_binary(c);
        return;
    }
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1)};
    if (onnx_ok(c) && sdlf_dtype_is_float(exponent)) {
        onnx_set_output(c, 0, mixed_power(c, operands));
        return;
    }
    if (onnx_ok(c) && sdlf_dtype_is_float(base) && may_be_large(c, 1)) {
        onnx_set_output(c, 0, float_power(c, operands));
        return;
    }
    operands[1] = onnx_cast(c, operands[1], base);
    onnx_set_output(c, 0, apply(c, SDLF_LAYER_POWER, operands));
}

/* Sum, Mean, Min, Max of any number of operands, as a chain. */
static void convert_many(onnx_context *c)
{
    sdlf_binary_layer_function function = by_type(c);
    onnx_flow result = onnx_in(c, 0);
    for (int i = 1; i < c->input_count && onnx_ok(c); i++) {
        onnx_flow operands[] = {result, onnx_in(c, i)};
        result = apply(c, function, operands);
    }
    if (strcmp(c->type->type, "Mean") == 0 && c->input_count > 1)
        result = onnx_with_number(c, "mul", result, 1.0 / c->input_count);
    onnx_set_output(c, 0, result);
}

static void convert_not(onnx_context *c)
{
    onnx_set_output(c, 0, onnx_with_number(c, "equal", onnx_in(c, 0), 0));
}

static void convert_where(onnx_context *c)
{
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)};
    onnx_set_output(c, 0, onnx_layer(c, "select", NULL, operands, 3));
}

/* The remainder has the divisor's sign, or with fmod the dividend's. */
static void convert_mod(onnx_context *c)
{
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1)};
    bool fmod = onnx_flag(c, "fmod", false);
    onnx_set_output(c, 0, apply(c, fmod ? SDLF_LAYER_REMAINDER : SDLF_LAYER_MODULO, operands));
}

/* The maximum of an unsigned type; -1 for a signed one. */
static double all_bits(onnx_context *c, onnx_flow x)
{
    switch (onnx_narrow_input(c, 0)) {
    case ONNX_UINT16: return 65535;
    case ONNX_UINT32: return 4294967295.0;
    default: return x.dtype == SDLF_UINT8 ? 255 : -1;
    }
}

static void convert_bitwise_not(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0), operands[] = {number_like(c, x, all_bits(c, x)), x};
    onnx_set_output(c, 0, onnx_binary(c, "sub", operands));
}

/* For integers that are computed in a larger type, the excess bits are dropped. */
static void convert_bit_shift(onnx_context *c)
{
    onnx_word direction = onnx_text(c, "direction", "");
    bool left = strcmp(direction.text, "LEFT") == 0;
    if (!left && strcmp(direction.text, "RIGHT") != 0) onnx_wrong(c, "attribute 'direction' is '%s'", direction.text);
    onnx_flow operands[] = {onnx_in(c, 0), onnx_in(c, 1)};
    onnx_flow y = onnx_binary(c, left ? "shift_left" : "shift_right", operands);
    if (left && onnx_narrow_input(c, 0) != ONNX_UNDEFINED) {
        onnx_flow bits[] = {y, number_like(c, y, all_bits(c, y))};
        y = onnx_binary(c, "bit_and", bits);
    }
    onnx_set_output(c, 0, y);
}

#define TWO_INPUTS  .minimum_inputs = 2, .maximum_inputs = 2, .attributes = " ", .convert = convert_binary
#define MANY_INPUTS .minimum_inputs = 1, .maximum_inputs = 4096, .attributes = " ", .convert = convert_many

const onnx_operator onnx_binary_operators[] = {
    {.type = "Add", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Sub", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Mul", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Div", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Mod",
     .since = 10,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " fmod ",
     .convert = convert_mod},
    {.type = "BitwiseAnd", .since = 18, TWO_INPUTS},
    {.type = "BitwiseOr", .since = 18, TWO_INPUTS},
    {.type = "BitwiseXor", .since = 18, TWO_INPUTS},
    {.type = "BitwiseNot",
     .since = 18,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_bitwise_not},
    {.type = "BitShift",
     .since = 11,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " direction ",
     .convert = convert_bit_shift},
    {.type = "Pow",
     .since = 7,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " ",
     .convert = convert_power,
     .fold = onnx_fold_binary},
    {.type = "PRelu",
     .since = 7,
     .minimum_inputs = 2,
     .maximum_inputs = 2,
     .attributes = " ",
     .convert = convert_prelu},
    {.type = "Equal", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Greater", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "GreaterOrEqual", .since = 12, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Less", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "LessOrEqual", .since = 12, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "And", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Or", .since = 7, TWO_INPUTS, .fold = onnx_fold_binary},
    {.type = "Xor", .since = 7, TWO_INPUTS},
    {.type = "Min", .since = 6, MANY_INPUTS, .fold = onnx_fold_binary},
    {.type = "Max", .since = 6, MANY_INPUTS, .fold = onnx_fold_binary},
    {.type = "Sum", .since = 6, MANY_INPUTS, .fold = onnx_fold_binary},
    {.type = "Mean", .since = 6, MANY_INPUTS},
    {.type = "Not",
     .since = 1,
     .from_first = true,
     .minimum_inputs = 1,
     .maximum_inputs = 1,
     .attributes = " ",
     .convert = convert_not,
     .fold = onnx_fold_unary},
    {.type = "Where",
     .since = 9,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .attributes = " ",
     .convert = convert_where,
     .fold = onnx_fold_where},
    {.type = NULL},
};
