/* SPDX-License-Identifier: MIT */
/* Activation functions on runs of elements: y = f(x), x may be y. activation.c has them all; products and convolutions
 * call it for each row that they finish, while it lies in the cache. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H
#define SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H

#include <math.h>

#include "calculators/cpu/kernels/element.h"

/* Does the function only clamp, to [*low, *high]? Then it is applied to vectors before they are written; else to what was
 * written. */
static inline bool activation_clamps(const sdlf_activation *activation, element *low, element *high)
{
    *low = activation->function == SDLF_RELU ? 0 : -(element)INFINITY;
    *high = (element)INFINITY;
    if (activation->function == SDLF_CLIP) {
        *low = (element)activation->low;
        *high = (element)activation->high;
    }
    return activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU ||
           activation->function == SDLF_CLIP;
}

void activate_cpu(element *y, const element *x, int64_t count, const sdlf_activation *activation);

/* dx = dy f'(x), from v = y or x (sdlf_activation_reads_input); dx may be dy. */
void activation_gradient_cpu(element *dx, const element *v, const element *dy, int64_t count,
                             const sdlf_activation *activation);

#endif
