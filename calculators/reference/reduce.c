/* SPDX-License-Identifier: MIT */
/* reduce: y[o,i] = sum | mean | max | sum of squares | min | product over j of x[o,j,i]. */
#include "calculators/reference/reference.h"

#include <math.h>

static double reduce_line(const sdlf_tensor *x, int64_t first, int64_t step, int64_t length, sdlf_reduction function)
{
    double sum = 0, product = 1, largest = get(x, first), smallest = largest;
    for (int64_t j = 0; j < length; j++) {
        double value = get(x, first + j * step);
        sum += function == SDLF_REDUCE_SUM_SQUARES ? value * value : value;
        product *= value;
        if (value > largest || isnan(value)) largest = value; /* once NaN, always NaN */
        if (value < smallest || isnan(value)) smallest = value;
    }
    switch (function) {
    case SDLF_REDUCE_MEAN: return sum / (double)length;
    case SDLF_REDUCE_MAX: return largest;
    case SDLF_REDUCE_MIN: return smallest;
    case SDLF_REDUCE_PRODUCT: return product;
    default: return sum;
    }
}

sdlf_status reduce_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int axis = operation->reduce.axis;
    int64_t outer = sdlf_shape_span(x->shape, 0, axis), length = x->shape.dim[axis];
    int64_t inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            put(y, o * inner + i, reduce_line(x, o * length * inner + i, inner, length, operation->reduce.function));
        }
    }
    return SDLF_OK;
}
