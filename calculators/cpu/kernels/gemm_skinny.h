/* SPDX-License-Identifier: MIT */
/* gemm for a skinny a (few rows) and a b that is stored transposed. See gemm_skinny.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_SKINNY_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_SKINNY_H

#include "calculators/cpu/kernels/element.h"

bool gemm_skinny_takes_cpu(const sdlf_operation *operation);
sdlf_status gemm_skinny_cpu(sdlf_calculator *calculator, const sdlf_operation *operation);

#endif
