/* SPDX-License-Identifier: MIT */
/* A plan that draws its own batches and can be recorded is warmed up when it is made: one step runs, which completes
 * the lazy initialisation of libraries, and its recordings are made; then the original state is restored. So its first
 * epoch is as fast as all others.
 *
 * Such a plan keeps parameters and states only in its device's memory, so the effects of the step are undone by
 * reloading them from the model, or by drawing them again; those that it shares with another plan are first stored in
 * the model. */
#include "framework/plan/plan_internal.h"

static sdlf_status restore(sdlf_plan *plan, const sdlf_loss_scale *scale)
{
    sdlf_status status = plan->draws ? plan_draw_parameters(plan, false) : plan_move_parameters(plan, true);
    plan->feed.steps = plan->feed.done = 0;
    if (status == SDLF_OK) status = sdlf_plan_set_step_number(plan, 0);
    if (status == SDLF_OK && scale->scale > 0) status = sdlf_plan_set_loss_scale(plan, scale);
    return status == SDLF_OK ? sdlf_plan_clear_metrics(plan) : status;
}

sdlf_status plan_warm_up(sdlf_plan *plan)
{
    if (!plan->feed.present || plan->step_recording.calculator == NULL) return SDLF_OK;
    sdlf_status status = plan->options.reuse != NULL ? plan_move_parameters(plan->options.reuse, false) : SDLF_OK;
    sdlf_loss_scale scale = {.scale = 0};
    if (status == SDLF_OK) status = sdlf_plan_loss_scale(plan, &scale);
    if (status == SDLF_OK) status = plan_feed_still(plan);
    if (status == SDLF_OK) status = plan_run_pass(plan, &plan->step_recording, plan->step_count);
    if (status == SDLF_OK) status = plan_record_early(plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
    sdlf_status restored = restore(plan, &scale);
    return status == SDLF_OK ? restored : status;
}
