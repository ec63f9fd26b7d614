/* SPDX-License-Identifier: MIT */
/* softmax and log_softmax along one axis, and their gradients. The maximum is subtracted first, so that no exponential
 * overflows. Every operation processes one line along the axis at a time: `first`, `first + step`, ... of `length`. */
#include "calculators/reference/reference.h"

#include <math.h>

typedef void line_function(const sdlf_operation *operation, int64_t first, int64_t step, int64_t length);

static sdlf_status for_each_line(const sdlf_operation *operation, line_function *compute)
{
    const sdlf_tensor *y = &operation->out[0];
    int axis = operation->softmax.axis;
    int64_t outer = sdlf_shape_span(y->shape, 0, axis), length = y->shape.dim[axis];
    int64_t inner = sdlf_shape_span(y->shape, axis + 1, y->shape.rank);
    for (int64_t o = 0; o < outer && length > 0; o++) {
        for (int64_t i = 0; i < inner; i++) compute(operation, o * length * inner + i, inner, length);
    }
    return SDLF_OK;
}

static double largest_of(const sdlf_tensor *x, int64_t first, int64_t step, int64_t length)
{
    double largest = get(x, first);
    for (int64_t j = 1; j < length; j++) {
        double value = get(x, first + j * step);
        if (value > largest) largest = value;
    }
    return largest;
}

static double sum_of_exponentials(const sdlf_tensor *x, int64_t first, int64_t step, int64_t length, double largest)
{
    double sum = 0;
    for (int64_t j = 0; j < length; j++) sum += exp(get(x, first + j * step) - largest);
    return sum;
}

/* y = exp(x - max) / sum exp(x - max) */
static void softmax_line(const sdlf_operation *operation, int64_t first, int64_t step, int64_t length)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    double largest = largest_of(x, first, step, length);
    double sum = sum_of_exponentials(x, first, step, length, largest);
    for (int64_t j = 0; j < length; j++) put(y, first + j * step, exp(get(x, first + j * step) - largest) / sum);
}

/* dx = y (dy - sum y dy) */
static void softmax_gradient_line(const sdlf_operation *operation, int64_t first, int64_t step, int64_t length)
{
    const sdlf_tensor *y = &operation->in[0], *dy = &operation->in[1], *dx = &operation->out[0];
    double sum = 0;
    for (int64_t j = 0; j < length; j++) sum += get(y, first + j * step) * get(dy, first + j * step);
    for (int64_t j = 0; j < length; j++) {
        int64_t e = first + j * step;
        put(dx, e, get(y, e) * (get(dy, e) - sum));
    }
}

/* y = x - max - log sum exp(x - max) */
static void log_softmax_line(const sdlf_operation *operation, int64_t first, int64_t step, int64_t length)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    double largest = largest_of(x, first, step, length);
    double logarithm = log(sum_of_exponentials(x, first, step, length, largest));
    for (int64_t j = 0; j < length; j++) put(y, first + j * step, get(x, first + j * step) - largest - logarithm);
}

/* dx = dy - exp(y) sum dy */
static void log_softmax_gradient_line(const sdlf_operation *operation, int64_t first, int64_t step, int64_t length)
{
    const sdlf_tensor *y = &operation->in[0], *dy = &operation->in[1], *dx = &operation->out[0];
    double sum = 0;
    for (int64_t j = 0; j < length; j++) sum += get(dy, first + j * step);
    for (int64_t j = 0; j < length; j++) {
        int64_t e = first + j * step;
        put(dx, e, get(dy, e) - exp(get(y, e)) * sum);
    }
}

sdlf_status softmax_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return for_each_line(operation, softmax_line);
}

sdlf_status softmax_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return for_each_line(operation, softmax_gradient_line);
}

sdlf_status log_softmax_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return for_each_line(operation, log_softmax_line);
}

sdlf_status log_softmax_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return for_each_line(operation, log_softmax_gradient_line);
}
