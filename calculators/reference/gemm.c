/* SPDX-License-Identifier: MIT */
/* gemm: c = act(alpha op(a) op(b) + bias + residual). op(a) is (m,k), op(b) is (k,n), c is (m,n). */
#include "calculators/reference/reference.h"

sdlf_status gemm_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *c = &operation->out[0];
    const sdlf_tensor *bias = &operation->in[2], *residual = &operation->in[3];
    bool transpose_a = operation->gemm.transpose_a, transpose_b = operation->gemm.transpose_b;
    int64_t m = c->shape.dim[0], n = c->shape.dim[1], k = a->shape.dim[transpose_a ? 0 : 1];
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += get(a, transpose_a ? l * m + i : i * k + l) * get(b, transpose_b ? j * k + l : l * n + j);
            }
            sum *= (double)operation->gemm.alpha;
            if (sdlf_tensor_present(bias)) sum += get(bias, j);
            if (sdlf_tensor_present(residual)) sum += get(residual, i * n + j);
            put(c, i * n + j, activate_reference(&operation->gemm.activation, sum));
        }
    }
    return SDLF_OK;
}
