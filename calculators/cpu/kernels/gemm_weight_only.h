/* SPDX-License-Identifier: MIT */
/* gemm with weight-only quantisation: b holds integers with scales. See gemm_weight_only.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_GEMM_WEIGHT_ONLY_H
#define SDLF_CALCULATORS_CPU_KERNELS_GEMM_WEIGHT_ONLY_H

#include "calculators/cpu/kernels/kernels.h"
#include "framework/operations/gemm_weight_only.h"

int64_t gemm_weight_only_workspace_cpu(const sdlf_operation *operation);
sdlf_status gemm_weight_only_cpu(sdlf_calculator *calculator, const sdlf_operation *operation);

#endif
