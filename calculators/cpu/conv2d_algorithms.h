/* SPDX-License-Identifier: MIT */
/* The ways that the cpu calculator has to a convolution: their names, what is known of them, and what each of them does. */
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

/* What the algorithm of a conv2d_forward computes and moves. */
sdlf_cost cpu_conv2d_work(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* The side of a tile of outputs, 2 or 4; 0 for an algorithm that is not Winograd's. */
static inline int cpu_conv2d_winograd(int algorithm)
{
    return algorithm == CPU_CONV2D_WINOGRAD_2 ? 2 : algorithm == CPU_CONV2D_WINOGRAD_4 ? 4 : 0;
}

#endif
