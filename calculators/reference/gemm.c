/* SPDX-License-Identifier: MIT */
/* gemm: c = act(alpha op(a) op(b) + bias + residual). op(a) is (m,k), op(b) is (k,n), c is (m,n). */
#include "calculators/reference/reference.h"

#include "framework/operations/gemm_weight_only.h"

/* Element (j,l) of an integer b with scales. */
static double float_weight(const sdlf_operation *operation, int64_t j, int64_t l)
{
    const sdlf_tensor *q = &operation->in[1], *scale = &operation->in[4], *zero = &operation->in[5];
    int64_t k = operation->in[0].shape.dim[1], blocks = scale->shape.dim[1], half = SDLF_GEMM_GROUP / 2;
    int64_t which = j * blocks + l / sdlf_gemm_block(k, blocks);
    if (!sdlf_tensor_present(zero)) return (double)((const int8_t *)q->data)[j * k + l] * get(scale, which);
    uint8_t byte = ((const uint8_t *)q->data)[j * q->shape.dim[1] + l / SDLF_GEMM_GROUP * half + l % half];
    int bits = l % SDLF_GEMM_GROUP < half ? byte & 15 : byte >> 4;
    return ((double)bits - get(zero, which)) * get(scale, which);
}

bool gemm_supports_reference(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator, (void)operation;
    return true;
}

sdlf_status gemm_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *c = &operation->out[0];
    const sdlf_tensor *bias = &operation->in[2], *residual = &operation->in[3];
    bool integers = sdlf_gemm_is_weight_only(operation);
    bool transpose_a = operation->gemm.transpose_a, transpose_b = operation->gemm.transpose_b;
    int64_t m = c->shape.dim[0], n = c->shape.dim[1], k = a->shape.dim[transpose_a ? 0 : 1];
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                double weight = integers ? float_weight(operation, j, l) : get(b, transpose_b ? j * k + l : l * n + j);
                sum += get(a, transpose_a ? l * m + i : i * k + l) * weight;
            }
            sum *= (double)operation->gemm.alpha;
            if (sdlf_tensor_present(bias)) sum += get(bias, j);
            if (sdlf_tensor_present(residual)) sum += get(residual, i * n + j);
            put(c, i * n + j, activate_reference(&operation->gemm.activation, sum));
        }
    }
    return SDLF_OK;
}
