/* SPDX-License-Identifier: MIT */
/* attention on tensor cores: what an operation is to its kernels (attention.cuh), and what they are called. For C and CUDA C. */
#ifndef SDLF_CALCULATORS_CUDA_ATTENTION_H
#define SDLF_CALCULATORS_CUDA_ATTENTION_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATTENTION_BLOCK = 64 /* queries, and keys, of a block of scores */,
    ATTENTION_THREADS = 128,
    ATTENTION_MOST_DEPTH = 128
};

/* Rows of one head of an operand, of float32 or, in the forward pass, of a 16-bit storage type. */
typedef struct attention_rows {
    void *data;
    int64_t stride; /* from one row to the next */
    int rows, columns;
    bool aligned; /* may 16 bytes be read at a time? */
} attention_rows;

/* An operand (N,H,rows,columns). */
typedef struct attention_operand {
    attention_rows first; /* of the first head */
    int64_t sample, head; /* elements from one sample, and one head, to the next */
} attention_operand;

typedef struct attention_arguments {
    attention_operand q, k, v, y, dy, dq, dk, dv;
    const void *mask;    /* NULL: none */
    const float *unseen; /* NULL: SDLF_ATTENTION_UNSEEN */
    bool mask_is_bool, mask_hides, causal;
    int64_t mask_stride[4];
    float *max, *sum, *delta; /* (N,H,L); delta: the sum of dy y */
    float scale;
    int samples, heads, groups, queries, keys;
} attention_arguments;

/* The head of a thread block: q's, and the one of k and v that it reads; the mask's first element, and what it makes of a score. */
typedef struct attention_head {
    int sample, head, group;
    int64_t mask;
    float unseen;
} attention_head;

attention_arguments attention_arguments_of(const sdlf_operation *operation);

/* Bytes of shared memory of a thread block, in words along D columns. dtype: of q, k, v and y. */
int attention_forward_shared(sdlf_dtype dtype, sdlf_math math, int depth);
int attention_backward_shared(sdlf_math math, int depth);

/* The larger of a query's and a value's channels. */
int attention_depth(const sdlf_operation *operation);

bool attention_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel attention_forward_cuda, attention_backward_cuda;
int64_t attention_backward_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
