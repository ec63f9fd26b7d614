/* SPDX-License-Identifier: MIT */
/* Plans that draw their own batches: what they hold for it. (lower: feed.c; running: epoch.c, stage.c) */
#ifndef SDLF_FRAMEWORK_PLAN_FEED_FEEDING_H
#define SDLF_FRAMEWORK_PLAN_FEED_FEEDING_H

#include <sdlf/plan.h>

struct plan_node;

/* Batches on their way to a device that does not hold the data set (stage.c): a ring of places there, one of as many in
 * host memory, and fences that say which are filled and which are used up. */
typedef struct plan_stages {
    int count; /* places; 0: the device holds all data, or is none */
    sdlf_calculator *calculator;
    bool queued;         /* do its queues carry the batches? Else the host waits for each */
    char *host;          /* samples, labels, numbers of each place */
    int64_t part[3];     /* bytes of these in one batch */
    int64_t place_bytes; /* of one place in host memory */
    sdlf_fence *filled[SDLF_MAX_STAGED], *used[SDLF_MAX_STAGED];
    int32_t *order; /* of the epoch under way, on the host, with scratch space for shuffling */
    uint64_t *keys;
} plan_stages;

/* The tensors of a plan's feed. */
typedef struct plan_feed {
    bool present;
    sdlf_feed feed;
    sdlf_tensor data[2];              /* samples, labels: all of them, or the places of a few batches */
    sdlf_tensor number;               /* of the images in these places; absent where it is not needed */
    sdlf_tensor whole_order, order;   /* of all samples; of this plan's */
    sdlf_tensor rates, first, cursor; /* set by the host at an epoch's start */
    sdlf_tensor epoch;                /* likewise */
    sdlf_tensor index, rate, step;    /* of the present step */
    sdlf_operation shuffle;           /* makes whole_order; kind SDLF_FILL: not wanted */
    sdlf_calculator *calculator;      /* of these operations */
    int64_t steps, done;              /* of the epoch under way */
    plan_stages stages;
} plan_feed;

/* Part of lowering. */
sdlf_status plan_lower_feed(sdlf_plan *plan);
sdlf_status plan_lower_gather(sdlf_plan *plan, int node);
/* Before a timed step: the same first batch with learning rate 0. The epoch under way is over. */
sdlf_status plan_feed_still(sdlf_plan *plan);
/* Is the feed's data set, as it is, in the memory that the plan reads it from? */
bool plan_holds_data(const sdlf_plan *plan);
/* Batches that are brought one by one: room for them, the order of an epoch, the batch of the step that comes next. */
int64_t plan_stage_bytes(const sdlf_plan *plan); /* in the host's memory */
sdlf_status plan_prepare_stages(sdlf_plan *plan);
void plan_release_stages(sdlf_plan *plan);
void plan_order_stages(sdlf_plan *plan, const sdlf_epoch *epoch);
sdlf_status plan_stage_batch(sdlf_plan *plan, int64_t step);
sdlf_status plan_batch_used(sdlf_plan *plan, int64_t step);
bool plan_is_fed(const sdlf_plan *plan, const struct plan_node *node);

#endif
