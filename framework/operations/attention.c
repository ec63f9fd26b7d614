/* SPDX-License-Identifier: MIT */
/* attention, forward and backward. Contracts: <sdlf/operations/attention.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

#include <math.h>

/* Checks that the last axis is contiguous. */
static void expect_rows(sdlf_check *check, const sdlf_tensor *x, const char *name)
{
    bool dense = !sdlf_tensor_present(x) || x->shape.dim[3] == 1 || x->stride[3] == 1;
    sdlf_expect(check, dense, "the rows of operand '%s' of shape %s have gaps", name, sdlf_shape_print(x->shape).text);
}

static void expect_mask(sdlf_check *check, const sdlf_tensor *mask, sdlf_dtype t, sdlf_shape scores)
{
    if (!sdlf_tensor_present(mask)) return;
    sdlf_expect_dtype(check, mask, mask->dtype == SDLF_BOOL ? SDLF_BOOL : t);
    sdlf_expect_shape(check, mask, scores);
}

/* Checks q, k, v and mask; computes the shape of y. */
static sdlf_check expect_operands(const sdlf_operation *operation, sdlf_shape *y_shape)
{
    const sdlf_tensor *q = &operation->in[0], *k = &operation->in[1], *v = &operation->in[2];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, q);
    sdlf_expect_rank(&check, q, 4);
    sdlf_expect_rank(&check, k, 4);
    sdlf_expect_rank(&check, v, 4);
    if (check.status != SDLF_OK) return check;
    const int64_t *dim = q->shape.dim;
    int64_t heads = k->shape.dim[1], keys = k->shape.dim[2];
    sdlf_expect(&check, heads > 0 && dim[1] % heads == 0,
                "%lld heads of queries do not share %lld heads of keys equally", (long long)dim[1], (long long)heads);
    sdlf_expect(&check, keys > 0 && dim[2] > 0, "there are %lld queries and %lld keys, expected at least one of each",
                (long long)dim[2], (long long)keys);
    sdlf_expect_operand(&check, k, t, sdlf_shape(dim[0], heads, keys, dim[3]));
    sdlf_expect_operand(&check, v, t, sdlf_shape(dim[0], heads, keys, v->shape.dim[3]));
    expect_mask(&check, &operation->in[3], t, sdlf_shape(dim[0], dim[1], dim[2], keys));
    sdlf_expect(&check, !operation->attention.causal || dim[2] <= keys,
                "causal attention of %lld queries needs as many keys, found %lld", (long long)dim[2], (long long)keys);
    sdlf_expect(&check, isfinite(operation->attention.scale), "scale is %g, expected a finite number",
                operation->attention.scale);
    expect_rows(&check, q, "q");
    expect_rows(&check, k, "k");
    expect_rows(&check, v, "v");
    *y_shape = sdlf_shape(dim[0], dim[1], dim[2], v->shape.dim[3]);
    return check;
}

static sdlf_status check_forward(const sdlf_operation *operation)
{
    const sdlf_tensor *q = &operation->in[0], *y = &operation->out[0];
    sdlf_shape shape;
    sdlf_check check = expect_operands(operation, &shape);
    if (check.status != SDLF_OK) return check.status;
    sdlf_expect_operand(&check, y, q->dtype, shape);
    sdlf_expect_operand(&check, &operation->in[4], q->dtype, sdlf_shape(1));
    shape.rank = 3;
    for (int i = 1; i < 3; i++) sdlf_expect_operand(&check, &operation->out[i], q->dtype, shape);
    if (check.status == SDLF_OK) expect_rows(&check, y, "y");
    return check.status;
}

static sdlf_status check_backward(const sdlf_operation *operation)
{
    const sdlf_tensor *q = &operation->in[0], *y = &operation->in[4], *dy = &operation->in[7];
    static const char *const gradients[] = {"dq", "dk", "dv"};
    sdlf_shape shape;
    sdlf_check check = expect_operands(operation, &shape);
    if (check.status != SDLF_OK) return check.status;
    sdlf_expect_operand(&check, y, q->dtype, shape);
    sdlf_expect_operand(&check, dy, q->dtype, shape);
    shape.rank = 3;
    for (int i = 5; i < 7; i++) sdlf_expect_operand(&check, &operation->in[i], q->dtype, shape);
    for (int i = 0; i < 3; i++) sdlf_expect_operand(&check, &operation->out[i], q->dtype, operation->in[i].shape);
    if (check.status != SDLF_OK) return check.status;
    expect_rows(&check, y, "y");
    expect_rows(&check, dy, "dy");
    for (int i = 0; i < 3; i++) expect_rows(&check, &operation->out[i], gradients[i]);
    return check.status;
}

/* The number of pairs of a query and a key that it attends to. */
static int64_t count_scores(const sdlf_operation *operation)
{
    const int64_t *q = operation->in[0].shape.dim, *k = operation->in[1].shape.dim;
    int64_t unseen = operation->attention.causal ? sdlf_product(q[2], q[2] - 1, 1, 1) / 2 : 0;
    return sdlf_product(q[0], q[1], sdlf_product(q[2], k[2], 1, 1) - unseen, 1);
}

static int64_t forward_flops(const sdlf_operation *operation)
{
    int64_t depth = sdlf_sum(operation->in[0].shape.dim[3], operation->in[2].shape.dim[3]);
    return sdlf_product(2, count_scores(operation), depth, 1);
}

/* Recomputes the scores, then computes dp and dv, dq and dk. */
static int64_t backward_flops(const sdlf_operation *operation)
{
    int64_t depth = sdlf_sum(sdlf_product(3, operation->in[0].shape.dim[3], 1, 1),
                             sdlf_product(2, operation->in[2].shape.dim[3], 1, 1));
    return sdlf_product(2, count_scores(operation), depth, 1);
}

const sdlf_operation_class sdlf_attention_forward_operation = {
    .name = "attention_forward",
    .in = {{.name = "q"},
           {.name = "k"},
           {.name = "v"},
           {.name = "mask", .optional = true},
           {.name = "unseen", .optional = true}},
    .out = {{.name = "y"}, {.name = "max", .optional = true}, {.name = "sum", .optional = true}},
    .any_strides = 15u | 1u << SDLF_MAX_INPUTS,
    .storage = 7u | 1u << SDLF_MAX_INPUTS,
    .reads_parts = 15u,
    .check = check_forward,
    .flops = forward_flops,
};

const sdlf_operation_class sdlf_attention_backward_operation = {
    .name = "attention_backward",
    .in = {{.name = "q"},
           {.name = "k"},
           {.name = "v"},
           {.name = "mask", .optional = true},
           {.name = "y"},
           {.name = "max"},
           {.name = "sum"},
           {.name = "dy"}},
    .out = {{.name = "dq"}, {.name = "dk"}, {.name = "dv"}},
    .any_strides = 31u | 1u << 7 | 7u << SDLF_MAX_INPUTS,
    .storage = 7u | 1u << 4 | 1u << 7 | 7u << SDLF_MAX_INPUTS,
    .check = check_backward,
    .flops = backward_flops,
};
