/* SPDX-License-Identifier: MIT */
/* The epochs of a plan that draws its own batches: what the host sets at the start for all steps, and running them. */
#include "framework/plan/plan_internal.h"
#include "framework/require.h"

#include <stdlib.h>

static sdlf_status upload_rates(sdlf_plan *plan, const sdlf_epoch *epoch, int64_t steps)
{
    if (plan->options.dtype == SDLF_FLOAT32)
        return plan_upload(plan, plan->feed.rates.buffer, 0, epoch->rates, steps * (int64_t)sizeof(float));
    sdlf_status status = SDLF_OK;
    const plan_buffer *buffer = &plan->buffers[plan->feed.rates.buffer];
    for (int64_t i = 0; i < steps && status == SDLF_OK; i++) { /* float64 is for checking, not for speed */
        double rate = (double)epoch->rates[i];
        if (plan_is_host_space(plan, buffer->space)) {
            ((double *)buffer->memory)[i] = rate;
        } else {
            sdlf_calculator *calculator = plan->spaces[buffer->space].calculator;
            status = calculator->type->upload(calculator, (double *)buffer->memory + i, &rate, sizeof rate);
        }
    }
    return status;
}

/* A given order is stored where this plan's part of the whole order would be, so it must not be longer. */
static sdlf_status set_order(sdlf_plan *plan, const sdlf_epoch *epoch)
{
    plan_feed *feed = &plan->feed;
    if (!plan_holds_data(plan)) {
        plan_order_stages(plan, epoch);
        return SDLF_OK;
    }
    if (epoch->order == NULL) return feed->calculator->type->kernel[SDLF_SHUFFLE].run(feed->calculator, &feed->shuffle);
    sdlf_tensor order = plan_bound(plan, feed->order);
    int64_t bytes = epoch->order_count * (int64_t)sizeof *epoch->order;
    return feed->calculator->type->upload(feed->calculator, order.data, epoch->order, bytes);
}

sdlf_status sdlf_plan_begin_epoch(sdlf_plan *plan, const sdlf_epoch *epoch)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(epoch);
    plan_feed *feed = &plan->feed;
    if (!feed->present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: there is no feed to draw an epoch from");
    SDLF_REQUIRE(epoch->rates);
    int64_t steps = epoch->order_count / plan->options.batch, samples = feed->feed.sample_data.shape.dim[0];
    int64_t most = samples - feed->feed.skip;
    if (epoch->order_count > most || steps < 1 || epoch->first < 0 || epoch->first > steps)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT, "plan: an epoch of %lld of %lld samples in batches of %lld cannot begin at step %lld",
            (long long)epoch->order_count, (long long)most, (long long)plan->options.batch, (long long)epoch->first);
    for (int64_t i = 0; epoch->order != NULL && i < epoch->order_count; i++) {
        if (epoch->order[i] < 0 || epoch->order[i] >= samples)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: sample %d of an epoch's order is not one of %lld",
                             (int)epoch->order[i], (long long)samples);
    }
    sdlf_status status = plan_upload(plan, feed->epoch.buffer, 0, &epoch->epoch, sizeof epoch->epoch);
    if (status == SDLF_OK) status = set_order(plan, epoch);
    if (status == SDLF_OK) status = upload_rates(plan, epoch, steps);
    if (status == SDLF_OK)
        status = plan_upload(plan, feed->first.buffer, 0, &epoch->first_step, sizeof epoch->first_step);
    if (status == SDLF_OK) status = plan_upload(plan, feed->cursor.buffer, 0, &epoch->first, sizeof epoch->first);
    feed->steps = steps;
    feed->done = epoch->first;
    plan->step_number = epoch->first_step + epoch->first;
    return status;
}

sdlf_status plan_feed_still(sdlf_plan *plan)
{
    if (!plan->feed.present) return SDLF_OK;
    int32_t *order = malloc((size_t)plan->options.batch * sizeof *order);
    if (order == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan timing: out of memory");
    for (int64_t i = 0; i < plan->options.batch; i++) order[i] = (int32_t)i;
    int64_t step = plan->step_number;
    const float rate = 0;
    sdlf_status status = sdlf_plan_begin_epoch(
        plan, &(sdlf_epoch){.order = order, .order_count = plan->options.batch, .rates = &rate, .first_step = step});
    free(order);
    return status == SDLF_OK && !plan_holds_data(plan) ? plan_stage_batch(plan, 0) : status;
}

sdlf_status sdlf_plan_run(sdlf_plan *plan, int64_t steps)
{
    SDLF_REQUIRE(plan);
    plan_feed *feed = &plan->feed;
    if (!feed->present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: there is no feed to run steps from");
    if (steps < 0 || steps > feed->steps - feed->done)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: %lld steps were asked for, %lld of the epoch are left",
                         (long long)steps, (long long)(feed->steps - feed->done));
    sdlf_status status = SDLF_OK;
    bool held = plan_holds_data(plan);
    if (steps > 0) plan_note_changes(plan, false);
    for (int64_t run = 0, done; run < steps && status == SDLF_OK; run += done) {
        if (!held) status = plan_stage_batch(plan, feed->done);
        if (status == SDLF_OK) status = plan_run_some(plan, held ? steps - run : 1, &done);
        if (status == SDLF_OK && !held) status = plan_batch_used(plan, feed->done);
        if (status != SDLF_OK) return status;
        feed->done += done;
        plan->step_number += done;
    }
    return status;
}
