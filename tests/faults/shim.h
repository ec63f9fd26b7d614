/* SPDX-License-Identifier: MIT */
/* Shared by shim.c, shim_stdio.c and shim_cuda.c. */
#ifndef SDLF_TESTS_FAULTS_SHIM_H
#define SDLF_TESTS_FAULTS_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct counter {
    atomic_long calls;
    long first; /* the call that fails; 0: none */
    bool onward;
} counter;

/* CUDA calls that create objects (memory, streams, events, graphs), and all runtime calls except those that free. */
extern counter device, device_calls;

/* Count a call; true if it must fail. */
bool fails(counter *c);
/* The same for a call on a stream, which fails with EIO or ENOSPC; sets errno. */
bool stream_fails(void);
void set_stream_error(void);

#endif
