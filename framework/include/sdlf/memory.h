/* SPDX-License-Identifier: MIT */
/* The allocator for host memory of tensors: parameters, activations, workspaces and samples, which are nearly all of a
 * program's memory. The library's own bookkeeping (names, lists) comes from malloc, and device memory from the
 * drivers.
 *
 * Threads: call sdlf_set_allocator while no other thread is in the library. The allocator's functions are called from
 * any thread, and concurrently.
 * Ownership: the allocator is copied; a block is released with the allocator that allocated it.
 * Errors: a status with a message (status.h). */
#ifndef SDLF_MEMORY_H
#define SDLF_MEMORY_H

#include <stddef.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_allocator {
    /* Allocate at least `bytes` (>= 1) bytes, aligned to `alignment`, a power of 2. NULL: out of memory, which the
     * caller reports as SDLF_ERROR_MEMORY. */
    void *(*allocate)(size_t bytes, size_t alignment, void *user);
    void (*release)(void *memory, void *user); /* memory is never NULL */
    void *user;
} sdlf_allocator;

/* Allocate memory of tensors with these functions from now on; NULL restores the C heap. Errors: SDLF_ERROR_ARGUMENT
 * while earlier blocks are in use (a plan, a data set, ... has not been freed; the message says how many), or if a
 * function is missing. */
sdlf_status sdlf_set_allocator(const sdlf_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
