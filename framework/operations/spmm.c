/* SPDX-License-Identifier: MIT */
/* spmm_csr: a sparse matrix times a dense one. Contract: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

static sdlf_status check_spmm(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *x = &operation->in[1];
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, a);
    sdlf_expect_rank(&check, a, 2);
    sdlf_expect_rank(&check, x, 2);
    int64_t rows = a->shape.dim[0], columns = a->shape.dim[1], width = x->shape.dim[1];
    sdlf_expect(&check, columns <= INT32_MAX, "operand 'a' has %lld columns, expected at most %d", (long long)columns,
                INT32_MAX);
    sdlf_expect_operand(&check, x, t, sdlf_shape(columns, width));
    sdlf_expect_operand(&check, &operation->in[2], t, sdlf_shape(width));
    sdlf_expect_operand(&check, &operation->out[0], t, sdlf_shape(rows, width));
    sdlf_expect_activation(&check, &operation->spmm.activation);
    sdlf_expect(&check, !operation->spmm.log_softmax || operation->spmm.activation.function == SDLF_IDENTITY,
                "log_softmax and an activation, expected one of them at most");
    return check.status;
}

static int64_t spmm_flops(const sdlf_operation *operation)
{
    return sdlf_product(2, operation->in[0].stored, operation->in[1].shape.dim[1], 1);
}

const sdlf_operation_class sdlf_spmm_csr_operation = {
    .name = "spmm_csr",
    .in = {{.name = "a", .sparse = true}, {.name = "x"}, {.name = "bias", .optional = true}},
    .out = {{.name = "y"}},
    .epilogue = offsetof(sdlf_operation, spmm.activation),
    .packed = 1u << 0,
    .check = check_spmm,
    .flops = spmm_flops,
};
