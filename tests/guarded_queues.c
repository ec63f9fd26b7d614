/* SPDX-License-Identifier: MIT */
/* The queues of the mock device, on a single thread: an entry is deferred until something waits for it, unless its
 * queue is the eager one. See guarded.h. */
#include "guarded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static sdlf_queue late = SDLF_QUEUE_COMPUTE;
static int64_t host_capacity;        /* bytes; 0: no limit */
static int64_t interruptions, waits; /* waits: since computation was last queued */

void test_guarded_late(sdlf_queue queue)
{
    late = queue;
}

void test_guarded_host_memory(int64_t bytes)
{
    host_capacity = bytes;
}

int64_t test_guarded_interruptions(void)
{
    int64_t counted = interruptions;
    interruptions = waits = 0;
    return counted;
}

/* True if the first entry may be executed. */
static bool is_due(const guarded_queue *queue)
{
    if (queue->count == 0) return false;
    const guarded_entry *entry = &queue->entry[queue->first];
    return entry->work != GUARDED_FOLLOW || entry->fence->passed >= entry->number;
}

static void do_first(guarded_calculator *guarded, guarded_queue *queue)
{
    const guarded_entry entry = queue->entry[queue->first];
    queue->first = (queue->first + 1) % GUARDED_QUEUED;
    queue->count--;
    if (entry.work == GUARDED_SET && entry.fence->passed < entry.number) entry.fence->passed = entry.number;
    if (entry.work == GUARDED_SET || entry.work == GUARDED_FOLLOW) return;
    sdlf_status status = guarded_perform(guarded, &entry);
    if (status == SDLF_OK || guarded->status != SDLF_OK) return;
    guarded->status = status;
    strncpy(guarded->message, sdlf_error_message(), sizeof guarded->message - 1);
}

/* As on a device, an error of queued work is reported by the next call. */
static sdlf_status report(guarded_calculator *guarded)
{
    if (guarded->status == SDLF_OK) return SDLF_OK;
    sdlf_status status = sdlf_fail(guarded->status, "%s", guarded->message);
    guarded->status = SDLF_OK;
    return status;
}

static void run_eager(guarded_calculator *guarded)
{
    guarded_queue *eager = &guarded->queue[late == SDLF_QUEUE_COMPUTE ? SDLF_QUEUE_TRANSFER : SDLF_QUEUE_COMPUTE];
    while (is_due(eager)) do_first(guarded, eager);
}

/* Execute the first entry of a queue, after the entries of the other queue that it waits for. */
static void force_first(guarded_calculator *guarded, sdlf_queue which)
{
    guarded_queue *queue = &guarded->queue[which], *other = &guarded->queue[1 - which];
    while (!is_due(queue)) {
        if (!CHECK(is_due(other))) abort(); /* each waits for the other */
        do_first(guarded, other);
    }
    do_first(guarded, queue);
}

sdlf_status guarded_enqueue(guarded_calculator *guarded, sdlf_queue which, const guarded_entry *entry)
{
    guarded_queue *queue = &guarded->queue[which];
    bool computes = entry->work == GUARDED_COMPUTE || entry->work == GUARDED_REPLAY;
    if (computes) {
        interruptions += waits;
        waits = 0;
    }
    if (queue->count == GUARDED_QUEUED) force_first(guarded, which);
    queue->entry[(queue->first + queue->count++) % GUARDED_QUEUED] = *entry;
    run_eager(guarded);
    return report(guarded);
}

sdlf_status guarded_drain(guarded_calculator *guarded, sdlf_queue which)
{
    waits++;
    while (guarded->queue[which].count > 0) force_first(guarded, which);
    run_eager(guarded);
    return report(guarded);
}

/* ---- the interface ---- */

