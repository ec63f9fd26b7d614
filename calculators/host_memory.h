/* SPDX-License-Identifier: MIT */
/* Class slots for calculators that compute in host memory. */
#ifndef SDLF_CALCULATORS_HOST_MEMORY_H
#define SDLF_CALCULATORS_HOST_MEMORY_H

#include <inttypes.h>
#include <string.h>

#include <sdlf/calculator.h>

#include "framework/heap.h"

static inline sdlf_status host_allocate(sdlf_calculator *calculator, int64_t bytes, void **memory)
{
    (void)calculator;
    *memory = sdlf_heap_allocate(bytes);
    return *memory != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory for %" PRId64 " bytes", bytes);
}

static inline void host_deallocate(sdlf_calculator *calculator, void *memory)
{
    (void)calculator;
    sdlf_heap_free(memory);
}

/* upload and download */
static inline sdlf_status host_copy(sdlf_calculator *calculator, void *to, const void *from, int64_t bytes)
{
    (void)calculator;
    if (bytes > 0) memcpy(to, from, (size_t)bytes);
    return SDLF_OK;
}

/* Nothing is queued. */
static inline sdlf_status host_synchronize(sdlf_calculator *calculator)
{
    (void)calculator;
    return SDLF_OK;
}

#endif
