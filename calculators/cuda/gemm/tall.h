/* SPDX-License-Identifier: MIT */
/* Tall and narrow products c (m,n) = alpha a (m,k) b (k,n), m large, n and k small: the dense half of a graph convolution.
 * Each is a rung of a ladder (docs/notebook/graph-convolution.md explains them by the bytes they move); all can be chosen by name, and
 * the last is what auto takes where it fits. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_TALL_H
#define SDLF_CALCULATORS_CUDA_GEMM_TALL_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices into gemm_algorithms_cuda. */
enum {
    GEMM_AUTO = 0,
    GEMM_CUBLAS,
    GEMM_BASELINE, /* a thread an output, its sum in global memory */
    GEMM_REGISTER, /* its sum in a register */
    GEMM_SHARED,   /* b in shared memory */
    GEMM_INNER,    /* a thread a row: one inner product after the other */
    GEMM_OUTER,    /* a thread a row: one outer product after the other, n sums in registers */
    GEMM_TILED,    /* the same, a brought in tiles along k through shared memory */
    GEMM_VECTOR,   /* the same, in pieces of 16 bytes, copied ahead of time, 4x4 sums a thread */
    GEMM_RESIDENT, /* b in registers; rows of a as they lie, in bulk, past the cache; in float64 on tensor cores */
    GEMM_FEW_ROWS,
    GEMM_FEW_COLUMNS,
    GEMM_SWEEP,
    GEMM_ALGORITHMS
};

/* Does one of the rungs, GEMM_BASELINE to GEMM_RESIDENT, take this product? */
bool gemm_tall_takes(const cuda_calculator *calculator, const sdlf_operation *operation, int algorithm);

/* One of these rungs. */
sdlf_status gemm_tall_cuda(sdlf_calculator *calculator, const sdlf_operation *operation, int algorithm);
sdlf_status gemm_vector_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
bool gemm_vector_fits(const cuda_calculator *calculator, const sdlf_operation *operation);
sdlf_status gemm_resident_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_status gemm_resident64_cuda(sdlf_calculator *calculator, const sdlf_operation *operation);
bool gemm_resident64_fits(const cuda_calculator *calculator, const sdlf_operation *operation);
bool gemm_resident_fits(const cuda_calculator *calculator, const sdlf_operation *operation);
/* Do rows of a begin where they can be copied from? Elsewhere `vector` takes its place. */
bool gemm_resident_aligned(const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
