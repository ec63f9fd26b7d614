/* SPDX-License-Identifier: MIT */
/* lstm and gru over a sequence: the kernels' arguments, and which kernels compute an operation. For C and CUDA C.
 *
 * Steps are sequential, so with few samples the time is the latency of the steps. Lower bounds for a step: the GEMM, 2 N G H H FLOPs;
 * reading the weights, G H H elements (1 MB for lstm with 256 units, 4 MB with 512), from shared memory, 128 bytes a clock per
 * multiprocessor; and broadcasting a state from one multiprocessor to all others, about 1 us through a cluster's shared memory, 2 us
 * through the L2 cache with a grid-wide barrier. In comparison, separate launches for a GEMM and for the cells take 5 us and more. So:
 *
 *   cluster  one kernel for all steps. Samples are split into independent groups; a cluster of blocks (up to 16 with compute capability
 *            9.0 and newer; before, a single block) computes one group. A block has some units, with all gates of each: its part of
 *            the weights and its cells stay in its shared memory, and it writes its outputs into the other blocks' shared memory
 *   grid     the same, but a group may have any number of blocks, launched cooperatively: a block's outputs go to y (backward: da or db),
 *            where the others read them after a barrier of the group
 *   steps    a gemm and a kernel for the cells per step: for weights that do not fit in shared memory, or many samples
 *
 * All but `steps` compute in the tensors' own type in every math mode; gemm rounds operands as the mode says. */
#ifndef SDLF_CALCULATORS_CUDA_RECURRENT_H
#define SDLF_CALCULATORS_CUDA_RECURRENT_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices into recurrent_algorithms_cuda. */
enum { RECURRENT_AUTO = 0, RECURRENT_CLUSTER, RECURRENT_GRID, RECURRENT_STEPS, RECURRENT_ALGORITHMS };

enum { RECURRENT_THREADS = 512, RECURRENT_TICKETS = 32 /* stride between groups: a cache line */ };

/* An operand (T,N,.) or (N,.), with its strides in elements. data: NULL if it is absent. */
typedef struct recurrent_rows {
    void *data;
    int64_t step, sample;
} recurrent_rows;

typedef struct recurrent_tiling {
    int algorithm;
    int blocks, groups; /* blocks per group, which split its units; groups of samples */
    int units, samples; /* per block; the last ones may have fewer, or none */
    int tile;           /* samples that a warp accumulates at once: 1, 4 or 8 (float64: 4) */
    int rows;    /* of a block's weights: units times gates; backward: columns of the weight matrix, one per unit */
    int line;    /* padded length of such a row, and of exchanged rows, in elements, a multiple of 16 bytes */
    int shared;  /* bytes of shared memory */
    double cost; /* estimated us per step, by which the tiling was chosen */
} recurrent_tiling;

typedef struct recurrent_arguments {
    recurrent_tiling tiling;
    int steps, samples, units;
    bool reverse, last_only /* dy is given for the last step only */, aligned /* exchanged rows allow 16-byte loads */;
    recurrent_rows a, y, gates, kept /* lstm: cells; gru: the candidate's product */, h0, c0, dy, dcn, da,
        db /* lstm: da */, dh0, dc0;
    const void *weight, *bias;
    unsigned *tickets;
} recurrent_arguments;

static inline bool recurrent_is_backward(const sdlf_operation *operation)
{
    return operation->kind == SDLF_LSTM_BACKWARD || operation->kind == SDLF_GRU_BACKWARD;
}

static inline int recurrent_gates(const sdlf_operation *operation)
{
    return operation->kind == SDLF_LSTM_FORWARD || operation->kind == SDLF_LSTM_BACKWARD ? 4 : 3;
}

/* tiling.c: the fastest tiling by the cost above, for one algorithm or, with RECURRENT_AUTO, for any. Depends on shapes only. .algorithm
 * is RECURRENT_AUTO if that algorithm does not support the operation. */
recurrent_tiling recurrent_tiling_of(const cuda_calculator *calculator, const sdlf_operation *operation, int algorithm);

/* forward.cu, backward.cu: all steps, with that tiling. */
sdlf_status recurrent_forward_cuda(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                   int gates);
sdlf_status recurrent_backward_cuda(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                    int gates);

/* steps.c: a gemm and the cells for each step. */
sdlf_status recurrent_by_steps(sdlf_calculator *calculator, const sdlf_operation *operation,
                               const recurrent_arguments *p);
int64_t recurrent_steps_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* cells.cu: the cells of step t only. Dense rows: product (N,GH), h, carried (N,H). Forward: h and carried (lstm: c) hold the state, and
 * are updated. Backward: h holds the gradient with respect to h from the later step, carried, for lstm, that with respect to c; for gru it
 * is set to dh z. `first`: the first step that is computed: backward, there is no gradient from a later step. */
typedef struct recurrent_cells {
    int gates, step;
    bool first;
    const void *product;
    void *h, *carried;
} recurrent_cells;
sdlf_status recurrent_cells_forward(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                    recurrent_cells cells);
sdlf_status recurrent_cells_backward(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                     recurrent_cells cells);
/* to (N,H) = from, or zeros if it is absent. */
sdlf_status recurrent_take_state(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                 recurrent_rows from, void *to);

extern const char *const recurrent_algorithms_cuda[];
sdlf_kernel recurrent_cuda;
bool recurrent_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int recurrent_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t recurrent_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
