/* SPDX-License-Identifier: MIT */
/* integer_matmul: s = (a - a_zero) (b - b_zero) for every matrix of a batch, modulo 2^32; and the epilogue of s. */
#include <math.h>

#include "calculators/reference/reference.h"

/* Element (batch, i, j) of an operand. */
static int element_at(const sdlf_tensor *x, int64_t batch, int64_t i, int64_t j)
{
    const int64_t *dim = &x->shape.dim[x->shape.rank - 2];
    const void *at = element_address(x, (batch * dim[0] + i) * dim[1] + j);
    return x->dtype == SDLF_INT8 ? *(const int8_t *)at : *(const uint8_t *)at;
}

/* The zero point of row or column i. */
static int zero_at(const sdlf_tensor *zero, int64_t i, int otherwise)
{
    if (!sdlf_tensor_present(zero)) return otherwise;
    if (zero->shape.dim[0] == 1) i = 0;
    return zero->dtype == SDLF_INT8 ? ((const int8_t *)zero->data)[i] : ((const uint8_t *)zero->data)[i];
}

static float number_at(const sdlf_tensor *x, int64_t i, float otherwise)
{
    if (!sdlf_tensor_present(x)) return otherwise;
    return ((const float *)x->data)[x->shape.dim[0] == 1 ? 0 : i];
}

/* Writes element e of y, in column j. */
static void put_sum(const sdlf_operation *operation, int64_t e, int64_t j, int32_t sum)
{
    const sdlf_tensor *y = &operation->out[0];
    const sdlf_integer_matmul_options *o = &operation->integer_matmul;
    if (y->dtype == SDLF_INT32) {
        ((int32_t *)y->data)[e] = sum;
        return;
    }
    float v = (float)sum * number_at(&operation->in[4], j, o->scale);
    if (sdlf_tensor_present(&operation->in[5])) v = v + number_at(&operation->in[5], j, 0);
    if (y->dtype != SDLF_FLOAT32) v = rintf(v) + (float)o->y_zero;
    if (y->dtype == SDLF_FLOAT32) {
        ((float *)y->data)[e] = v < o->low ? o->low : v > o->high ? o->high : v;
        return;
    }
    v = v > o->low ? (v < o->high ? v : o->high) : o->low;
    if (y->dtype == SDLF_INT8)
        ((int8_t *)y->data)[e] = (int8_t)v;
    else
        ((uint8_t *)y->data)[e] = (uint8_t)v;
}

sdlf_status integer_matmul_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    const sdlf_integer_matmul_options *o = &operation->integer_matmul;
    int rank = y->shape.rank;
    int64_t m = y->shape.dim[rank - 2], n = y->shape.dim[rank - 1], k = a->shape.dim[rank - 1];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        int64_t j = e % n, i = e / n % m, batch = e / n / m;
        int a_zero = zero_at(&operation->in[2], i, o->a_zero), b_zero = zero_at(&operation->in[3], j, o->b_zero);
        uint32_t sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += (uint32_t)((element_at(a, batch, i, p) - a_zero) * (element_at(b, batch, p, j) - b_zero));
        put_sum(operation, e, j, (int32_t)sum);
    }
    return SDLF_OK;
}
