/* SPDX-License-Identifier: MIT */
/* The convolution algorithms of the cpu calculator: names, descriptions, and the work that each does. */
#ifndef SDLF_CALCULATORS_CPU_CONV2D_ALGORITHMS_H
#define SDLF_CALCULATORS_CPU_CONV2D_ALGORITHMS_H

#include "calculators/cpu/cpu.h"

/* operation->algorithm */
enum {
    CPU_CONV2D_AUTO,
    CPU_CONV2D_NAIVE,
    CPU_CONV2D_IM2COL,
    CPU_CONV2D_DIRECT,
    CPU_CONV2D_IMPLICIT,
    CPU_CONV2D_WINOGRAD_2,
    CPU_CONV2D_WINOGRAD_4,
    CPU_CONV2D_ALGORITHMS
};

extern const char *const cpu_conv2d_algorithms[];
extern const sdlf_algorithm_note cpu_conv2d_notes[];

/* The FLOPs and bytes of the algorithm of a conv2d_forward. */
sdlf_cost cpu_conv2d_work(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* The side m of a Winograd output tile, 2 or 4; 0 for an algorithm that is not Winograd's. */
static inline int cpu_conv2d_winograd(int algorithm)
{
    return algorithm == CPU_CONV2D_WINOGRAD_2 ? 2 : algorithm == CPU_CONV2D_WINOGRAD_4 ? 4 : 0;
}

#endif
