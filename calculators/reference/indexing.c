/* SPDX-License-Identifier: MIT */
/* arg_reduce, gather, gather_backward, top_k: x seen as (outer, L, inner). */
#include "calculators/reference/reference.h"

#include <math.h>
#include <string.h>

/* True if x replaces the best so far. */
static bool wins(const sdlf_arg_reduce_options *options, double x, double best)
{
    if (isnan(best)) return isnan(x) && options->last;
    if (isnan(x)) return true;
    if (x == best) return options->last;
    return options->smallest ? x < best : x > best;
}

sdlf_status arg_reduce_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0];
    int axis = operation->arg_reduce.axis;
    int64_t outer = sdlf_shape_span(x->shape, 0, axis), length = x->shape.dim[axis];
    int64_t inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank);
    int64_t *y = operation->out[0].data;
    for (int64_t e = 0; e < outer * inner; e++) {
        int64_t first = e / inner * length * inner + e % inner, best = 0;
        for (int64_t j = 1; j < length; j++) {
            if (wins(&operation->arg_reduce, get(x, first + j * inner), get(x, first + best * inner))) best = j;
        }
        y[e] = best;
    }
    return SDLF_OK;
}

/* The position that index m selects, in [0, length); -1: none. */
static int64_t target_of(const sdlf_tensor *index, int64_t m, int64_t length)
{
    int64_t target = index->dtype == SDLF_INT32 ? ((const int32_t *)index->data)[m] : ((const int64_t *)index->data)[m];
    if (target < 0) target += length;
    return target >= 0 && target < length ? target : -1;
}

sdlf_status gather_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *index = &operation->in[1], *y = &operation->out[0];
    int axis = operation->index.axis;
    int64_t outer = sdlf_shape_span(x->shape, 0, axis), length = x->shape.dim[axis];
    int64_t row = sdlf_shape_span(x->shape, axis + 1, x->shape.rank) * (int64_t)sdlf_dtype_size(x->dtype);
    int64_t indices = sdlf_tensor_count(index);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t m = 0; m < indices; m++) {
            char *to = (char *)y->data + (o * indices + m) * row;
            int64_t from = target_of(index, m, length);
            if (from < 0) {
                memset(to, 0, (size_t)row);
            } else {
                memcpy(to, (const char *)x->data + (o * length + from) * row, (size_t)row);
            }
        }
    }
    return SDLF_OK;
}

sdlf_status gather_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *dy = &operation->in[0], *index = &operation->in[1], *dx = &operation->out[0];
    int axis = operation->index.axis;
    int64_t length = dx->shape.dim[axis], inner = sdlf_shape_span(dx->shape, axis + 1, dx->shape.rank);
    int64_t indices = sdlf_tensor_count(index), count = sdlf_tensor_count(dx);
    for (int64_t e = 0; e < count; e++) {
        int64_t i = e % inner, l = e / inner % length, o = e / inner / length;
        double sum = 0;
        for (int64_t m = 0; m < indices; m++) {
            if (target_of(index, m, length) == l) sum += get(dy, (o * indices + m) * inner + i);
        }
        put(dx, e, sum);
    }
    return SDLF_OK;
}

/* True if element (b, at j) precedes (a, at i). The order is total: equal elements are ordered by their indices. */
static bool before(const sdlf_top_k_options *options, double b, int64_t j, double a, int64_t i)
{
    if (isnan(a) != isnan(b)) return isnan(b);
    if (!isnan(a) && a != b) return options->smallest ? b < a : b > a;
    return j < i;
}

/* Rank by rank: the first element that follows the previous one. */
sdlf_status top_k_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_top_k_options *options = &operation->top_k;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t length = x->shape.dim[options->axis], k = y->shape.dim[options->axis];
    int64_t inner = sdlf_shape_span(x->shape, options->axis + 1, x->shape.rank);
    int64_t lines = sdlf_shape_span(x->shape, 0, options->axis) * inner, *index = operation->out[1].data;
    for (int64_t line = 0; line < lines; line++) {
        int64_t from = line / inner * length * inner + line % inner, to = line / inner * k * inner + line % inner;
        int64_t last = -1;
        for (int64_t rank = 0; rank < k; rank++) {
            int64_t best = -1;
            for (int64_t j = 0; j < length; j++) {
                double value = get(x, from + j * inner);
                if (last >= 0 && !before(options, get(x, from + last * inner), last, value, j)) continue;
                if (best < 0 || before(options, value, j, get(x, from + best * inner), best)) best = j;
            }
            put(y, to + rank * inner, get(x, from + best * inner));
            index[to + rank * inner] = last = best;
        }
    }
    return SDLF_OK;
}
