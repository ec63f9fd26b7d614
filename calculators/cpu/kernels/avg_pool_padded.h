/* SPDX-License-Identifier: MIT */
/* Average pooling of small planes with a stride of 1, called by avg_pool.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_AVG_POOL_PADDED_H
#define SDLF_CALCULATORS_CPU_KERNELS_AVG_POOL_PADDED_H

#include "calculators/cpu/kernels/element.h"

/* Scratch space in bytes; 0: the operation is not one of these. */
int64_t avg_pool_padded_space_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void avg_pool_padded_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

#endif
