/* SPDX-License-Identifier: MIT */
/* integer_matmul: y = (a - a_zero) (b - b_zero) for every matrix of a batch, modulo 2^32. */
#include "calculators/reference/reference.h"

/* Element (batch, i, j) of an operand. */
static int element_at(const sdlf_tensor *x, int64_t batch, int64_t i, int64_t j)
{
    const int64_t *dim = &x->shape.dim[x->shape.rank - 2];
    const void *at = element_address(x, (batch * dim[0] + i) * dim[1] + j);
    return x->dtype == SDLF_INT8 ? *(const int8_t *)at : *(const uint8_t *)at;
}

/* The zero point of row or column i. */
static int zero_at(const sdlf_tensor *zero, int64_t i)
{
    if (!sdlf_tensor_present(zero)) return 0;
    if (zero->shape.dim[0] == 1) i = 0;
    return zero->dtype == SDLF_INT8 ? ((const int8_t *)zero->data)[i] : ((const uint8_t *)zero->data)[i];
}

sdlf_status integer_matmul_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    int rank = y->shape.rank;
    int64_t m = y->shape.dim[rank - 2], n = y->shape.dim[rank - 1], k = a->shape.dim[rank - 1];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        int64_t j = e % n, i = e / n % m, batch = e / n / m;
        int a_zero = zero_at(&operation->in[2], i), b_zero = zero_at(&operation->in[3], j);
        uint32_t sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += (uint32_t)((element_at(a, batch, i, p) - a_zero) * (element_at(b, batch, p, j) - b_zero));
        ((int32_t *)y->data)[e] = (int32_t)sum;
    }
    return SDLF_OK;
}
