/* SPDX-License-Identifier: MIT */
/* What the kernels of gemm for a few rows share in fp32 (gemm/skinny_m.cu): c (m,n) = a (m,k) b^T, in parts of the sum over k. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_SKINNY_M_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_SKINNY_M_CUH

#include "calculators/cuda/cuda.h"

enum { THREADS = 256, COLUMNS = 64 /* of c, a block */ };

/* A block makes `rows` x COLUMNS numbers of one part; the grid is (n / COLUMNS, parts), rounded up. */
struct product {
    const float *a, *b;
    float *parts; /* (parts, m, n) */
    int m, n, k;
    int tiles, tiles_each; /* of k: in all, and of one block */
};

/* gemm/skinny_m_slices.cu: 17 to 128 rows on compute capability 9.0, n a multiple of 4. */
const int SLICES_DEPTH = 32 /* of a tile */, SLICES_STAGES = 8;
sdlf_status cuda_skinny_m_slices(const cuda_calculator *calculator, const product &p, int splits);

#endif
