/* Timing a plan step by step. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

#include "framework/clock.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Copy all parameters and states of the model to `saved`, or back. Returns the bytes; in inference none, since no step changes
 * them. */
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
    for (; plan != NULL && status == SDLF_OK; plan = plan->options.share)
        status = load ? sdlf_plan_load_parameters(plan) : sdlf_plan_store_parameters(plan);
    return status;
}

/* One timed run of all steps into times[step * repeats + repeat]. */
static sdlf_status time_once(sdlf_plan *plan, double *times, int repeats, int repeat)
{
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        double start = sdlf_clock();
        sdlf_status status = plan_run_step(plan, step);
        if (status == SDLF_OK) status = step->calculator->type->synchronize(step->calculator);
        if (status != SDLF_OK) return status;
        if (repeat >= 0) times[i * repeats + repeat] = sdlf_clock() - start;
    }
    return SDLF_OK;
}

sdlf_status sdlf_plan_time(sdlf_plan *plan, int repeats)
{
    if (repeats < 1) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan timing: repeats must be at least 1, not %d", repeats);
    sdlf_metrics metrics;
    sdlf_status status = plan_move_parameters(plan, false);
    if (status == SDLF_OK) status = sdlf_plan_metrics(plan, &metrics);
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
        if (status == SDLF_OK) status = time_once(plan, times, repeats, repeat);
    }
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        qsort(times + (size_t)i * (size_t)repeats, (size_t)repeats, sizeof *times, compare_doubles);
        plan->steps[i].seconds = times[i * repeats + repeats / 2];
    }
    snapshot(plan, saved, true);
    plan->feed.steps = plan->feed.done = 0; /* the epoch under way is over */
    sdlf_status restored = plan_move_parameters(plan, true);
    if (status == SDLF_OK) status = restored;
    if (sdlf_tensor_present(&plan->metrics)) {
        const double sums[3] = {metrics.loss_sum, metrics.correct, metrics.samples};
        restored = plan_upload(plan, plan->metrics.buffer, sums, sizeof sums);
        if (status == SDLF_OK) status = restored;
    }
done:
    free(times);
    free(saved);
    return status;
}
