/* SPDX-License-Identifier: MIT */
/* The state of plans that draw their own batches. (lower: feed.c; running: epoch.c, stage.c) */
#ifndef SDLF_FRAMEWORK_PLAN_FEED_FEEDING_H
#define SDLF_FRAMEWORK_PLAN_FEED_FEEDING_H

#include <sdlf/plan.h>

struct plan_node;

/* Batches in transit to a device that does not hold the data set (stage.c): a ring of slots there, a ring of as many in
 * host memory, and fences for slots being filled and released. */
typedef struct plan_stages {
    int count; /* slots; 0: the device holds all data, or there is no feed */
    sdlf_calculator *calculator;
    bool queued;         /* the calculator's queues carry the batches; otherwise the host waits for each */
    char *host;          /* samples, labels, numbers of each slot */
    int64_t part[3];     /* bytes of these in one batch */
    int64_t place_bytes; /* of one slot in host memory */
    sdlf_fence *filled[SDLF_MAX_STAGED], *used[SDLF_MAX_STAGED];
    int32_t *order; /* of the current epoch, on the host, with scratch space for shuffling */
    uint64_t *keys;
} plan_stages;

/* The tensors of a plan's feed. */
typedef struct plan_feed {
    bool present;
    sdlf_feed feed;
    sdlf_tensor data[2];              /* samples, labels: all of them, or the slots of a few batches */
    sdlf_tensor number;               /* of the images in these slots; absent where not needed */
    sdlf_tensor whole_order, order;   /* of all samples; of this plan's */
    sdlf_tensor rates, first, cursor; /* set by the host at an epoch's start */
    sdlf_tensor epoch;                /* likewise */
    sdlf_tensor index, rate, step;    /* of the current step */
    sdlf_operation shuffle;           /* computes whole_order; kind SDLF_FILL: no shuffling */
    sdlf_calculator *calculator;      /* of these operations */
    int64_t steps, done;              /* of the current epoch */
    plan_stages stages;
} plan_feed;

/* Part of lowering. */
sdlf_status plan_lower_feed(sdlf_plan *plan);
sdlf_status plan_lower_gather(sdlf_plan *plan, int node);
/* Resets to the first batch with learning rate 0, before a timed step. Ends the current epoch. */
sdlf_status plan_feed_still(sdlf_plan *plan);
/* True if the memory from which the plan reads holds the whole data set, so that nothing is staged. */
bool plan_holds_data(const sdlf_plan *plan);
/* Batches that are staged one by one: memory for them, the order of an epoch, the batch of the next step. */
int64_t plan_stage_bytes(const sdlf_plan *plan); /* in host memory */
sdlf_status plan_prepare_stages(sdlf_plan *plan);
void plan_release_stages(sdlf_plan *plan);
void plan_order_stages(sdlf_plan *plan, const sdlf_epoch *epoch);
sdlf_status plan_stage_batch(sdlf_plan *plan, int64_t step);
sdlf_status plan_batch_used(sdlf_plan *plan, int64_t step);
bool plan_is_fed(const sdlf_plan *plan, const struct plan_node *node);

#endif
