/* Activation functions on runs of elements: y = f(x), x may be y. activation.c has them all; products and convolutions
 * call it for each row that they finish, while it lies in the cache. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H
#define SDLF_CALCULATORS_CPU_KERNELS_ACTIVATE_H

#include "calculators/cpu/kernels/element.h"

void activate_cpu(element *y, const element *x, int64_t count, const sdlf_activation *activation);

/* dx = dy f'(x), from v = y or x (sdlf_activation_reads_input); dx may be dy. */
void activation_gradient_cpu(element *dx, const element *v, const element *dy, int64_t count,
                             const sdlf_activation *activation);

#endif
