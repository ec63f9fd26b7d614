/* SPDX-License-Identifier: MIT */
/* resample and its gradient: x seen as (outer, L, inner), y as (outer, M, inner). */
#include "calculators/reference/reference.h"
#include "framework/operations/resample_taps.h"

#include <string.h>

sdlf_status resample_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_resample_options *options = &operation->resample;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t length = x->shape.dim[options->axis], outputs = y->shape.dim[options->axis];
    int64_t inner = sdlf_shape_span(x->shape, options->axis + 1, x->shape.rank), count = sdlf_tensor_count(y);
    bool floats = x->dtype == SDLF_FLOAT32 || x->dtype == SDLF_FLOAT64;
    for (int64_t e = 0; e < count; e++) {
        int64_t i = e % inner, j = e / inner % outputs, o = e / inner / outputs;
        sdlf_resample_taps taps = sdlf_resample_at(options, length, outputs, j);
        double sum = 0;
        if (!floats) { /* one element, moved verbatim */
            size_t size = sdlf_dtype_size(x->dtype);
            memcpy((char *)y->data + (size_t)e * size,
                   (const char *)x->data + (size_t)((o * length + taps.first) * inner + i) * size, size);
            continue;
        }
        for (int64_t k = 0; k < taps.count; k++) {
            int64_t l = sdlf_resample_index(&taps, length, k);
            sum += sdlf_resample_weight(options, &taps, length, k) * get(x, (o * length + l) * inner + i);
        }
        put(y, e, taps.outside ? (double)options->outside : sum);
    }
    return SDLF_OK;
}

sdlf_status resample_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_resample_options *options = &operation->resample;
    const sdlf_tensor *dy = &operation->in[0], *dx = &operation->out[0];
    int64_t length = dx->shape.dim[options->axis], outputs = dy->shape.dim[options->axis];
    int64_t inner = sdlf_shape_span(dx->shape, options->axis + 1, dx->shape.rank), count = sdlf_tensor_count(dx);
    for (int64_t e = 0; e < count; e++) {
        int64_t i = e % inner, l = e / inner % length, o = e / inner / length;
        double sum = 0;
        for (int64_t j = 0; j < outputs; j++) {
            sdlf_resample_taps taps = sdlf_resample_at(options, length, outputs, j);
            for (int64_t k = 0; k < taps.count && !taps.outside; k++) {
                if (sdlf_resample_index(&taps, length, k) != l) continue;
                sum += sdlf_resample_weight(options, &taps, length, k) * get(dy, (o * outputs + j) * inner + i);
            }
        }
        put(dx, e, sum);
    }
    return SDLF_OK;
}
