/* SPDX-License-Identifier: MIT */
/* The teaching ladder of tall-skinny GEMM on a GPU: c (m,n) = alpha a (m,k) b (k,n), m large, n and k small: the dense
 * half of a graph convolution. docs/notebook/graph-convolution.md explains each by the bytes it moves. Never "auto". */
#ifndef SDLF_LAB_GEMM_H
#define SDLF_LAB_GEMM_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LAB_GEMM_BASELINE, /* a thread an output, accumulated in global memory */
    LAB_GEMM_REGISTER, /* accumulated in a register */
    LAB_GEMM_SHARED,   /* b in shared memory */
    LAB_GEMM_INNER,    /* a thread a row: one dot product after the other */
    LAB_GEMM_OUTER,    /* a thread a row: one outer product after the other, n accumulators in registers */
    LAB_GEMM_TILED,    /* the same, a loaded in tiles along k through shared memory */
    LAB_GEMM_ALGORITHMS
};
#define LAB_GEMM_NAMES "baseline", "register", "shared", "inner", "outer", "tiled"

/* True if that algorithm supports this GEMM, which is neither transposed nor followed by an epilogue. */
bool lab_gemm_takes(const sdlf_operation *operation, int number);
sdlf_status lab_gemm(sdlf_calculator *calculator, const sdlf_operation *operation, int number);

#ifdef __cplusplus
}
#endif
#endif
