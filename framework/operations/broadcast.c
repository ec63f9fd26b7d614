/* SPDX-License-Identifier: MIT */
/* binary, binary_backward, select: operands of one shape, any strides. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static bool is_comparison(sdlf_binary_function function)
{
    return function >= SDLF_BINARY_EQUAL;
}

static bool takes(sdlf_binary_function function, sdlf_dtype dtype)
{
    if (function >= SDLF_BINARY_AND) return dtype == SDLF_BOOL;
    bool bits = function >= SDLF_BINARY_BIT_AND && !is_comparison(function);
    switch (dtype) {
    case SDLF_FLOAT32:
    case SDLF_FLOAT64: return !bits;
    case SDLF_UINT8:
    case SDLF_INT8:
    case SDLF_INT32:
    case SDLF_INT64: return function != SDLF_BINARY_PRELU;
    case SDLF_BOOL: return is_comparison(function);
    default: return false;
    }
}

static void expect_function(sdlf_check *check)
{
    sdlf_binary_function function = check->operation->binary.function;
    sdlf_expect(check, (unsigned)function < SDLF_BINARY_FUNCTION_COUNT, "%d is not a valid function of two operands",
                (int)function);
    sdlf_expect(check, sdlf_tensor_present(&check->operation->in[0]) || sdlf_tensor_present(&check->operation->in[1]),
                "one of the operands 'a' and 'b' is needed, found neither");
}

static sdlf_status check_binary(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    sdlf_binary_function function = operation->binary.function;
    sdlf_check check = {.operation = operation};
    expect_function(&check);
    const sdlf_tensor *first = sdlf_tensor_present(a) ? a : b;
    if (check.status == SDLF_OK && !takes(function, first->dtype))
        return sdlf_fail(SDLF_ERROR_SHAPE, "operand '%s' is %s, which the function does not accept",
                         first == a ? "a" : "b", sdlf_dtype_name(first->dtype));
    sdlf_expect_operand(&check, b, first->dtype, first->shape);
    sdlf_expect_operand(&check, y, is_comparison(function) ? SDLF_BOOL : first->dtype, first->shape);
    return check.status;
}

/* Squares and quotients need the precision or range of float32. */
static bool binary_suits_16_bits(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1];
    bool square = sdlf_tensor_present(a) && a->buffer == b->buffer && a->offset == b->offset;
    sdlf_binary_function function = operation->binary.function;
    return function == SDLF_BINARY_ADD || function == SDLF_BINARY_SUBTRACT ||
           (function == SDLF_BINARY_MULTIPLY && !square);
}

const sdlf_operation_class sdlf_binary_operation = {
    .name = "binary",
    .in = {{.name = "a", .optional = true}, {.name = "b", .optional = true}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0 | 1u << 1,
    .any_strides = 1u << 0 | 1u << 1,
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .storage = 1u << 0 | 1u << 1 | 1u << SDLF_MAX_INPUTS,
    .float32_beside = 1u << 0 | 1u << 1,
    .check = check_binary,
    .suits_16_bits = binary_suits_16_bits,
};

static sdlf_status check_binary_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *dy = &operation->in[2];
    sdlf_check check = {.operation = operation};
    expect_function(&check);
    sdlf_expect(&check, operation->binary.function < SDLF_BINARY_BIT_AND,
                "a comparison or a function of bits has no gradient");
    sdlf_dtype t = sdlf_expect_floating(&check, dy);
    for (int i = 0; i < 2; i++) {
        sdlf_expect_operand(&check, &operation->in[i], t, dy->shape);
        sdlf_expect_operand(&check, &operation->out[i], t, dy->shape);
        sdlf_expect(&check, sdlf_tensor_present(&operation->in[i]) || !sdlf_tensor_present(&operation->out[i]),
                    "operand '%s' is the gradient of a number", i == 0 ? "da" : "db");
    }
    return check.status;
}

static int64_t binary_backward_flops(const sdlf_operation *operation)
{
    return sdlf_product(4, sdlf_tensor_count(&operation->in[2]), 1, 1);
}

const sdlf_operation_class sdlf_binary_backward_operation = {
    .name = "binary_backward",
    .in = {{.name = "a", .optional = true}, {.name = "b", .optional = true}, {.name = "dy"}},
    .out = {{.name = "da", .optional = true}, {.name = "db", .optional = true}},
    .any_strides = 1u << 0 | 1u << 1,
    .check = check_binary_backward,
    .flops = binary_backward_flops,
};

static sdlf_status check_select(const sdlf_operation *operation)
{
    const sdlf_tensor *y = &operation->out[0];
    sdlf_check check = {.operation = operation};
    sdlf_expect_operand(&check, &operation->in[0], SDLF_BOOL, y->shape);
    sdlf_expect_operand(&check, &operation->in[1], y->dtype, y->shape);
    sdlf_expect_operand(&check, &operation->in[2], y->dtype, y->shape);
    return check.status;
}

const sdlf_operation_class sdlf_select_operation = {
    .name = "select",
    .in = {{.name = "condition"}, {.name = "a", .optional = true}, {.name = "b", .optional = true}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 1 | 1u << 2,
    .any_strides = 1u << 0 | 1u << 1 | 1u << 2,
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .check = check_select,
};
