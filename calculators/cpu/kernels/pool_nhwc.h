/* SPDX-License-Identifier: MIT */
/* Pooling of NHWC activations, called by max_pool.c and avg_pool.c. Only global average pooling needs scratch space, in
 * bytes. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_POOL_NHWC_H
#define SDLF_CALCULATORS_CPU_KERNELS_POOL_NHWC_H

#include "calculators/cpu/kernels/element.h"

/* The positions of a window along an axis, and the index of position 0. */
typedef struct span {
    int64_t start, first, last; /* positions first .. last - 1 of the window lie inside */
} span;

static inline span window_span(const sdlf_window2d *window, int axis, int64_t index, int64_t size)
{
    int64_t dilation = window->dilation[axis], start = index * window->stride[axis] - window->padding_before[axis];
    return (span){.start = start,
                  .first = start >= 0 ? 0 : cpu_min(window->size[axis], cpu_divide_up(-start, dilation)),
                  .last = start >= size ? 0 : cpu_min(window->size[axis], cpu_divide_up(size - start, dilation))};
}

/* The windows, of `count`, that are entirely inside a row of `size` elements: first .. last - 1. */
static inline span whole_windows(const sdlf_window2d *window, int64_t size, int64_t count)
{
    int64_t before = window->padding_before[1], stride = window->stride[1];
    int64_t room = size + before - (window->size[1] - 1) * (int64_t)window->dilation[1];
    int64_t first = cpu_min(cpu_divide_up(before, stride), count);
    int64_t last = room > 0 ? cpu_min(cpu_divide_up(room, stride), count) : 0;
    return (span){.first = first, .last = cpu_max(first, last)};
}

/* The maximum; NaN wins. Branch-free, since the branch would be mispredicted half of the time. */
static inline element larger(element best, element x)
{
    const element most = x > best ? x : best;
    return x != x ? x : most;
}

void max_pool_nhwc_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void avg_pool_nhwc_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
int64_t global_avg_pool_nhwc_space_cpu(const sdlf_operation *operation);
void global_avg_pool_nhwc_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

/* Their gradients, without scratch space. */
void max_pool_nhwc_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void avg_pool_nhwc_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void global_avg_pool_nhwc_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

#endif
