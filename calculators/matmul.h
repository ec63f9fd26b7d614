/* SPDX-License-Identifier: MIT */
/* matmul as one gemm for each matrix of the batch, for calculators with a fast gemm. It calls the class's gemm slot. */
#ifndef SDLF_CALCULATORS_MATMUL_H
#define SDLF_CALCULATORS_MATMUL_H

#include <sdlf/calculator.h>

/* The offset in elements of matrix `index`, counted row-major over the batch, in x; and the gemm of that matrix. */
int64_t sdlf_matrix_offset(const sdlf_tensor *x, int64_t index);
sdlf_operation sdlf_matmul_product(const sdlf_operation *operation, int64_t index);

sdlf_status sdlf_matmul_by_gemm(sdlf_calculator *calculator, const sdlf_operation *operation);
bool sdlf_matmul_by_gemm_supports(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t sdlf_matmul_by_gemm_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);

#endif
