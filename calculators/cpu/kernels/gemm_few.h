/* gemm for few rows of a and a b that is stored transposed. See gemm_few.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_FEW_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_FEW_H

#include "calculators/cpu/kernels/element.h"

bool gemm_few_takes_cpu(const sdlf_operation *operation);
sdlf_status gemm_few_cpu(sdlf_calculator *calculator, const sdlf_operation *operation);

#endif