static sdlf_status allocate_host(sdlf_calculator *base, int64_t bytes, void **memory)
{
    guarded_calculator *guarded = guarded_from(base);
    int slot = 0;
    int64_t taken = bytes;
    *memory = NULL;
    if (bytes == 0) return SDLF_OK;
    for (int i = 0; i < GUARDED_BLOCKS; i++) taken += (int64_t)guarded->host[i].bytes;
    if (host_capacity > 0 && taken > host_capacity)
        return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no more memory for transfers");
    while (slot < GUARDED_BLOCKS && guarded->host[slot].memory != NULL) slot++;
    guarded_block made = slot < GUARDED_BLOCKS ? guarded_map(bytes) : (guarded_block){.memory = NULL};
    if (made.memory == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory for transfers");
    guarded->host[slot] = made;
    *memory = made.memory;
    return SDLF_OK;
}

static void deallocate_host(sdlf_calculator *base, void *memory)
{
    guarded_calculator *guarded = guarded_from(base);
    bool found = memory == NULL;
    for (int queue = 0; queue < 2; queue++) CHECK(memory == NULL || guarded->queue[queue].count == 0);
    for (int i = 0; i < GUARDED_BLOCKS && !found; i++) {
        guarded_block *block = &guarded->host[i];
        if (block->memory != memory) continue;
        munmap(block->memory, block->mapped);
        *block = (guarded_block){.memory = NULL};
        found = true;
    }
    CHECK(found);
}

static sdlf_status pin_host(sdlf_calculator *base, void *memory, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    int slot = 0;
    while (slot < GUARDED_BLOCKS && guarded->host[slot].memory != NULL) slot++;
    if (slot == GUARDED_BLOCKS) return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no more memory can be pinned");
    guarded->host[slot] = (guarded_block){.memory = memory, .bytes = (size_t)bytes};
    return SDLF_OK;
}

static void unpin_host(sdlf_calculator *base, void *memory)
{
    guarded_calculator *guarded = guarded_from(base);
    int slot = 0;
    for (int queue = 0; queue < 2; queue++) CHECK(guarded->queue[queue].count == 0);
    while (slot < GUARDED_BLOCKS && (guarded->host[slot].memory != memory || guarded->host[slot].mapped != 0)) slot++;
    if (CHECK(slot < GUARDED_BLOCKS)) guarded->host[slot] = (guarded_block){.memory = NULL};
}

static sdlf_status upload(sdlf_calculator *base, sdlf_queue queue, void *to, const void *host, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "a queued upload");
    if (status != SDLF_OK) return status;
    if (!guarded_holds(guarded->blocks, to, bytes) || !guarded_holds(guarded->host, host, bytes))
        return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: a queued upload from or to other memory");
    return guarded_enqueue(guarded, queue,
                           &(guarded_entry){.work = GUARDED_UPLOAD, .to = to, .from = host, .bytes = bytes});
}

static sdlf_status download(sdlf_calculator *base, sdlf_queue queue, void *host, const void *from, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "a queued download");
    if (status != SDLF_OK) return status;
    if (!guarded_holds(guarded->blocks, from, bytes) || !guarded_holds(guarded->host, host, bytes))
        return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: a queued download from or to other memory");
    memset(host, 0xff, (size_t)bytes); /* reading it too early gives NaN */
    return guarded_enqueue(guarded, queue,
                           &(guarded_entry){.work = GUARDED_DOWNLOAD, .to = host, .from = from, .bytes = bytes});
}

static sdlf_status fence_create(sdlf_calculator *base, sdlf_fence **fence)
{
    (void)base;
    *fence = calloc(1, sizeof **fence);
    return *fence != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory for a fence");
}

static void fence_free(sdlf_calculator *base, sdlf_fence *fence)
{
    if (fence != NULL) CHECK_OK(guarded_from(base)->base.type->synchronize(base)); /* queued work refers to it */
    free(fence);
}

static sdlf_status fence_set(sdlf_calculator *base, sdlf_queue queue, sdlf_fence *fence)
{
    return guarded_enqueue(guarded_from(base), queue,
                           &(guarded_entry){.work = GUARDED_SET, .fence = fence, .number = ++fence->set});
}

static sdlf_status fence_follow(sdlf_calculator *base, sdlf_queue queue, sdlf_fence *fence)
{
    return guarded_enqueue(guarded_from(base), queue,
                           &(guarded_entry){.work = GUARDED_FOLLOW, .fence = fence, .number = fence->set});
}

/* Execute one of the entries that precede a fence. */
static void approach(guarded_calculator *guarded, const sdlf_fence *fence)
{
    bool here = false;
    const guarded_queue *queue = &guarded->queue[late];
    for (int i = 0; i < queue->count; i++) {
        const guarded_entry *entry = &queue->entry[(queue->first + i) % GUARDED_QUEUED];
        here = here || (entry->work == GUARDED_SET && entry->fence == fence);
    }
    force_first(guarded, here ? late : 1 - late);
    run_eager(guarded);
}

/* Executes no more entries than necessary. */
static sdlf_status fence_wait(sdlf_calculator *base, sdlf_fence *fence)
{
    guarded_calculator *guarded = guarded_from(base);
    waits += fence->passed < fence->set;
    while (fence->passed < fence->set) approach(guarded, fence);
    return report(guarded);
}

/* Each query executes an entry, as time would pass on a device. */
static sdlf_status fence_passed(sdlf_calculator *base, sdlf_fence *fence, bool *passed)
{
    guarded_calculator *guarded = guarded_from(base);
    if (fence->passed < fence->set) approach(guarded, fence);
    *passed = fence->passed >= fence->set;
    return report(guarded);
}

const sdlf_queue_class guarded_queues = {
    .allocate_host = allocate_host,
    .deallocate_host = deallocate_host,
    .pin_host = pin_host,
    .unpin_host = unpin_host,
    .upload = upload,
    .download = download,
    .fence_create = fence_create,
    .fence_free = fence_free,
    .fence_set = fence_set,
    .fence_follow = fence_follow,
    .fence_wait = fence_wait,
    .fence_passed = fence_passed,
};
