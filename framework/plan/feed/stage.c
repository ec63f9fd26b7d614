/* SPDX-License-Identifier: MIT */
/* Streams batches to a device while it computes, if it cannot hold the data set.
 *
 * The device has a ring of slots for a few batches, and the host has one in memory that
 * transfers read asynchronously. For step s, with k = s mod places:
 *
 *     host       waits until slot k of its ring has been sent (by step s - places), and gathers the batch there
 *     transfers  wait until step s - places has released slot k of the device, send, and signal that it is filled
 *     kernels    wait until it is filled; run the step; signal that it is used
 *
 * So nothing waits as long as the host is faster than the device, and the host is never
 * more than the ring ahead. On a device without queues the host waits for each
 * transfer. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "framework/heap.h"

enum { SAMPLES, LABELS, NUMBERS, PARTS };

/* Alignment of the parts in a slot. */
enum { PART_ALIGNMENT = 64 };

static int64_t round_up(int64_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

/* Uploads the order that cycles through the ring, which never changes. */
static sdlf_status upload_ring_order(sdlf_plan *plan)
{
    plan_feed *feed = &plan->feed;
    int64_t count = sdlf_tensor_count(&feed->whole_order), places = feed->stages.count * plan->options.batch;
    sdlf_tensor order = plan_bound(plan, feed->order);
    for (int64_t i = 0; i < count; i++) feed->stages.order[i] = (int32_t)(i % places);
    return feed->calculator->type->upload(feed->calculator, order.data, feed->stages.order, sdlf_tensor_bytes(&order));
}

/* Computes the sizes of the parts of one batch in the host's ring. */
static plan_stages measure(const plan_feed *feed)
{
    plan_stages stages = feed->stages;
    const sdlf_tensor *parts[PARTS] = {&feed->data[0], &feed->data[1], &feed->number};
    stages.place_bytes = 0;
    for (int i = 0; i < PARTS; i++) {
        stages.part[i] = sdlf_tensor_bytes(parts[i]) / stages.count;
        stages.place_bytes += round_up(stages.part[i]);
    }
    return stages;
}

int64_t plan_stage_bytes(const sdlf_plan *plan)
{
    const plan_feed *feed = &plan->feed;
    if (!feed->present || plan_holds_data(plan)) return 0;
    int64_t order = sdlf_tensor_count(&feed->whole_order) * (int64_t)(sizeof(int32_t) + sizeof(uint64_t));
    return measure(feed).place_bytes * feed->stages.count + order;
}

sdlf_status plan_prepare_stages(sdlf_plan *plan)
{
    plan_feed *feed = &plan->feed;
    plan_stages *stages = &feed->stages;
    if (!feed->present || plan_holds_data(plan)) return SDLF_OK;
    const sdlf_queue_class *queues = stages->calculator->type->queues;
    int64_t count = sdlf_tensor_count(&feed->whole_order);
    *stages = measure(feed);
    stages->queued = queues != NULL;
    stages->order = malloc((size_t)count * sizeof *stages->order);
    stages->keys = malloc((size_t)count * sizeof *stages->keys);
    if (stages->order == NULL || stages->keys == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for the order of %lld samples", (long long)count);
    sdlf_status status = SDLF_OK;
    int64_t bytes = stages->place_bytes * stages->count;
    if (stages->queued) {
        status = queues->allocate_host(stages->calculator, bytes, (void **)&stages->host);
    } else {
        stages->host = sdlf_heap_allocate(bytes);
        if (stages->host == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for batches");
    }
    for (int i = 0; i < stages->count && stages->queued && status == SDLF_OK; i++) {
        status = queues->fence_create(stages->calculator, &stages->filled[i]);
        if (status == SDLF_OK) status = queues->fence_create(stages->calculator, &stages->used[i]);
    }
    return status == SDLF_OK ? upload_ring_order(plan) : status;
}

void plan_release_stages(sdlf_plan *plan)
{
    plan_stages *stages = &plan->feed.stages;
    free(stages->order);
    free(stages->keys);
    if (stages->host == NULL) return;
    if (!stages->queued) {
        sdlf_heap_free(stages->host);
        return;
    }
    const sdlf_queue_class *queues = stages->calculator->type->queues;
    stages->calculator->type->synchronize(stages->calculator);
    for (int i = 0; i < stages->count; i++) {
        queues->fence_free(stages->calculator, stages->filled[i]);
        queues->fence_free(stages->calculator, stages->used[i]);
    }
    queues->deallocate_host(stages->calculator, stages->host);
}

void plan_order_stages(sdlf_plan *plan, const sdlf_epoch *epoch)
{
    plan_stages *stages = &plan->feed.stages;
    int64_t skip = plan->feed.feed.skip;
    if (epoch->order != NULL)
        memcpy(stages->order + skip, epoch->order, (size_t)epoch->order_count * sizeof *epoch->order);
    else
        sdlf_shuffle_order(stages->order, stages->keys, sdlf_tensor_count(&plan->feed.whole_order),
                           plan->feed.feed.seed, (uint32_t)epoch->epoch);
}

/* Gathers samples, labels and numbers of a step into a slot of the host's ring. */
static void gather(const sdlf_plan *plan, int64_t step, char *place)
{
    const plan_feed *feed = &plan->feed;
    const plan_stages *stages = &feed->stages;
    int64_t batch = plan->options.batch;
    size_t row = (size_t)(stages->part[SAMPLES] / batch);
    const int32_t *order = stages->order + feed->feed.skip + step * batch;
    const char *samples = feed->feed.sample_data.data;
    const int32_t *labels = feed->feed.label_data.data;
    for (int64_t n = 0; n < batch; n++) memcpy(place + (size_t)n * row, samples + (size_t)order[n] * row, row);
    int32_t *to = (int32_t *)(void *)(place + round_up(stages->part[SAMPLES]));
    for (int64_t n = 0; n < batch; n++) to[n] = labels[order[n]];
    to = (int32_t *)(void *)((char *)to + round_up(stages->part[LABELS]));
    memcpy(to, order, (size_t)stages->part[NUMBERS]);
}

/* Sends part `i` of the batch from the host's slot to the device's. */
static sdlf_status send(sdlf_plan *plan, const sdlf_tensor *ring, int i, int at, const char *from)
{
    const plan_stages *stages = &plan->feed.stages;
    const sdlf_calculator_class *type = stages->calculator->type;
    if (stages->part[i] == 0) return SDLF_OK;
    char *to = (char *)plan_bound(plan, *ring).data + at * stages->part[i];
    if (!stages->queued) return type->upload(stages->calculator, to, from, stages->part[i]);
    return type->queues->upload(stages->calculator, SDLF_QUEUE_TRANSFER, to, from, stages->part[i]);
}

sdlf_status plan_stage_batch(sdlf_plan *plan, int64_t step)
{
    plan_feed *feed = &plan->feed;
    plan_stages *stages = &feed->stages;
    sdlf_calculator *calculator = stages->calculator;
    const sdlf_queue_class *queues = calculator->type->queues;
    const sdlf_tensor *rings[PARTS] = {&feed->data[0], &feed->data[1], &feed->number};
    int at = (int)(step % stages->count);
    char *place = stages->host + at * stages->place_bytes;
    sdlf_status status = stages->queued ? queues->fence_wait(calculator, stages->filled[at]) : SDLF_OK;
    if (status != SDLF_OK) return status;
    gather(plan, step, place);
    if (stages->queued) status = queues->fence_follow(calculator, SDLF_QUEUE_TRANSFER, stages->used[at]);
    for (int i = 0; i < PARTS && status == SDLF_OK; i++) {
        status = send(plan, rings[i], i, at, place);
        place += round_up(stages->part[i]);
    }
    if (status == SDLF_OK && stages->queued)
        status = queues->fence_set(calculator, SDLF_QUEUE_TRANSFER, stages->filled[at]);
    if (status == SDLF_OK && stages->queued)
        status = queues->fence_follow(calculator, SDLF_QUEUE_COMPUTE, stages->filled[at]);
    return status;
}

sdlf_status plan_batch_used(sdlf_plan *plan, int64_t step)
{
    plan_stages *stages = &plan->feed.stages;
    if (!stages->queued) return SDLF_OK;
    return stages->calculator->type->queues->fence_set(stages->calculator, SDLF_QUEUE_COMPUTE,
                                                       stages->used[step % stages->count]);
}
