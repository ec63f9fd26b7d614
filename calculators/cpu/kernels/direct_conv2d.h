/* SPDX-License-Identifier: MIT */
/* The convolution operations by direct.h, over all images, for what direct_takes_cpu accepts; pool: a 2x2 window. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_DIRECT_CONV2D_H
#define SDLF_CALCULATORS_CPU_KERNELS_DIRECT_CONV2D_H

#include "calculators/cpu/kernels/direct.h"
#include "calculators/cpu/kernels/im2col.h"

/* The pool that follows a convolution. mask may be NULL in the forward pass. */
typedef struct direct_pool {
    int64_t window[2], p, q;
    bool first_only;
    uint8_t *mask_out;      /* forward */
    const uint8_t *mask_in; /* backward */
} direct_pool;

/* pool may be NULL: none. Scratch space in elements. */
im2col_space direct_forward_space_cpu(const convolution *v, const direct_pool *pool);
void direct_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const direct_pool *pool,
                        element *scratch);

/* dy is the gradient with respect to y, or to the pool's output. Unwanted outputs, and w without dx, may be NULL. */
typedef struct convolution_backward {
    convolution v;
    bool wants_dw, wants_dx;
    const element *x, *w, *dy;
    element *dw, *dx;
} convolution_backward;

im2col_space direct_backward_space_cpu(const convolution_backward *backward, const direct_pool *pool);
void direct_backward_cpu(const cpu_calculator *cpu, const convolution_backward *backward, const direct_pool *pool,
                         element *scratch);

#endif
