/* SPDX-License-Identifier: MIT */
/* Batch normalisation of rows of channels, (M,C): training, forward and backward, with residual and activation. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_BATCH_NORM_ROWS_H
#define SDLF_CALCULATORS_CPU_KERNELS_BATCH_NORM_ROWS_H

#include "calculators/cpu/kernels/element.h"

/* True if x has the form (M,C) or (M,C,1,1). */
bool batch_norm_rows_takes_cpu(const sdlf_operation *operation);

/* Bytes of scratch space, and the two operations. */
int64_t batch_norm_rows_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation);
void batch_norm_rows_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);
void batch_norm_rows_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation);

#endif
