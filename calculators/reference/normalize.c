/* SPDX-License-Identifier: MIT */
/* normalize: rows of `length` consecutive elements; e's channel is e / inner mod C. */
#include "calculators/reference/reference.h"

#include <math.h>

static int64_t channel_of(const sdlf_operation *operation, int64_t e, const sdlf_tensor *channels)
{
    return e / operation->normalize.inner % sdlf_tensor_count(channels);
}

sdlf_status normalize_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *scale = &operation->in[1], *shift = &operation->in[2];
    const sdlf_tensor *y = &operation->out[0];
    int64_t length = operation->normalize.length, rows = sdlf_tensor_count(x) / length;
    for (int64_t row = 0; row < rows; row++) {
        double mean = 0, variance = 0;
        for (int64_t e = row * length; e < (row + 1) * length; e++) mean += get(x, e) / (double)length;
        for (int64_t e = row * length; e < (row + 1) * length; e++)
            variance += (get(x, e) - mean) * (get(x, e) - mean) / (double)length;
        double inverse_std = 1 / sqrt(variance + (double)operation->normalize.epsilon);
        for (int64_t e = row * length; e < (row + 1) * length; e++) {
            double value = (get(x, e) - mean) * inverse_std;
            if (sdlf_tensor_present(scale)) value *= get(scale, channel_of(operation, e, scale));
            if (sdlf_tensor_present(shift)) value += get(shift, channel_of(operation, e, shift));
            put(y, e, value);
        }
        put(&operation->out[1], row, mean);
        put(&operation->out[2], row, inverse_std);
    }
    return SDLF_OK;
}

static double normal_at(const sdlf_operation *operation, int64_t e)
{
    int64_t row = e / operation->normalize.length;
    return (get(&operation->in[0], e) - get(&operation->in[2], row)) * get(&operation->in[3], row);
}

static void input_gradient(const sdlf_operation *operation)
{
    const sdlf_tensor *scale = &operation->in[1], *dy = &operation->in[4], *dx = &operation->out[0];
    int64_t length = operation->normalize.length, rows = sdlf_tensor_count(dy) / length;
    for (int64_t row = 0; row < rows; row++) {
        double mean = 0, projection = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t e = row * length; e < (row + 1) * length; e++) {
                double g = get(dy, e), normal = normal_at(operation, e);
                if (sdlf_tensor_present(scale)) g *= get(scale, channel_of(operation, e, scale));
                if (pass == 0) {
                    mean += g / (double)length;
                    projection += g * normal / (double)length;
                } else {
                    put(dx, e, get(&operation->in[3], row) * (g - mean - normal * projection));
                }
            }
        }
    }
}

sdlf_status normalize_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dy = &operation->in[4], *dscale = &operation->out[1], *dshift = &operation->out[2];
    if (sdlf_tensor_present(&operation->out[0])) input_gradient(operation);
    int64_t inner = operation->normalize.inner;
    int64_t channels = sdlf_tensor_count(sdlf_tensor_present(dscale) ? dscale : dshift);
    for (int64_t c = 0; c < channels; c++) {
        double by_scale = 0, by_shift = 0;
        for (int64_t first = c * inner; first < sdlf_tensor_count(dy); first += channels * inner) {
            for (int64_t e = first; e < first + inner; e++) {
                by_scale += get(dy, e) * normal_at(operation, e);
                by_shift += get(dy, e);
            }
        }
        if (sdlf_tensor_present(dscale)) put(dscale, c, by_scale);
        if (sdlf_tensor_present(dshift)) put(dshift, c, by_shift);
    }
    return SDLF_OK;
}
