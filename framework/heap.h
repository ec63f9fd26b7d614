/* SPDX-License-Identifier: MIT */
/* Aligned memory of the C heap, for host tensors and for calculators that compute in host memory. */
#ifndef SDLF_FRAMEWORK_HEAP_H
#define SDLF_FRAMEWORK_HEAP_H

#include <stdint.h>

/* Alignment of every block, in bytes: a cache line, and the widest vector register. */
enum { SDLF_HEAP_ALIGNMENT = 64 };

/* At least `bytes` bytes, aligned; a valid pointer also for 0 bytes. NULL if memory has run out or bytes is negative.
 * Free with sdlf_heap_free, which accepts NULL. */
void *sdlf_heap_allocate(int64_t bytes);
void sdlf_heap_free(void *memory);

/* Declares that these bytes of a block will not be read again: whole pages of them go back to the system at once,
 * where free() might keep them for later allocations. The bytes stay part of the block, with undefined contents. */
void sdlf_heap_discard(void *memory, int64_t bytes);

/* Returns to the system whatever freed memory the heap keeps, if the C library can do that. It takes a fraction of a
 * millisecond. */
void sdlf_heap_trim(void);

#endif
