/* SPDX-License-Identifier: MIT */
/* A plan that draws its own batches and can be recorded is warmed up when it is made: one step runs, so that whatever
 * libraries set up lazily is there, and its recordings are made; then everything is as it was. Its first epoch is then
 * as fast as all others.
 *
 * Such a plan keeps parameters and states only in its device's memory, so that what the step has done to them is undone
 * by loading them from the model again, or by drawing them anew; those that another plan shares with it are stored in
 * the model before. */
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
