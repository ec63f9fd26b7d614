/* SPDX-License-Identifier: MIT */
/* gemm: dense matrix products. Contract: <sdlf/operation.h>. */
#include <stdio.h>

#include "framework/operations/check.h"
#include "framework/operations/gemm_weight_only.h"
#include "framework/operations/operations.h"

/* b has integers: see gemm_weight_only.h. */
static void expect_weight_only(sdlf_check *check, const sdlf_operation *operation, int64_t n, int64_t k)
{
    const sdlf_tensor *scale = &operation->in[4], *zero = &operation->in[5];
    bool halves = sdlf_tensor_present(zero);
    int64_t groups = (k + SDLF_GEMM_GROUP - 1) / SDLF_GEMM_GROUP;
    sdlf_expect(check, operation->gemm.transpose_b && !operation->gemm.transpose_a,
                "an integer b needs transpose_b and no transpose_a");
    sdlf_expect_operand(check, &operation->in[1], halves ? SDLF_UINT8 : SDLF_INT8,
                        sdlf_shape(n, halves ? groups * (SDLF_GEMM_GROUP / 2) : k));
    sdlf_expect_rank(check, scale, 2);
    int64_t blocks = scale->shape.rank == 2 ? scale->shape.dim[1] : 0,
            block = blocks > 0 ? sdlf_gemm_block(k, blocks) : 0;
    sdlf_expect(check, block > 0 && (k + block - 1) / block == blocks, "%lld blocks of %lld elements",
                (long long)blocks, (long long)k);
    sdlf_expect_operand(check, scale, SDLF_FLOAT32, sdlf_shape(n, blocks));
    sdlf_expect_operand(check, zero, SDLF_FLOAT32, sdlf_shape(n, blocks));
    sdlf_expect_dtype(check, &operation->in[0], SDLF_FLOAT32);
}

static sdlf_status check_gemm(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *c = &operation->out[0];
    bool transpose_a = operation->gemm.transpose_a, transpose_b = operation->gemm.transpose_b;
    sdlf_check check = {.operation = operation};
    sdlf_dtype t = sdlf_expect_floating(&check, a);
    sdlf_expect_rank(&check, a, 2);
    sdlf_expect_rank(&check, b, 2);
    if (check.status != SDLF_OK) return check.status;
    bool integers = sdlf_gemm_is_weight_only(operation);
    int64_t m = a->shape.dim[transpose_a ? 1 : 0], k = a->shape.dim[transpose_a ? 0 : 1];
    int64_t n = b->shape.dim[transpose_b ? 0 : 1];
    if (integers)
        expect_weight_only(&check, operation, n, k);
    else
        sdlf_expect_operand(&check, b, t, transpose_b ? sdlf_shape(n, k) : sdlf_shape(k, n));
    sdlf_expect(&check, integers || !(sdlf_tensor_present(&operation->in[4]) || sdlf_tensor_present(&operation->in[5])),
                "operands 'scale' and 'zero' go with a b of integers");
    sdlf_expect_operand(&check, &operation->in[2], t, sdlf_shape(n));
    sdlf_expect_operand(&check, &operation->in[3], t, sdlf_shape(m, n));
    sdlf_expect_operand(&check, c, t, sdlf_shape(m, n));
    sdlf_expect_between(&check, "alpha", (double)operation->gemm.alpha, -1e30, 1e30);
    sdlf_expect_activation(&check, &operation->gemm.activation);
    return check.status;
}

static int64_t gemm_flops(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0];
    int64_t k = a->shape.dim[operation->gemm.transpose_a ? 0 : 1];
    return sdlf_product(2, sdlf_tensor_count(&operation->out[0]), k, 1);
}

static void print_gemm(const sdlf_operation *operation, char *text, size_t size)
{
    snprintf(text, size, "%s%s", operation->gemm.transpose_a ? " transpose_a" : "",
             operation->gemm.transpose_b ? " transpose_b" : "");
}

const sdlf_operation_class sdlf_gemm_operation = {
    .name = "gemm",
    .in = {{.name = "a"},
           {.name = "b"},
           {.name = "bias", .optional = true},
           {.name = "residual", .optional = true},
           {.name = "scale", .optional = true},
           {.name = "zero", .optional = true}},
    .out = {{.name = "c"}},
    .may_alias = 1u << 3,
    .epilogue = offsetof(sdlf_operation, gemm.activation),
    .storage = 1u << 0 | 1u << 1 | 1u << 3 | 1u << SDLF_MAX_INPUTS,
    .float32_beside = 1u << 1 | 1u << SDLF_MAX_INPUTS,
    .request = SDLF_REQUEST_GEMM,
    .packed = 1u << 1,
    .unread = 1u << 1,
    .check = check_gemm,
    .flops = gemm_flops,
    .print_options = print_gemm,
};
