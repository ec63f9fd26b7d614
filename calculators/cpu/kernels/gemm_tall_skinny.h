/* SPDX-License-Identifier: MIT */
/* gemm for a tall a and a narrow b. See gemm_tall_skinny.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_TALL_SKINNY_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_TALL_SKINNY_H

#include "calculators/cpu/kernels/kernels.h"

/* Whether it supports this operation, and whether a is tall enough for it to pay. */
bool gemm_tall_skinny_fits_cpu(const sdlf_operation *operation);
bool gemm_tall_skinny_pays_cpu(const sdlf_operation *operation);

workspace_function gemm_tall_skinny_workspace_cpu;
sdlf_kernel gemm_tall_skinny_cpu;

#endif
