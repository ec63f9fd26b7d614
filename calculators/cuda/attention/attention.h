/* SPDX-License-Identifier: MIT */
/* attention on Tensor Cores: the kernels' arguments (attention.cuh), and the entry points. For C and CUDA C. */
#ifndef SDLF_CALCULATORS_CUDA_ATTENTION_H
#define SDLF_CALCULATORS_CUDA_ATTENTION_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATTENTION_BLOCK = 64 /* queries, and keys, per tile of scores */,
    ATTENTION_THREADS = 128,
    ATTENTION_MOST_DEPTH = 128
};

/* The rows of one head of an operand, in float32 or in a 16-bit storage type. */
typedef struct attention_rows {
    void *data;
    int64_t stride; /* stride between rows */
    int rows, columns;
    bool aligned; /* true if 16-byte loads are allowed */
} attention_rows;

/* An operand (N,H,rows,columns). */
typedef struct attention_operand {
    attention_rows first; /* of the first head */
    int64_t sample, head; /* elements between samples, and between heads */
} attention_operand;

typedef struct attention_arguments {
    attention_operand q, k, v, y, dy, dq, dk, dv;
    const void *mask;    /* NULL: none */
    const float *unseen; /* NULL: SDLF_ATTENTION_UNSEEN */
    bool mask_is_bool, mask_hides, causal;
    int64_t mask_stride[4];
    float *max, *sum, *delta; /* (N,H,L); delta: the dot product of dy and y; by wgmma, two numbers of a query */
    float scale;
    int samples, heads, groups, queries, keys;
} attention_arguments;

/* The head of a thread block: that of q, and the one of k and v that it reads; the mask's offset, and the score of hidden keys. */
typedef struct attention_head {
    int sample, head, group;
    int64_t mask;
    float unseen;
} attention_head;

attention_arguments attention_arguments_of(const sdlf_operation *operation);

/* By wgmma (attention/forward_wgmma.cu, backward_wgmma.cu); _suits: true if this device and build have it, for operands in 16 bits, or in float32 that
 * are rounded to them, aligned, and without a mask. */
bool attention_suits_wgmma(const cuda_calculator *calculator, const attention_arguments *arguments, sdlf_dtype dtype);
sdlf_status attention_forward_wgmma(const cuda_calculator *calculator, const attention_arguments *arguments,
                                    sdlf_dtype dtype);
sdlf_status attention_backward_wgmma(const cuda_calculator *calculator, const attention_arguments *arguments,
                                     sdlf_dtype dtype);

/* Shared memory of a thread block in bytes. dtype: of q, k, v and y. */
int attention_forward_shared(sdlf_dtype dtype, sdlf_math math, int depth);
int attention_backward_shared(sdlf_math math, int depth);

/* The larger of the head dimensions of queries and values. */
int attention_depth(const sdlf_operation *operation);

bool attention_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel attention_forward_cuda, attention_backward_cuda;
int64_t attention_backward_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
