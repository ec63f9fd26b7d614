/* SPDX-License-Identifier: MIT */
/* Shared by cuda_runtime.c and cuda_kernels.c. */
#ifndef SDLF_TESTS_STAND_IN_STAND_IN_H
#define SDLF_TESTS_STAND_IN_STAND_IN_H

#include <cuda_runtime_api.h>

typedef struct stand_in_generation {
    int capability, multiprocessors;
    size_t shared; /* maximum bytes per block */
} stand_in_generation;

/* The device. */
const stand_in_generation *stand_in_device(void);

/* Returns the error and records it for cudaGetLastError. */
cudaError_t stand_in_result(cudaError_t error);

/* A stream operation: a copy, a fill, or a launch, which has no effect. */
typedef struct stand_in_step {
    void *to;
    const void *from; /* NULL: fill with `value` */
    size_t bytes;
    int value;
} stand_in_step;

/* Execute or capture an operation. */
cudaError_t stand_in_take(stand_in_step s);

#endif
