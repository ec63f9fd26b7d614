/* SPDX-License-Identifier: MIT */
/* gemm for a tall a and a narrow b. See gemm_tall_skinny.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_TALL_SKINNY_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_TALL_SKINNY_H

#include "calculators/cpu/kernels/kernels.h"

/* Can it compute this one; and is it so tall that it should? */
bool gemm_tall_skinny_fits_cpu(const sdlf_operation *operation);
bool gemm_tall_skinny_pays_cpu(const sdlf_operation *operation);

workspace_function gemm_tall_skinny_workspace_cpu;
sdlf_kernel gemm_tall_skinny_cpu;

#endif
