/* SPDX-License-Identifier: MIT */
/* The test harness: counts allocations, and makes chosen ones fail.
 *
 * The linker's --wrap redirects every call of these functions from the library and the test to this file. Live blocks
 * are kept in a hash set, so that freeing a block that a shared library allocated (which is not counted) leaves the
 * count correct. */
#include "testing.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **block, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static struct {
    pthread_mutex_t lock;
    int64_t count, live;
    int64_t bytes, peak; /* in live blocks; their maximum */
    int64_t fail_in;     /* the allocation that brings this to 0 fails */
    bool failed;
    void **slot; /* the set: open addressing; `gone` marks removed blocks */
    size_t slots, used;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char gone;

static size_t find_slot(void **slot, size_t slots, const void *block)
{
    size_t i = (size_t)((uintptr_t)block / 16 * UINT64_C(0x9E3779B97F4A7C15) >> 20) % slots;
    while (slot[i] && slot[i] != block) i = (i + 1) % slots;
    return i;
}

static void grow_set(void)
{
    size_t slots = (size_t)(heap.live + 64) * 4;
    void **slot = __real_calloc(slots, sizeof *slot);
    if (!slot) abort();
    size_t used = 0;
    for (size_t i = 0; i < heap.slots; i++) {
        if (!heap.slot[i] || heap.slot[i] == &gone) continue;
        slot[find_slot(slot, slots, heap.slot[i])] = heap.slot[i];
        used++;
    }
    __real_free(heap.slot);
    heap.slot = slot;
    heap.slots = slots;
    heap.used = used;
}

static void remember(void *block)
{
    pthread_mutex_lock(&heap.lock);
    if (heap.used * 2 >= heap.slots) grow_set();
    size_t i = find_slot(heap.slot, heap.slots, block);
    if (!heap.slot[i]) { /* else a shared library freed the block and it is reused here */
        heap.slot[i] = block;
        heap.used++;
        heap.live++;
        heap.bytes += (int64_t)malloc_usable_size(block);
        if (heap.bytes > heap.peak) heap.peak = heap.bytes;
    }
    pthread_mutex_unlock(&heap.lock);
}

static bool forget(void *block)
{
    pthread_mutex_lock(&heap.lock);
    size_t i = heap.slots ? find_slot(heap.slot, heap.slots, block) : 0;
    bool known = heap.slots && heap.slot[i];
    if (known) {
        heap.slot[i] = &gone;
        heap.live--;
        heap.bytes -= (int64_t)malloc_usable_size(block);
    }
    pthread_mutex_unlock(&heap.lock);
    return known;
}

/* Count an allocation. Returns true if it must fail. */
static bool must_fail(void)
{
    pthread_mutex_lock(&heap.lock);
    heap.count++;
    bool fail = heap.fail_in > 0 && --heap.fail_in == 0;
    if (fail) heap.failed = true;
    pthread_mutex_unlock(&heap.lock);
    if (fail) errno = ENOMEM;
    return fail;
}

void *__wrap_malloc(size_t size)
{
    void *block = must_fail() ? NULL : __real_malloc(size);
    if (block) remember(block);
    return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *block = must_fail() ? NULL : __real_calloc(count, size);
    if (block) remember(block);
    return block;
}

void *__wrap_realloc(void *block, size_t size)
{
    if (must_fail()) return NULL;
    bool known = block && forget(block);
    void *moved = __real_realloc(block, size);
    if (moved && (known || !block)) remember(moved);
    if (!moved && known && size > 0) remember(block);
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    void *block = must_fail() ? NULL : __real_aligned_alloc(alignment, size);
    if (block) remember(block);
    return block;
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (must_fail()) return ENOMEM;
    int error = __real_posix_memalign(block, alignment, size);
    if (error == 0) remember(*block);
    return error;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void __wrap_free(void *block)
{
    if (block) forget(block);
    __real_free(block);
}

int64_t test_allocations(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t count = heap.count;
    pthread_mutex_unlock(&heap.lock);
    return count;
}

int64_t test_live_bytes(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t count = heap.bytes;
    pthread_mutex_unlock(&heap.lock);
    return count;
}

int64_t test_peak_bytes(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t count = heap.peak;
    pthread_mutex_unlock(&heap.lock);
    return count;
}

void test_reset_peak(void)
{
    pthread_mutex_lock(&heap.lock);
    heap.peak = heap.bytes;
    pthread_mutex_unlock(&heap.lock);
}

int64_t test_live_allocations(void)
{
    pthread_mutex_lock(&heap.lock);
    int64_t live = heap.live;
    pthread_mutex_unlock(&heap.lock);
    return live;
}

void test_fail_allocation(int64_t n)
{
    pthread_mutex_lock(&heap.lock);
    heap.fail_in = n;
    heap.failed = false;
    pthread_mutex_unlock(&heap.lock);
}

bool test_allocation_failed(void)
{
    pthread_mutex_lock(&heap.lock);
    bool failed = heap.failed;
    pthread_mutex_unlock(&heap.lock);
    return failed;
}

void test_every_allocation(const char *name, sdlf_status (*attempt)(void *), void *argument)
{
    enum { LIMIT = 1000000 };
    for (int64_t n = 1; n <= LIMIT; n++) {
        int64_t live = test_live_allocations();
        test_fail_allocation(n);
        sdlf_status status = attempt(argument);
        bool failed = test_allocation_failed();
        test_fail_allocation(0);
        int64_t left = test_live_allocations() - live;
        bool ok = status == SDLF_OK || (failed && status == SDLF_ERROR_MEMORY);
        if (!ok || left != 0) {
            printf("%s: with allocation %lld %s: status %s (%s), %lld blocks left\n", name, (long long)n,
                   failed ? "failing" : "not reached", sdlf_status_name(status),
                   status == SDLF_OK ? "" : sdlf_error_message(), (long long)left);
        }
        test_check(ok && left == 0, __FILE__, __LINE__, name);
        if (failed) continue;
        test_check(n > 1, __FILE__, __LINE__, "there is an allocation that can fail");
        return;
    }
    test_check(false, __FILE__, __LINE__, "more allocations than anything here makes");
}
