/* SPDX-License-Identifier: MIT */
/* What cuda_runtime.c and cuda_kernels.c share. */
#ifndef SDLF_TESTS_STAND_IN_STAND_IN_H
#define SDLF_TESTS_STAND_IN_STAND_IN_H

#include <cuda_runtime_api.h>

typedef struct stand_in_generation {
    int capability, multiprocessors;
    size_t shared; /* bytes that a block may ask for */
} stand_in_generation;

/* The device. */
const stand_in_generation *stand_in_device(void);

/* The error itself, which cudaGetLastError then tells. */
cudaError_t stand_in_result(cudaError_t error);

/* What a stream does: a copy, a fill, or a launch, which leaves nothing behind. */
typedef struct stand_in_step {
    void *to;
    const void *from; /* NULL: filled with value */
    size_t bytes;
    int value;
} stand_in_step;

/* Carried out, or captured. */
cudaError_t stand_in_take(stand_in_step s);

#endif
