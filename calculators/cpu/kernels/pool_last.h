/* Pooling of activations that are channels last: what max_pool.c and avg_pool.c hand on. Scratch space, in bytes, for the mean of
 * whole images alone. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_POOL_LAST_H
#define SDLF_CALCULATORS_CPU_KERNELS_POOL_LAST_H

#include "calculators/cpu/kernels/element.h"

void max_pool_last_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void avg_pool_last_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
int64_t global_avg_pool_last_space_cpu(const sdlf_operation *operation);
void global_avg_pool_last_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

#endif
