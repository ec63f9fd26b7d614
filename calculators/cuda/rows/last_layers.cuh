/* The end of a small classifier's step (rows/last_layers.cu): its operands, and what the blocks of its cluster pass to each other. */
#ifndef SDLF_CALCULATORS_CUDA_ROWS_LAST_LAYERS_CUH
#define SDLF_CALCULATORS_CUDA_ROWS_LAST_LAYERS_CUH

#include "calculators/cuda/cluster.cuh"
#include "calculators/cuda/rows/cross_entropy.cuh"
#include "calculators/cuda/together.h"

enum { THREADS = 512, WARPS = THREADS / WARP, MOST_BLOCKS = 16, MOST_ROWS = 64, PITCH = 16 /* of a row's logits */ };
enum { OWN_ROWS = 16 /* of a block, at most */, ROWS_A_WARP = WARP / PITCH, LOSS_WARPS = OWN_ROWS / ROWS_A_WARP };

struct last_layers {
    cuda_row_parts from;
    const float *hidden_bias; /* may be NULL */
    float *h;
    float hidden_alpha;
    sdlf_activation hidden_activation;
    const float *bias; /* of the last layer's product; may be NULL */
    float *logits;
    float alpha;
    cross_entropy<float> loss;
    const float *rate;
    float *w, *v, *b, *bv, *dx; /* v, b, bv and dx may be NULL */
    sdlf_sgd_rule rule;
    sdlf_activation activation;
    int rows, columns, units;
};

/* The k-th of a block's own rows is row block + k blocks. */
template <int UNITS, int LANES> struct last_memory {
    float partial[MOST_BLOCKS][OWN_ROWS]
                 [PITCH];       /* of each block: its part of the logits of one's own rows; others write it */
    float dy[MOST_ROWS][PITCH]; /* of all rows; others write it */
    double losses[MOST_BLOCKS][LOSS_WARPS][4]; /* of the first block: row_sums of all; others write it */
    float w[UNITS][4 * LANES];                 /* as it was */
    float sums[WARPS][UNITS * 4 * LANES];
};

static __device__ __forceinline__ int own_rows(int rows, int block, int blocks)
{
    return (rows - block + blocks - 1) / blocks;
}

#endif
