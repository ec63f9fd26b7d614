/* SPDX-License-Identifier: MIT */
/* What the fp32 kernels for GEMMs of few rows share (gemm/skinny_m.cu): c (m,n) = a (m,k) b^T, with split-K. */
#ifndef SDLF_CALCULATORS_CUDA_GEMM_SKINNY_M_CUH
#define SDLF_CALCULATORS_CUDA_GEMM_SKINNY_M_CUH

#include "calculators/cuda/cuda.h"

enum { THREADS = 256, COLUMNS = 64 /* of c, per block */ };

/* A block computes `rows` x COLUMNS partial sums of one split; the grid is (n / COLUMNS, splits), rounded up. */
struct product {
    const float *a, *b;
    float *parts; /* (splits, m, n) */
    int m, n, k;
    int tiles, tiles_each; /* k-tiles: in total, and per block */
};

/* gemm/skinny_m_slices.cu: 17 to 128 rows on compute capability 9.0, n a multiple of 4. */
const int SLICES_DEPTH = 32 /* of a tile */, SLICES_STAGES = 8;
sdlf_status cuda_skinny_m_slices(const cuda_calculator *calculator, const product &p, int splits);

#endif
