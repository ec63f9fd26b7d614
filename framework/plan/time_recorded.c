/* SPDX-License-Identifier: MIT */
/* Timing inference steps, each many times in a row: on a device, waiting for one short kernel takes longer than the
 * kernel. If its calculator can record, the row is one recording. (Its operands may then be in a cache where a run of
 * the whole network loads them from memory.) */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>

#include "framework/clock.h"
#include "framework/require.h"
#include "framework/sort.h"

static sdlf_status run_in_a_row(sdlf_plan *plan, const plan_step *step, int together)
{
    sdlf_status status = SDLF_OK;
    plan_step alone = *step;
    alone.operation.before = NULL; /* here it follows itself */
    for (int i = 0; i < together && status == SDLF_OK; i++) status = plan_run_step(plan, &alone);
    return status;
}

/* Records the row; NULL if the calculator cannot record, or the plan disables recording. */
static sdlf_status record_row(sdlf_plan *plan, const plan_step *step, int together, void **recording)
{
    const sdlf_calculator_class *type = step->calculator->type;
    *recording = NULL;
    if (type->record_begin == NULL || plan->options.no_recording || plan_step_moves(step)) return SDLF_OK;
    sdlf_status status = type->record_begin(step->calculator);
    if (status != SDLF_OK) return status;
    status = run_in_a_row(plan, step, together);
    sdlf_status ended = type->record_end(step->calculator, recording);
    if (status == SDLF_OK && ended == SDLF_OK) return SDLF_OK;
    if (*recording != NULL) type->discard(step->calculator, *recording);
    *recording = NULL;
    return status != SDLF_OK ? status : ended;
}

sdlf_status plan_time_row(sdlf_plan *plan, plan_step *step, int together, double *times, const sdlf_timing *timing)
{
    int made = 0;
    const sdlf_calculator_class *type = step->calculator->type;
    void *recording = NULL;
    sdlf_status status = plan_run_step(plan, step); /* warm-up */
    if (status == SDLF_OK) status = record_row(plan, step, together, &recording);
    for (int repeat = -1; repeat < timing->repeats && status == SDLF_OK; repeat++) {
        if (made > 0 && !plan_times_on(timing)) break;
        status = type->synchronize(step->calculator);
        double start = sdlf_clock();
        if (status == SDLF_OK)
            status = recording != NULL ? type->replay(step->calculator, recording) : run_in_a_row(plan, step, together);
        if (status == SDLF_OK) status = type->synchronize(step->calculator);
        if (repeat >= 0) times[made++] = (sdlf_clock() - start) / together;
    }
    if (recording != NULL) type->discard(step->calculator, recording);
    if (status != SDLF_OK) return status;
    sdlf_sort_doubles(times, (size_t)made);
    step->seconds = times[made / 2];
    return SDLF_OK;
}

sdlf_status plan_time_in_rows(sdlf_plan *plan, const sdlf_timing *timing)
{
    if (plan->options.mode != SDLF_INFER || plan->feed.present)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan timing: only inference plans can repeat single steps");
    double *times = malloc((size_t)timing->repeats * sizeof *times);
    if (times == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan timing: out of memory");
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        status = plan_times_on(timing)
                     ? plan_time_row(plan, &plan->steps[i], timing->together, times, timing)
                     : sdlf_fail(SDLF_ERROR_INTERRUPTED, "plan timing: ended before all steps had run");
    }
    free(times);
    if (status == SDLF_OK)
        status = plan_run_steps(plan, 0, plan->step_count); /* in-place steps ran repeatedly: recompute */
    return status == SDLF_OK ? sdlf_plan_synchronize(plan) : status;
}

sdlf_status sdlf_plan_time_together(sdlf_plan *plan, int repeats, int together)
{
    SDLF_REQUIRE(plan);
    if (repeats < 1 || together < 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "plan timing: repeats and runs in a row must be at least 1, not %d and %d", repeats, together);
    return sdlf_plan_time_with(plan, &(sdlf_timing){.repeats = repeats, .together = together});
}
