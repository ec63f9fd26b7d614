/* SPDX-License-Identifier: MIT */
/* gemm whose b is of integers with scales. See gemm_packed.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_PACKED_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_PACKED_H

#include "calculators/cpu/kernels/kernels.h"
#include "framework/operations/gemm_packed.h"

int64_t gemm_packed_workspace_cpu(const sdlf_operation *operation);
sdlf_status gemm_packed_cpu(sdlf_calculator *calculator, const sdlf_operation *operation);

#endif
