/* SPDX-License-Identifier: MIT */
/* Timing a plan step by step.
 *
 * In inference, steps of calculators that can record are timed as recorded rows (time_recorded.c): otherwise the launch
 * and synchronisation overhead would hide a step of some microseconds. Training steps are timed one at a time: they
 * change their inputs. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

#include "framework/clock.h"
#include "framework/require.h"
#include "framework/sort.h"

/* Copies all parameters and states of the model to `saved`, or back. Returns the bytes; in inference 0, since no step
 * changes them. */
static size_t snapshot(const sdlf_plan *plan, char *saved, bool restore)
{
    sdlf_model *model = plan->model;
    size_t offset = 0;
    if (plan->options.mode != SDLF_TRAIN) return 0;
    for (int i = 0; i < model->parameter_count; i++) {
        sdlf_tensor *tensors[4] = {&model->parameters[i].value, &model->parameters[i].state[0],
                                   &model->parameters[i].state[1], &model->parameters[i].state[2]};
        for (int j = 0; j < 4; j++) {
            if (!sdlf_tensor_present(tensors[j])) continue;
            size_t bytes = (size_t)sdlf_tensor_bytes(tensors[j]);
            if (saved != NULL && restore) memcpy(tensors[j]->data, saved + offset, bytes);
            if (saved != NULL && !restore) memcpy(saved + offset, tensors[j]->data, bytes);
            offset += bytes;
        }
    }
    return offset;
}

sdlf_status plan_move_parameters(sdlf_plan *plan, bool load)
{
    sdlf_status status = SDLF_OK;
    for (; plan != NULL && status == SDLF_OK; plan = plan->options.reuse)
        status = load ? sdlf_plan_load_parameters(plan) : sdlf_plan_store_parameters(plan);
    return status;
}

bool plan_times_on(const sdlf_timing *timing)
{
    return timing->go_on == NULL || timing->go_on(timing->user);
}

/* One timed run of all steps into times[step * repeats + repeat]; SDLF_ERROR_INTERRUPTED if it was stopped
 * early. */
static sdlf_status time_once(sdlf_plan *plan, double *times, const sdlf_timing *timing, int repeat)
{
    for (int i = 0; i < plan->step_count; i++) {
        if (!plan_times_on(timing))
            return sdlf_fail(SDLF_ERROR_INTERRUPTED, "plan timing: ended before all steps had run");
        const plan_step *step = &plan->steps[i];
        double start = sdlf_clock();
        sdlf_status status = plan_run_step(plan, step);
        if (status == SDLF_OK) status = step->calculator->type->synchronize(step->calculator);
        if (status != SDLF_OK) return status;
        if (repeat >= 0) times[i * timing->repeats + repeat] = sdlf_clock() - start;
    }
    return SDLF_OK;
}

/* How many times in a row to run a step that takes `seconds` including its launch. */
static int row_of(double seconds)
{
    return seconds < 1e-4 ? 20 : seconds < 1e-3 ? 4 : 1;
}

/* Times an inference step as a recorded row; it has run before. times has space for all repeats. */
static sdlf_status time_recorded(sdlf_plan *plan, plan_step *step, double *times, const sdlf_timing *timing)
{
    double start = sdlf_clock();
    sdlf_status status = plan_run_step(plan, step);
    if (status == SDLF_OK) status = step->calculator->type->synchronize(step->calculator);
    int together = row_of(sdlf_clock() - start);
    return status == SDLF_OK ? plan_time_row(plan, step, together, times, timing) : status;
}

static bool is_timed_recorded(const sdlf_plan *plan, const plan_step *step)
{
    return plan->options.mode != SDLF_TRAIN && !plan->options.no_recording && !plan_step_moves(step) &&
           step->calculator->type->record_begin != NULL;
}

/* Times every step individually. */
static sdlf_status time_steps(sdlf_plan *plan, const sdlf_timing *timing)
{
    const int repeats = timing->repeats;
    int made = 0;
    sdlf_metrics metrics;
    sdlf_loss_scale scale;
    sdlf_status status = plan_move_parameters(plan, false);
    if (status == SDLF_OK) status = sdlf_plan_metrics(plan, &metrics);
    if (status == SDLF_OK) status = sdlf_plan_loss_scale(plan, &scale);
    if (status != SDLF_OK) return status;
    char *saved = malloc(snapshot(plan, NULL, false) + 1);
    double *times = malloc((size_t)plan->step_count * (size_t)repeats * sizeof *times + 1);
    if (saved == NULL || times == NULL) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "plan timing: out of memory");
        goto done;
    }
    snapshot(plan, saved, false);
    status = plan_set_control(plan, CONTROL_RATE, 0);
    for (int repeat = -1; repeat < repeats && status == SDLF_OK; repeat++) { /* the first warms up */
        status = plan_feed_still(plan);
        if (status == SDLF_OK) status = time_once(plan, times, timing, repeat);
        if (status == SDLF_OK) made = repeat + 1;
    }
    if (status == SDLF_ERROR_INTERRUPTED && made > 0) status = SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        sdlf_sort_doubles(times + (size_t)i * (size_t)repeats, (size_t)made);
        plan->steps[i].seconds = times[i * repeats + made / 2];
    }
    for (int i = 0; i < plan->step_count && status == SDLF_OK && plan_times_on(timing); i++) {
        if (is_timed_recorded(plan, &plan->steps[i])) status = time_recorded(plan, &plan->steps[i], times, timing);
    }
    if (status == SDLF_OK && plan->options.mode == SDLF_INFER)
        status = plan_run_steps(plan, 0, plan->step_count); /* in-place steps ran repeatedly: recompute */
    snapshot(plan, saved, true);
    plan->feed.steps = plan->feed.done = 0; /* the current epoch is over */
    sdlf_status restored = plan_move_parameters(plan, true);
    if (status == SDLF_OK) status = restored;
    if (scale.scale > 0) {
        restored = sdlf_plan_set_loss_scale(plan, &scale);
        if (status == SDLF_OK) status = restored;
    }
    if (sdlf_tensor_present(&plan->metrics)) {
        const double sums[3] = {metrics.loss_sum, metrics.correct, metrics.samples};
        restored = plan_upload(plan, plan->metrics.buffer, 0, sums, sizeof sums);
        if (status == SDLF_OK) status = restored;
    }
done:
    free(times);
    free(saved);
    return status;
}

sdlf_status sdlf_plan_time_with(sdlf_plan *plan, const sdlf_timing *timing)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(timing);
    if (timing->repeats < 1 || timing->together < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "plan timing: repeats must be at least 1 and runs in a row no less than 0, not %d and %d",
                         timing->repeats, timing->together);
    return timing->together > 0 ? plan_time_in_rows(plan, timing) : time_steps(plan, timing);
}

sdlf_status sdlf_plan_time(sdlf_plan *plan, int repeats)
{
    SDLF_REQUIRE(plan);
    if (repeats < 1) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan timing: repeats must be at least 1, not %d", repeats);
    return sdlf_plan_time_with(plan, &(sdlf_timing){.repeats = repeats});
}
