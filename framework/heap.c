/* Aligned memory of the C heap. */
#include "framework/heap.h"

#include <stdlib.h>

void *sdlf_heap_allocate(int64_t bytes)
{
    if (bytes < 0 || bytes > INT64_MAX - SDLF_HEAP_ALIGNMENT || (uint64_t)bytes > SIZE_MAX - SDLF_HEAP_ALIGNMENT) {
        return NULL;
    }
    /* aligned_alloc wants a multiple of the alignment */
    size_t blocks = ((size_t)bytes + SDLF_HEAP_ALIGNMENT - 1) / SDLF_HEAP_ALIGNMENT;
    return aligned_alloc(SDLF_HEAP_ALIGNMENT, (blocks ? blocks : 1) * SDLF_HEAP_ALIGNMENT);
}

void sdlf_heap_free(void *memory)
{
    free(memory);
}
