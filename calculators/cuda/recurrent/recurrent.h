/* SPDX-License-Identifier: MIT */
/* lstm and gru over a sequence: what an operation is to its kernels, and which kernels compute it. For C and CUDA C.
 *
 * Steps follow one another, so that with few samples the latency of a step is all there is. Floor of a step: the products, 2 N G H H FLOPs;
 * the weight, G H H numbers (1 MB of lstm with 256 units, 4 MB with 512), read from shared memory, 128 bytes a clock on each
 * multiprocessor; and the way of a state from one multiprocessor to all others, about 1 us through a cluster's shared memory, 2 us through
 * the L2 cache with a barrier of the grid. Beside it, a launch for a product and one for the cells take 5 us and more. So:
 *
 *   cluster  one kernel for all steps. Samples are cut into groups, which know nothing of one another; a cluster of blocks (from compute
 *            capability 9.0 on up to 16; before, a single block) has one of them. A block has some units, all gates of each: its part of
 *            the weight and its cells stay in its shared memory, and it writes what it makes into the memory of the others
 *   grid     the same, where a group's blocks are any number, launched cooperatively: what a block makes goes to y (backward: da or db),
 *            where the others read it behind a barrier of the group
 *   steps    a product by gemm and a kernel for the cells, a step: where the weight fits no multiprocessors, or samples are many
 *
 * All but `steps` multiply and add in the tensors' own type whatever the math mode; gemm rounds operands as the mode says. */
#ifndef SDLF_CALCULATORS_CUDA_RECURRENT_H
#define SDLF_CALCULATORS_CUDA_RECURRENT_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices into recurrent_algorithms_cuda. */
enum { RECURRENT_AUTO = 0, RECURRENT_CLUSTER, RECURRENT_GRID, RECURRENT_STEPS, RECURRENT_ALGORITHMS };

enum { RECURRENT_THREADS = 512, RECURRENT_TICKETS = 32 /* from one group's to the next: a line of the cache */ };

/* An operand (T,N,.) or (N,.): elements from one step, and one sample, to the next. data: NULL where it is absent. */
typedef struct recurrent_rows {
    void *data;
    int64_t step, sample;
} recurrent_rows;

typedef struct recurrent_tiling {
    int algorithm;
    int blocks, groups; /* blocks of a group: they have all units, of grid each some; groups of samples */
    int units, samples; /* of a block; the last ones may have fewer, or none */
    int tile;           /* samples of a warp's sums: 1, 4 or 8 (float64: 4) */
    int rows;           /* of the weight's part: units times gates, or, backward, columns of the weight, one a unit */
    int line;           /* numbers of a row of it, and of what is exchanged, in whole pieces of 16 bytes */
    int shared;         /* bytes of shared memory */
    double cost;        /* us a step, as the tiling was chosen by */
} recurrent_tiling;

typedef struct recurrent_arguments {
    recurrent_tiling tiling;
    int steps, samples, units;
    bool reverse, last_only /* dy is that of the last step */,
        aligned /* may exchanged rows be read 16 bytes at a time? */;
    recurrent_rows a, y, gates, kept /* cells, or products */, h0, c0, dy, dcn, da, db /* lstm: da */, dh0, dc0;
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

/* tiling.c: the fastest tiling by the cost above, of one algorithm or, for RECURRENT_AUTO, of any. Depends on shapes only. .algorithm is
 * RECURRENT_AUTO where that algorithm takes no such operation. */
recurrent_tiling recurrent_tiling_of(const cuda_calculator *calculator, const sdlf_operation *operation, int algorithm);

/* forward.cu, backward.cu: all steps, as the tiling says. */
sdlf_status recurrent_forward_cuda(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                   int gates);
sdlf_status recurrent_backward_cuda(const cuda_calculator *calculator, const recurrent_arguments *p, sdlf_dtype dtype,
                                    int gates);

/* steps.c: a gemm and the cells a step. */
sdlf_status recurrent_by_steps(sdlf_calculator *calculator, const sdlf_operation *operation,
                               const recurrent_arguments *p);
int64_t recurrent_steps_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* cells.cu: the cells of step t by themselves. Of one row each, densely: product (N,GH), h, carried (N,H). Forward, product has b, h and
 * carried (lstm: c) the state, which become the next. Backward, h has what the step behind left for h, and carried, of lstm, for c; of gru
 * it becomes dh z. `first`: the first that is computed: backward, nothing was left. */
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
/* to (N,H) = from, or zeros where that is absent. */
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
