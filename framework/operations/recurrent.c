/* SPDX-License-Identifier: MIT */
/* lstm and gru over a sequence, forward and backward. Contracts: <sdlf/operations/recurrent.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* Checks that the last axis is contiguous. */
static void expect_rows(sdlf_check *check, const sdlf_tensor *x, const char *name)
{
    int last = x->shape.rank - 1;
    bool dense = !sdlf_tensor_present(x) || x->shape.dim[last] == 1 || x->stride[last] == 1;
    sdlf_expect(check, dense, "the rows of operand '%s' of shape %s have gaps", name, sdlf_shape_print(x->shape).text);
}

/* Sizes common to all four: from in[0], the rows of gates, and in[1], the weight. */
typedef struct sizes {
    sdlf_dtype t;
    int64_t steps, samples, units, gates;
} sizes;

static sizes expect_gates(sdlf_check *check, int64_t gates)
{
    const sdlf_tensor *rows = &check->operation->in[0], *weight = &check->operation->in[1];
    sizes s = {.t = sdlf_expect_floating(check, rows), .gates = gates};
    sdlf_expect_rank(check, rows, 3);
    sdlf_expect_rank(check, weight, 2);
    if (check->status != SDLF_OK) return s;
    s.steps = rows->shape.dim[0], s.samples = rows->shape.dim[1], s.units = weight->shape.dim[1];
    sdlf_expect(check, s.steps > 0, "there are no steps");
    sdlf_expect_operand(check, weight, s.t, sdlf_shape(gates * s.units, s.units));
    sdlf_expect_operand(check, rows, s.t, sdlf_shape(s.steps, s.samples, gates * s.units));
    return s;
}

static void expect_steps(sdlf_check *check, const sdlf_tensor *x, const sizes *s, int64_t parts)
{
    sdlf_expect_operand(check, x, s->t, sdlf_shape(s->steps, s->samples, parts * s->units));
}

static void expect_state(sdlf_check *check, const sdlf_tensor *x, const sizes *s)
{
    sdlf_expect_operand(check, x, s->t, sdlf_shape(s->samples, s->units));
}

static sdlf_status check_forward(const sdlf_operation *operation, int64_t gates)
{
    static const char *const states[] = {"h0", "c0"};
    sdlf_check check = {.operation = operation};
    sizes s = expect_gates(&check, gates);
    if (check.status != SDLF_OK) return check.status;
    sdlf_expect_operand(&check, &operation->in[2], s.t, sdlf_shape(gates * s.units));
    for (int i = 0; i < (gates == 4 ? 2 : 1); i++) expect_state(&check, &operation->in[3 + i], &s);
    expect_steps(&check, &operation->out[0], &s, 1);
    expect_steps(&check, &operation->out[1], &s, gates);
    expect_steps(&check, &operation->out[2], &s, 1);
    if (check.status != SDLF_OK) return check.status;
    expect_rows(&check, &operation->in[0], "a");
    for (int i = 0; i < (gates == 4 ? 2 : 1); i++) expect_rows(&check, &operation->in[3 + i], states[i]);
    expect_rows(&check, &operation->out[0], "y");
    return check.status;
}

static void expect_gradient(sdlf_check *check, const sdlf_tensor *dy, const sizes *s)
{
    bool last = dy->shape.rank == 3 && dy->shape.dim[0] == 1;
    sdlf_expect_operand(check, dy, s->t, sdlf_shape(last ? 1 : s->steps, s->samples, s->units));
    if (check->status == SDLF_OK) expect_rows(check, dy, "dy");
}

static sdlf_status check_lstm_forward(const sdlf_operation *operation)
{
    return check_forward(operation, 4);
}

static sdlf_status check_gru_forward(const sdlf_operation *operation)
{
    return check_forward(operation, 3);
}

static sdlf_status check_lstm_backward(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    sizes s = expect_gates(&check, 4);
    if (check.status != SDLF_OK) return check.status;
    expect_steps(&check, &operation->in[2], &s, 1);
    expect_state(&check, &operation->in[3], &s);
    expect_gradient(&check, &operation->in[4], &s);
    expect_state(&check, &operation->in[5], &s);
    expect_steps(&check, &operation->out[0], &s, 4);
    for (int i = 1; i < 3; i++) expect_state(&check, &operation->out[i], &s);
    if (check.status == SDLF_OK) expect_rows(&check, &operation->in[3], "c0");
    return check.status;
}

static sdlf_status check_gru_backward(const sdlf_operation *operation)
{
    sdlf_check check = {.operation = operation};
    sizes s = expect_gates(&check, 3);
    if (check.status != SDLF_OK) return check.status;
    expect_steps(&check, &operation->in[2], &s, 1);
    expect_steps(&check, &operation->in[3], &s, 1);
    expect_state(&check, &operation->in[4], &s);
    expect_gradient(&check, &operation->in[5], &s);
    for (int i = 0; i < 2; i++) expect_steps(&check, &operation->out[i], &s, 3);
    expect_state(&check, &operation->out[2], &s);
    if (check.status != SDLF_OK) return check.status;
    expect_rows(&check, &operation->in[3], "y");
    expect_rows(&check, &operation->in[4], "h0");
    return check.status;
}

/* Counts only the matrix products; the backward pass has as many. */
static int64_t flops(const sdlf_operation *operation)
{
    const int64_t *rows = operation->in[0].shape.dim, *weight = operation->in[1].shape.dim;
    return sdlf_product(2, sdlf_product(rows[0], rows[1], 1, 1), weight[0], weight[1]);
}

const sdlf_operation_class sdlf_lstm_forward_operation = {
    .name = "lstm_forward",
    .in = {{.name = "a"},
           {.name = "weight"},
           {.name = "bias", .optional = true},
           {.name = "h0", .optional = true},
           {.name = "c0", .optional = true}},
    .out = {{.name = "y"}, {.name = "gates", .optional = true}, {.name = "cells", .optional = true}},
    .any_strides = 1u | 3u << 3 | 1u << SDLF_MAX_INPUTS,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_lstm_forward,
    .flops = flops,
};

const sdlf_operation_class sdlf_gru_forward_operation = {
    .name = "gru_forward",
    .in = {{.name = "a"}, {.name = "weight"}, {.name = "bias", .optional = true}, {.name = "h0", .optional = true}},
    .out = {{.name = "y"}, {.name = "gates", .optional = true}, {.name = "products", .optional = true}},
    .any_strides = 1u | 1u << 3 | 1u << SDLF_MAX_INPUTS,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_gru_forward,
    .flops = flops,
};

const sdlf_operation_class sdlf_lstm_backward_operation = {
    .name = "lstm_backward",
    .in = {{.name = "gates"},
           {.name = "weight"},
           {.name = "cells"},
           {.name = "c0", .optional = true},
           {.name = "dy"},
           {.name = "dcn", .optional = true}},
    .out = {{.name = "da"}, {.name = "dh0", .optional = true}, {.name = "dc0", .optional = true}},
    .any_strides = 3u << 3,
    .check = check_lstm_backward,
    .flops = flops,
};

const sdlf_operation_class sdlf_gru_backward_operation = {
    .name = "gru_backward",
    .in = {{.name = "gates"},
           {.name = "weight"},
           {.name = "products"},
           {.name = "y"},
           {.name = "h0", .optional = true},
           {.name = "dy"}},
    .out = {{.name = "da"}, {.name = "db"}, {.name = "dh0", .optional = true}},
    .any_strides = 7u << 3,
    .check = check_gru_backward,
    .flops = flops,
};
