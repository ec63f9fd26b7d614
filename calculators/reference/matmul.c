/* SPDX-License-Identifier: MIT */
/* matmul: y = a b for every matrix of a batch. */
#include "calculators/reference/reference.h"

/* Element (batch, i, j) of an operand, with i and j exchanged if it is transposed. */
static double element_at(const sdlf_tensor *x, int64_t batch, int64_t i, int64_t j, bool transposed)
{
    const int64_t *dim = &x->shape.dim[x->shape.rank - 2];
    int64_t row = transposed ? j : i, column = transposed ? i : j;
    double value;
    sdlf_convert(SDLF_FLOAT64, &value, x->dtype, element_address(x, (batch * dim[0] + row) * dim[1] + column), 1);
    return value;
}

sdlf_status matmul_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    bool turn_a = operation->matmul.transpose_a, turn_b = operation->matmul.transpose_b;
    int rank = y->shape.rank;
    int64_t m = y->shape.dim[rank - 2], n = y->shape.dim[rank - 1], k = a->shape.dim[rank - (turn_a ? 2 : 1)];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        int64_t j = e % n, i = e / n % m, batch = e / n / m;
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += element_at(a, batch, i, p, turn_a) * element_at(b, batch, p, j, turn_b);
        put(y, e, sum);
    }
    return SDLF_OK;
}
