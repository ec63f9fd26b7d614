/* SPDX-License-Identifier: MIT */
/* Where host memory of tensors comes from: parameters, activations, workspaces and samples, which is nearly all that a
 * program takes. What the library keeps books in (names, lists) comes from malloc, and memory of devices from their
 * drivers.
 *
 * Threads: sdlf_set_allocator is called while no other thread is in the library; the allocator's functions are called
 * from any thread, from several at a time.
 * Ownership: the allocator is copied; a block is given back to the allocator that made it.
 * Errors: a status with a message (status.h). */
#ifndef SDLF_MEMORY_H
#define SDLF_MEMORY_H

#include <stddef.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_allocator {
    /* At least `bytes` bytes, 1 or more, at a multiple of `alignment`, a power of 2; NULL: there are none, which the
     * caller reports as SDLF_ERROR_MEMORY. */
    void *(*allocate)(size_t bytes, size_t alignment, void *user);
    void (*release)(void *memory, void *user); /* memory is never NULL */
    void *user;
} sdlf_allocator;

/* From now on memory of tensors comes from these functions; NULL: from the C heap again. Errors: SDLF_ERROR_ARGUMENT
 * while blocks that were allocated before are in use (a plan, a data set, ... is not freed yet; the message says how
 * many), and where a function is missing. */
sdlf_status sdlf_set_allocator(const sdlf_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
