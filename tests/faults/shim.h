/* SPDX-License-Identifier: MIT */
/* What shim.c, shim_stdio.c and shim_cuda.c share. */
#ifndef SDLF_TESTS_FAULTS_SHIM_H
#define SDLF_TESTS_FAULTS_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct counter {
    atomic_long calls;
    long first; /* the call that fails; 0: none does */
    bool onward;
} counter;

/* Calls that make something of CUDA's: memory, streams, events, graphs; and all calls of its runtime but those that free. */
extern counter device, device_calls;

/* Count one more call; does it fail? */
bool fails(counter *c);
/* The same of a call on a stream, which fails with EIO and ENOSPC; and that error in errno. */
bool stream_fails(void);
void set_stream_error(void);

#endif
