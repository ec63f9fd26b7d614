/* SPDX-License-Identifier: MIT */
/* Recordings: the steps of a pass as one unit that its calculator replays (see calculator.h), if one calculator that
 * can record computes them all.
 *
 * A step that draws its own batch reads its indices, learning rate and number from the device, so several training
 * steps are the same operations repeated: a recording of small steps holds as many as the calculator declares
 * (longest_recording). Two of them, one long and one short, leave few steps to recordings of a single step, whatever
 * the number of steps. */
#include "framework/plan/plan_internal.h"

#include "framework/saved_error.h"

static const int several_steps[PLAN_SEVERAL] = {64, 8};

/* The calculator that computes all of steps [0, count) and can record them; NULL: none. */
static sdlf_calculator *recorder_of(const sdlf_plan *plan, int count)
{
    sdlf_calculator *calculator = count > 0 && !plan->options.no_recording ? plan->steps[0].calculator : NULL;
    for (int i = 0; i < count; i++) {
        const plan_step *step = &plan->steps[i];
        bool sums = step->phase == SDLF_PHASE_COMMUNICATE && plan->options.communicator->type->queued;
        if (step->calculator != calculator || (plan_step_moves(step) && !sums)) return NULL;
    }
    return calculator != NULL && calculator->type->record_begin != NULL ? calculator : NULL;
}

void plan_prepare_recordings(sdlf_plan *plan)
{
    plan->forward_recording = (plan_recording){.calculator = recorder_of(plan, plan->forward_steps), .repeats = 1};
    if (plan->options.mode != SDLF_TRAIN) return;
    sdlf_calculator *calculator = recorder_of(plan, plan->step_count);
    plan->step_recording = (plan_recording){.calculator = calculator, .repeats = 1};
    if (!plan->feed.present || calculator == NULL) return;
    int64_t epoch = (plan->feed.feed.sample_data.shape.dim[0] - plan->feed.feed.skip) / plan->options.batch;
    int most = calculator->type->longest_recording / plan->step_count;
    if (epoch < most) most = (int)epoch;
    for (int i = 0; i < PLAN_SEVERAL; i++) {
        int repeats = several_steps[i] < most ? several_steps[i] : most;
        bool other = i == 0 || repeats < plan->several[i - 1].repeats;
        if (repeats > 1 && other) plan->several[i] = (plan_recording){.calculator = calculator, .repeats = repeats};
    }
}

static void discard(plan_recording *kept)
{
    if (kept->recording != NULL) kept->calculator->type->discard(kept->calculator, kept->recording);
    kept->recording = NULL;
}

void plan_discard_recordings(sdlf_plan *plan)
{
    discard(&plan->forward_recording);
    discard(&plan->step_recording);
    for (int i = 0; i < PLAN_SEVERAL; i++) discard(&plan->several[i]);
}

/* On failure reports the original cause, not the failed recording that follows from it. */
static sdlf_status record(sdlf_plan *plan, plan_recording *kept, int count)
{
    const sdlf_calculator_class *type = kept->calculator->type;
    sdlf_status status = type->record_begin(kept->calculator);
    if (status != SDLF_OK) return status;
    for (int i = 0; i < kept->repeats && status == SDLF_OK; i++) status = plan_run_steps(plan, 0, count);
    sdlf_saved_error cause;
    sdlf_save_error(&cause, status);
    sdlf_status ended = type->record_end(kept->calculator, &kept->recording);
    if (status == SDLF_OK && ended == SDLF_OK) return SDLF_OK;
    discard(kept);
    return status != SDLF_OK ? sdlf_restore_error(&cause) : ended;
}

static sdlf_status record_early(sdlf_plan *plan, plan_recording *kept)
{
    if (kept->calculator == NULL || kept->recording != NULL) return SDLF_OK;
    kept->warm = true;
    return record(plan, kept, plan->step_count);
}

sdlf_status plan_record_early(sdlf_plan *plan)
{
    sdlf_status status = record_early(plan, &plan->step_recording);
    for (int i = 0; i < PLAN_SEVERAL && plan_holds_data(plan) && status == SDLF_OK; i++)
        status = record_early(plan, &plan->several[i]);
    return status;
}

sdlf_status plan_run_pass(sdlf_plan *plan, plan_recording *kept, int count)
{
    if (kept->calculator == NULL || !kept->warm) {
        kept->warm = true;
        return plan_run_steps(plan, 0, count);
    }
    sdlf_status status = kept->recording == NULL ? record(plan, kept, count) : SDLF_OK;
    return status == SDLF_OK ? kept->calculator->type->replay(kept->calculator, kept->recording) : status;
}

sdlf_status plan_run_some(sdlf_plan *plan, int64_t most, int64_t *done)
{
    plan_recording *kept = &plan->step_recording;
    const bool warm = kept->warm; /* one step warms up for all */
    for (int i = PLAN_SEVERAL - 1; i >= 0; i--) {
        plan_recording *several = &plan->several[i];
        if (several->calculator != NULL && warm && most >= several->repeats) kept = several;
        several->warm = true;
    }
    *done = kept->repeats;
    return plan_run_pass(plan, kept, plan->step_count);
}
