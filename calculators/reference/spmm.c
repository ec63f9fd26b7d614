/* SPDX-License-Identifier: MIT */
/* spmm_csr: y = f(a x + bias), a in CSR. */
#include "calculators/reference/reference.h"

#include <math.h>

/* An element of row r before f. */
static double sum_of(const sdlf_operation *operation, int64_t r, int64_t j)
{
    const sdlf_tensor *a = &operation->in[0], *x = &operation->in[1], *bias = &operation->in[2];
    const int64_t *offsets = sdlf_csr_offsets(a);
    const int32_t *columns = sdlf_csr_columns(a);
    const sdlf_tensor values = sdlf_tensor_view(a->dtype, sdlf_shape(a->stored), sdlf_csr_values(a));
    int64_t width = x->shape.dim[1];
    double sum = sdlf_tensor_present(bias) ? get(bias, j) : 0;
    for (int64_t e = offsets[r]; e < offsets[r + 1]; e++) sum += get(&values, e) * get(x, columns[e] * width + j);
    return sum;
}

sdlf_status spmm_csr_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    int64_t rows = y->shape.dim[0], width = y->shape.dim[1];
    for (int64_t r = 0; r < rows; r++) {
        double largest = -(double)INFINITY, sum = 0;
        for (int64_t j = 0; j < width && operation->spmm.log_softmax; j++)
            largest = fmax(largest, sum_of(operation, r, j));
        for (int64_t j = 0; j < width && operation->spmm.log_softmax; j++)
            sum += exp(sum_of(operation, r, j) - largest);
        for (int64_t j = 0; j < width; j++) {
            double value = sum_of(operation, r, j);
            if (operation->spmm.log_softmax)
                value = value - largest - log(sum);
            else
                value = activate_reference(&operation->spmm.activation, value);
            put(y, r * width + j, value);
        }
    }
    return SDLF_OK;
}
