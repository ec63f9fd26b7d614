/* SPDX-License-Identifier: MIT */
/* Aligned memory of the C heap: what host tensors and the calculators that compute in host memory allocate. */
#ifndef SDLF_FRAMEWORK_HEAP_H
#define SDLF_FRAMEWORK_HEAP_H

#include <stdint.h>

/* Alignment of every block, in bytes: a cache line, and the widest vector register. */
enum { SDLF_HEAP_ALIGNMENT = 64 };

/* At least `bytes` bytes, aligned; a valid pointer for 0 bytes too. NULL when memory has run out or bytes is negative.
 * Give back with sdlf_heap_free, which accepts NULL. */
void *sdlf_heap_allocate(int64_t bytes);
void sdlf_heap_free(void *memory);

/* What lies in these bytes of a block will not be read again: the system gets whole pages of them back at once, where
 * free() might keep them for the next that asks. They are still the block's, with undefined contents. */
void sdlf_heap_discard(void *memory, int64_t bytes);

/* The system gets back whatever the heap keeps of blocks that were freed, where the C library can do so. It takes a
 * fraction of a millisecond. */
void sdlf_heap_trim(void);

#endif
