/* Pooling of activations that are channels last: what max_pool.c and avg_pool.c hand on. No scratch space. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_POOL_LAST_H
#define SDLF_CALCULATORS_CPU_KERNELS_POOL_LAST_H

#include "calculators/cpu/kernels/element.h"

void max_pool_last_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void avg_pool_last_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void global_avg_pool_last_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

#endif
