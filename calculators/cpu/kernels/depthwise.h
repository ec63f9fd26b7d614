/* SPDX-License-Identifier: MIT */
/* Depthwise convolution: groups = channels, each filter reads one channel. Needs no scratch space. */
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

/* The NHWC forward pass, with one filter for each channel: whether it is supported, the elements of the packed weights,
 * and packing them. */
bool depthwise_nhwc_takes_cpu(const convolution *v);
int64_t depthwise_nhwc_packed_size_cpu(const convolution *v);
void depthwise_nhwc_pack_cpu(element *packed, const convolution *v, const element *w);
void depthwise_nhwc_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed);

#endif
