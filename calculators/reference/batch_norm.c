/* SPDX-License-Identifier: MIT */
/* batch_norm2d: each channel is shifted and scaled to mean 0 and variance 1, then by its own scale and shift.
 *
 * x is (N,C,H,W) or (N,C); the n = N H W values of channel c are x[i,c,j], j running over the H W positions. */
#include "calculators/reference/reference.h"

#include <math.h>

/* H W, which is 1 for (N,C). */
static int64_t area_of(const sdlf_tensor *x)
{
    return sdlf_shape_span(x->shape, 2, x->shape.rank);
}

/* Value v, 0 <= v < N H W, of channel c. */
static int64_t value_of(const sdlf_tensor *x, int64_t c, int64_t v)
{
    int64_t area = area_of(x);
    return (v / area * x->shape.dim[1] + c) * area + v % area;
}

/* y = act((x - mean) inverse_std scale + shift + residual);  running = (1 - momentum) running + momentum statistic */
sdlf_status batch_norm2d_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *scale = &operation->in[1], *shift = &operation->in[2];
    const sdlf_tensor *y = &operation->out[0], *saved_mean = &operation->out[1], *saved_inverse = &operation->out[2];
    const sdlf_tensor *running_mean = &operation->out[3], *running_variance = &operation->out[4];
    const sdlf_tensor *residual = &operation->in[3];
    double epsilon = (double)operation->batch_norm.epsilon, momentum = (double)operation->batch_norm.momentum;
    int64_t channels = x->shape.dim[1], n = x->shape.dim[0] * area_of(x);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t v = 0; v < n; v++) sum += get(x, value_of(x, c, v));
        double mean = sum / (double)n;
        for (int64_t v = 0; v < n; v++) {
            double difference = get(x, value_of(x, c, v)) - mean;
            squares += difference * difference;
        }
        double variance = squares / (double)n, inverse = 1 / sqrt(variance + epsilon);
        for (int64_t v = 0; v < n; v++) {
            int64_t e = value_of(x, c, v);
            double normal = (get(x, e) - mean) * inverse * get(scale, c) + get(shift, c);
            if (sdlf_tensor_present(residual)) normal += get(residual, e);
            put(y, e, activate_reference(&operation->batch_norm.activation, normal));
        }
        put(saved_mean, c, mean);
        put(saved_inverse, c, inverse);
        double unbiased = n > 1 ? squares / (double)(n - 1) : variance;
        put(running_mean, c, (1 - momentum) * get(running_mean, c) + momentum * mean);
        put(running_variance, c, (1 - momentum) * get(running_variance, c) + momentum * unbiased);
    }
    return SDLF_OK;
}

/* y = act((x - mean) / sqrt(variance + epsilon) scale + shift) */
sdlf_status batch_norm2d_infer_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *scale = &operation->in[1], *shift = &operation->in[2];
    const sdlf_tensor *mean = &operation->in[3], *variance = &operation->in[4], *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(x), area = area_of(x), channels = x->shape.dim[1];
    for (int64_t e = 0; e < count; e++) {
        int64_t c = e / area % channels;
        double normal = (get(x, e) - get(mean, c)) / sqrt(get(variance, c) + (double)operation->batch_norm.epsilon);
        put(y, e, activate_reference(&operation->batch_norm.activation, normal * get(scale, c) + get(shift, c)));
    }
    return SDLF_OK;
}

/* The value that determines the slope of an element of channel c: act(scale xhat + shift), rounded to x's type, or its input. */
static double slope_source_at(const sdlf_operation *operation, int64_t e, int64_t c)
{
    const sdlf_tensor *x = &operation->in[0];
    double normal = (get(x, e) - get(&operation->in[2], c)) * get(&operation->in[3], c), stored[1];
    double z = normal * get(&operation->in[1], c) + get(&operation->in[6], c);
    if (sdlf_activation_reads_input(operation->batch_norm.activation.function)) return z;
    double y = activate_reference(&operation->batch_norm.activation, z);
    sdlf_convert(x->dtype, stored, SDLF_FLOAT64, &y, 1);
    sdlf_convert(SDLF_FLOAT64, &y, x->dtype, stored, 1);
    return y;
}

/* g = dy act'(y), of channel c */
static double gradient(const sdlf_operation *operation, int64_t e, int64_t c)
{
    const sdlf_activation *activation = &operation->batch_norm.activation;
    double dy = get(&operation->in[4], e);
    if (sdlf_tensor_present(&operation->in[5]))
        return dy * activation_slope_reference(activation, get(&operation->in[5], e));
    if (sdlf_tensor_present(&operation->in[6]))
        return dy * activation_slope_reference(activation, slope_source_at(operation, e, c));
    return dy;
}

/* With xhat = (x - mean) inverse_std: dshift = sum g, dscale = sum g xhat,
 * dx = scale inverse_std (g - dshift / n - xhat dscale / n), dresidual = g */
sdlf_status batch_norm2d_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *scale = &operation->in[1];
    const sdlf_tensor *saved_mean = &operation->in[2], *saved_inverse = &operation->in[3];
    const sdlf_tensor *dx = &operation->out[0], *dscale = &operation->out[1], *dshift = &operation->out[2];
    const sdlf_tensor *dresidual = &operation->out[3];
    int64_t channels = x->shape.dim[1], n = x->shape.dim[0] * area_of(x);
    for (int64_t c = 0; c < channels; c++) {
        double mean = get(saved_mean, c), inverse = get(saved_inverse, c), sum = 0, product = 0;
        for (int64_t v = 0; v < n; v++) {
            int64_t e = value_of(x, c, v);
            sum += gradient(operation, e, c);
            product += gradient(operation, e, c) * (get(x, e) - mean) * inverse;
        }
        put(dshift, c, sum);
        put(dscale, c, product);
        for (int64_t v = 0; v < n; v++) {
            int64_t e = value_of(x, c, v);
            double g = gradient(operation, e, c), normal = (get(x, e) - mean) * inverse;
            if (sdlf_tensor_present(dresidual)) put(dresidual, e, g);
            if (sdlf_tensor_present(dx))
                put(dx, e, get(scale, c) * inverse * (g - sum / (double)n - normal * product / (double)n));
        }
    }
    return SDLF_OK;
}
