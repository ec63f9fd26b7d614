/* SPDX-License-Identifier: MIT */
/* Running a plan whose updates accumulate gradients over several batches. */
#include "framework/plan/plan_internal.h"
#include "framework/require.h"

/* The first step after forward and backward. */
static int first_update(const sdlf_plan *plan)
{
    int first = plan->forward_steps;
    while (first < plan->step_count && plan->steps[first].serves != SDLF_PHASE_UPDATE) first++;
    return first;
}

sdlf_status plan_clear_sums(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = first_update(plan); plan->options.accumulate && i < plan->step_count && status == SDLF_OK; i++)
        if (plan->steps[i].operation.kind == SDLF_FILL && plan->steps[i].phase == SDLF_PHASE_UPDATE)
            status = plan_run_step(plan, &plan->steps[i]);
    return status;
}

sdlf_status sdlf_plan_accumulate(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    if (!plan->options.accumulate)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "gradients are added up by a training plan that was made to accumulate");
    sdlf_status status = plan_run_steps(plan, 0, first_update(plan));
    if (status == SDLF_OK) plan->accumulated++;
    return status;
}
