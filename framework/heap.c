/* SPDX-License-Identifier: MIT */
/* Aligned memory of the C heap, or of the program's allocator. */
#include "framework/heap.h"

#include <stdatomic.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <sdlf/memory.h>

#include "framework/require.h"

static sdlf_allocator allocator; /* all NULL: use the C heap */
static atomic_llong in_use;      /* number of blocks */

sdlf_status sdlf_set_allocator(const sdlf_allocator *wanted)
{
    long long blocks = atomic_load(&in_use);
    if (wanted != NULL) SDLF_REQUIRE(wanted->allocate);
    if (wanted != NULL) SDLF_REQUIRE(wanted->release);
    if (blocks > 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_set_allocator: %lld blocks of the allocator before are in use",
                         blocks);
    allocator = wanted != NULL ? *wanted : (sdlf_allocator){.allocate = NULL};
    return SDLF_OK;
}

/* Requests huge pages for large blocks: kernels walk weights along columns, with each row on a different page, and the
 * rows that a sparse product gathers are scattered. With small pages, address translation would cost more than the
 * arithmetic. If the request is refused, only speed is lost. */
static void prefer_huge_pages(void *memory, size_t bytes)
{
    enum { LARGE = 4 << 20 };
    if (memory == NULL || bytes < LARGE) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)memory + page - 1) / page * page, last = ((uintptr_t)memory + bytes) / page * page;
#ifdef MADV_HUGEPAGE
    madvise((void *)first, last - first, MADV_HUGEPAGE);
#else
    (void)first, (void)last;
#endif
}

void *sdlf_heap_allocate(int64_t bytes)
{
    if (bytes < 0 || bytes > INT64_MAX - SDLF_HEAP_ALIGNMENT || (uint64_t)bytes > SIZE_MAX - SDLF_HEAP_ALIGNMENT) {
        return NULL;
    }
    /* aligned_alloc requires a multiple of the alignment */
    size_t blocks = ((size_t)bytes + SDLF_HEAP_ALIGNMENT - 1) / SDLF_HEAP_ALIGNMENT;
    size_t size = (blocks ? blocks : 1) * SDLF_HEAP_ALIGNMENT;
    void *memory = allocator.allocate != NULL ? allocator.allocate(size, SDLF_HEAP_ALIGNMENT, allocator.user)
                                              : aligned_alloc(SDLF_HEAP_ALIGNMENT, size);
    if (memory == NULL) return NULL;
    atomic_fetch_add(&in_use, 1);
    if (allocator.allocate == NULL) prefer_huge_pages(memory, size);
    return memory;
}

void sdlf_heap_discard(void *memory, int64_t bytes)
{
    if (memory == NULL || bytes <= 0 || allocator.allocate != NULL) return; /* only the owner may discard its pages */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)memory + page - 1) / page * page,
              last = ((uintptr_t)memory + (size_t)bytes) / page * page;
#ifdef MADV_DONTNEED
    if (first < last) madvise((void *)first, last - first, MADV_DONTNEED);
#else
    (void)first, (void)last;
#endif
}

void sdlf_heap_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void sdlf_heap_free(void *memory)
{
    if (memory == NULL) return;
    atomic_fetch_sub(&in_use, 1);
    if (allocator.release != NULL)
        allocator.release(memory, allocator.user);
    else
        free(memory);
}
