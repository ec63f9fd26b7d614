/* SPDX-License-Identifier: MIT */
/* add, activation, dropout: element by element. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static sdlf_status check_add(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, a);
    sdlf_expect_operand(&check, &operation->in[1], t, a->shape);
    sdlf_expect_operand(&check, &operation->out[0], t, a->shape);
    sdlf_expect_activation(&check, &operation->add.activation);
    return check.status;
}

const sdlf_operation_class sdlf_add_operation = {
    .name = "add",
    .in = {{.name = "a"}, {.name = "b"}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0 | 1u << 1,
    .epilogue = offsetof(sdlf_operation, add.activation),
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .storage = 1u << 0 | 1u << 1 | 1u << SDLF_MAX_INPUTS,
    .check = check_add,
};

static sdlf_status check_activation(const sdlf_operation *operation)
{
    const sdlf_tensor *first = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, first);
    sdlf_expect_operand(&check, &operation->in[1], t, first->shape); /* backward's dy */
    sdlf_expect_operand(&check, &operation->out[0], t, first->shape);
    sdlf_expect_activation(&check, &operation->activation);
    return check.status;
}

/* Trigonometric and exponential functions need the precision or range of float32. */
static bool activation_suits_16_bits(const sdlf_operation *operation)
{
    static const sdlf_activation_function suited[] = {
        SDLF_IDENTITY, SDLF_RELU, SDLF_CLIP,         SDLF_LEAKY_RELU, SDLF_SIGMOID, SDLF_TANH,
        SDLF_SILU,     SDLF_GELU, SDLF_GELU_TANH,    SDLF_HARD_SWISH, SDLF_ELU,     SDLF_SELU,
        SDLF_CELU,     SDLF_MISH, SDLF_HARD_SIGMOID, SDLF_SOFTPLUS,   SDLF_ERF,     SDLF_SOFTSIGN,
    };
    bool found = false;
    for (size_t i = 0; i < sizeof suited / sizeof suited[0]; i++)
        found = found || operation->activation.function == suited[i];
    return found;
}

const sdlf_operation_class sdlf_activation_forward_operation = {
    .name = "activation_forward",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0,
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .storage = 1u << 0 | 1u << SDLF_MAX_INPUTS,
    .check = check_activation,
    .suits_16_bits = activation_suits_16_bits,
};

const sdlf_operation_class sdlf_activation_backward_operation = {
    .name = "activation_backward",
    .in = {{.name = "v"}, {.name = "dy"}},
    .out = {{.name = "dx"}},
    .may_alias = 1u << 1,
    .nhwc_rule = SDLF_NHWC_ELEMENTS,
    .storage = 1u << 0 | 1u << 1 | 1u << SDLF_MAX_INPUTS,
    .check = check_activation,
    .suits_16_bits = activation_suits_16_bits,
};

static sdlf_status check_dropout(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, x);
    sdlf_expect_operand(&check, &operation->in[1], SDLF_INT64, sdlf_shape(1));
    sdlf_expect_operand(&check, &operation->out[0], t, x->shape);
    sdlf_expect_below(&check, "probability", (double)operation->dropout.probability, 0, 1);
    sdlf_expect_below(&check, "first", (double)operation->dropout.first, 0, 0x1p62);
    return check.status;
}

const sdlf_operation_class sdlf_dropout_forward_operation = {
    .name = "dropout_forward",
    .in = {{.name = "x"}, {.name = "step"}},
    .out = {{.name = "y"}},
    .may_alias = 1u << 0,
    .check = check_dropout,
};

const sdlf_operation_class sdlf_dropout_backward_operation = {
    .name = "dropout_backward",
    .in = {{.name = "dy"}, {.name = "step"}},
    .out = {{.name = "dx"}},
    .may_alias = 1u << 0,
    .check = check_dropout,
};
