/* Convolution where each filter reads one channel: groups = channels. Scratch space: none. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_DEPTHWISE_H
#define SDLF_CALCULATORS_CPU_KERNELS_DEPTHWISE_H

#include "calculators/cpu/kernels/direct_conv2d.h"

static inline bool depthwise_takes(const convolution *v)
{
    return v->c == 1 && v->groups > 1;
}

void depthwise_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward);
/* dx, or dw, whichever is wanted. */
void depthwise_backward_cpu(const cpu_calculator *cpu, const convolution_backward *backward);

#endif
