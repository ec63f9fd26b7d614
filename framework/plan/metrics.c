/* SPDX-License-Identifier: MIT */
/* The sums of loss and accuracy that a plan keeps in its calculator's memory, and asynchronous reads of them that stall
 * no device. */
#include "framework/plan/plan_internal.h"
#include "framework/require.h"

/* The calculator whose queues carry the reads; NULL: they are done immediately. */
static sdlf_calculator *messenger_of(const sdlf_plan *plan)
{
    const plan_buffer *buffer = &plan->buffers[plan->metrics.buffer];
    sdlf_calculator *calculator = buffer->space >= 0 ? plan->spaces[buffer->space].calculator : NULL;
    return calculator != NULL && calculator->type->queues != NULL ? calculator : NULL;
}

sdlf_status plan_prepare_marks(sdlf_plan *plan)
{
    plan_marks *marks = &plan->marks;
    if (!plan->feed.present || !sdlf_tensor_present(&plan->metrics)) return SDLF_OK;
    marks->calculator = messenger_of(plan);
    if (marks->calculator == NULL) return SDLF_OK;
    const sdlf_queue_class *queues = marks->calculator->type->queues;
    sdlf_status status = queues->allocate_host(marks->calculator, (int64_t)(SDLF_PLAN_MARKS * sizeof *marks->sums),
                                               (void **)&marks->sums);
    for (int i = 0; i < SDLF_PLAN_MARKS && status == SDLF_OK; i++)
        status = queues->fence_create(marks->calculator, &marks->fence[i]);
    return status;
}

void plan_release_marks(sdlf_plan *plan)
{
    plan_marks *marks = &plan->marks;
    if (marks->calculator == NULL) return;
    const sdlf_queue_class *queues = marks->calculator->type->queues;
    marks->calculator->type->synchronize(marks->calculator);
    for (int i = 0; i < SDLF_PLAN_MARKS; i++) queues->fence_free(marks->calculator, marks->fence[i]);
    queues->deallocate_host(marks->calculator, marks->sums);
}

static sdlf_metrics metrics_of(const double sums[3])
{
    return (sdlf_metrics){.loss_sum = sums[0], .correct = sums[1], .samples = sums[2]};
}

sdlf_status sdlf_plan_mark(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    plan_marks *marks = &plan->marks;
    if (!plan->feed.present) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: marks are for plans with a feed");
    if (marks->count == SDLF_PLAN_MARKS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: %d marks are pending; call sdlf_plan_wait_mark first",
                         SDLF_PLAN_MARKS);
    int at = (marks->first + marks->count) % SDLF_PLAN_MARKS;
    sdlf_status status = SDLF_OK;
    if (marks->calculator != NULL) {
        const sdlf_queue_class *queues = marks->calculator->type->queues;
        status = queues->download(marks->calculator, SDLF_QUEUE_COMPUTE, marks->sums[at],
                                  plan->buffers[plan->metrics.buffer].memory, sizeof marks->sums[at]);
        if (status == SDLF_OK) status = queues->fence_set(marks->calculator, SDLF_QUEUE_COMPUTE, marks->fence[at]);
    } else {
        status = sdlf_plan_metrics(plan, &marks->taken[at]);
    }
    if (status == SDLF_OK) marks->count++;
    return status;
}

sdlf_status sdlf_plan_mark_passed(const sdlf_plan *plan, bool *passed)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(passed);
    const plan_marks *marks = &plan->marks;
    *passed = true;
    if (marks->count == 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: there is no mark to ask about");
    if (marks->calculator == NULL) return SDLF_OK;
    return marks->calculator->type->queues->fence_passed(marks->calculator, marks->fence[marks->first], passed);
}

sdlf_status sdlf_plan_wait_mark(sdlf_plan *plan, sdlf_metrics *metrics)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(metrics);
    plan_marks *marks = &plan->marks;
    if (marks->count == 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: there is no mark to wait for");
    int at = marks->first;
    marks->first = (marks->first + 1) % SDLF_PLAN_MARKS;
    marks->count--;
    *metrics = marks->taken[at];
    if (marks->calculator == NULL) return SDLF_OK;
    sdlf_status status = marks->calculator->type->queues->fence_wait(marks->calculator, marks->fence[at]);
    if (status == SDLF_OK) *metrics = metrics_of(marks->sums[at]);
    return status;
}

sdlf_status sdlf_plan_metrics(sdlf_plan *plan, sdlf_metrics *metrics)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(metrics);
    *metrics = (sdlf_metrics){0};
    if (!sdlf_tensor_present(&plan->metrics)) return SDLF_OK;
    sdlf_status status = sdlf_plan_synchronize(plan);
    double sums[3] = {0};
    if (status == SDLF_OK) status = plan_download(plan, plan->metrics.buffer, 0, sums, sizeof sums);
    *metrics = metrics_of(sums);
    return status;
}

sdlf_status sdlf_plan_clear_metrics(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    if (!sdlf_tensor_present(&plan->metrics)) return SDLF_OK;
    const double zeros[3] = {0};
    return plan_upload(plan, plan->metrics.buffer, 0, zeros, sizeof zeros);
}
