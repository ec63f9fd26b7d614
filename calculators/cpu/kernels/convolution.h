/* SPDX-License-Identifier: MIT */
/* The sizes of a convolution, shared by all convolution kernels. Letters: <sdlf/operation.h>; c and k count the
 * channels and filters of one group, r_s = R S, p_q = P Q, taps = c R S. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_CONVOLUTION_H
#define SDLF_CALCULATORS_CPU_KERNELS_CONVOLUTION_H

#include "calculators/cpu/kernels/product.h"

typedef struct convolution {
    int64_t n, groups, c, h, w, k, r, s, p, q;
    int64_t r_s, p_q, taps;
    int64_t stride[2], dilation[2], before[2];
} convolution;

static inline convolution convolution_make(const sdlf_tensor *x, const sdlf_tensor *w, const sdlf_window2d *window,
                                           int groups)
{
    const int64_t *dim = x->shape.dim;
    convolution v = {.n = dim[0],
                     .groups = groups,
                     .c = dim[1] / groups,
                     .h = dim[2],
                     .w = dim[3],
                     .k = w->shape.dim[0] / groups,
                     .r = window->size[0],
                     .s = window->size[1],
                     .p = sdlf_window2d_output(window, 0, dim[2]),
                     .q = sdlf_window2d_output(window, 1, dim[3])};
    v.r_s = v.r * v.s;
    v.p_q = v.p * v.q;
    v.taps = v.c * v.r_s;
    for (int i = 0; i < 2; i++) {
        v.stride[i] = window->stride[i];
        v.dilation[i] = window->dilation[i];
        v.before[i] = window->padding_before[i];
    }
    return v;
}

/* Estimated single-thread time of one pass over all images; see cpu_parallel. */
static inline int64_t convolution_time(const convolution *v)
{
    return cpu_time_of_flops(2 * v->n * v->groups * v->k * v->p_q * v->taps);
}

/* Output indices [first, last) along one axis whose input at window position `position` is inside `size` elements. */
static inline void convolution_inside(const convolution *v, int axis, int64_t position, int64_t outputs, int64_t size,
                                      int64_t *first, int64_t *last)
{
    int64_t stride = v->stride[axis], start = position * v->dilation[axis] - v->before[axis];
    *first = start >= 0 ? 0 : cpu_min(outputs, cpu_divide_up(-start, stride));
    *last = start >= size ? 0 : cpu_min(outputs, cpu_divide_up(size - start, stride));
    if (*last < *first) *last = *first;
}

#endif
