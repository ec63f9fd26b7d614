/* SPDX-License-Identifier: MIT */
/* Activation functions on contiguous elements: y = f(x), y may alias x. activation.c implements all of them; GEMM and
 * convolution kernels apply them to each row of output while it is in the cache. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H
#define SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H

#include <math.h>

#include "calculators/cpu/kernels/element.h"

/* True if the function only clamps, to [*low, *high]: then it is applied to vectors before they are stored, else to the
 * stored output. */
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

/* dx = dy f'(x), computed from v = y or x (sdlf_activation_reads_input); dx may alias dy. */
void activation_gradient_cpu(element *dx, const element *v, const element *dy, int64_t count,
                             const sdlf_activation *activation);

#endif
