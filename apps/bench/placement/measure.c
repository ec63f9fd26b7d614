/* SPDX-License-Identifier: MIT */
/* One row of the placement experiment, measured. */
#include "apps/bench/placement/experiment.h"

#include <stdlib.h>
#include <string.h>

#include "apps/input/samples.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"
#include "framework/clock.h"
#include "framework/sort.h"

enum { WARM_STEPS = 3, COPY_REPEATS = 5 }; /* libraries initialise in the first step, the second is recorded */
static const double long_enough = 0.5;     /* least total seconds of all runs */

static bool is_activation(const char *type)
{
    static const char *const types[] = {"relu", "relu6", "clip", "leaky_relu", "sigmoid", "tanh"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i], type) == 0) return true;
    }
    return false;
}

static bool is_wanted(const placement_row *row, const sdlf_model *model, int index)
{
    const char *type = sdlf_model_layer(model, index)->type->name;
    if (is_activation(type)) return is_wanted(row, model, sdlf_model_layer_input(model, index, 0).layer);
    for (int i = 0; row->types[i]; i++) {
        if (strcmp(row->types[i], type) == 0) return true;
    }
    return false;
}

/* The layers that go to the device, and the loss that the plan adds if softmax goes there. The caller frees it. */
static sdlf_placement *place_layers(const placement_row *row, const sdlf_model *model, int *count)
{
    *count = 0;
    sdlf_placement *all = memory_allocate((size_t)(sdlf_model_layer_count(model) + 1) * sizeof *all);
    if (!row->placed) return all;
    bool own_loss = false;
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        const sdlf_layer *layer = sdlf_model_layer(model, i);
        own_loss = own_loss || layer->type->is_loss;
        if (is_wanted(row, model, i)) all[(*count)++] = (sdlf_placement){.layer = layer->name, .forward = row->placed};
    }
    for (int i = 0; row->types[i] && !own_loss; i++) {
        if (strcmp(row->types[i], "softmax_cross_entropy") == 0)
            all[(*count)++] = (sdlf_placement){.layer = "loss", .forward = row->placed};
    }
    return all;
}

/* The tables for starting an epoch: samples in their order, and a small learning rate. */
typedef struct epoch_tables {
    int32_t *order;
    float *rates;
    int64_t samples, steps; /* full batches */
    bool on_host;           /* all of the plan */
} epoch_tables;

static epoch_tables make_tables(int64_t samples, int64_t batch)
{
    epoch_tables t = {.samples = samples, .steps = samples / batch};
    t.order = memory_allocate((size_t)samples * sizeof *t.order);
    t.rates = memory_allocate((size_t)(t.steps + 1) * sizeof *t.rates);
    for (int64_t i = 0; i < samples; i++) t.order[i] = (int32_t)i;
    for (int64_t i = 0; i < t.steps; i++) t.rates[i] = 1e-3f;
    return t;
}

/* Runs some steps of an epoch: all at once if a device queues them, or one by one on the host, so that a signal can end
 * them. */
static sdlf_status run_some(sdlf_plan *plan, int64_t steps, bool one_by_one)
{
    if (!one_by_one) return sdlf_plan_run(plan, steps);
    sdlf_status status = SDLF_OK;
    for (int64_t i = 0; i < steps && status == SDLF_OK && interrupt_signal() == 0; i++) status = sdlf_plan_run(plan, 1);
    return status;
}

/* Runs `steps` steps, in as many epochs as needed, to the end or until a signal comes. The time excludes the starts of
 * epochs. */
static sdlf_status run_steps(sdlf_plan *plan, const epoch_tables *t, int64_t steps, double *seconds)
{
    sdlf_status status = SDLF_OK;
    *seconds = 0;
    while (steps > 0 && status == SDLF_OK && interrupt_signal() == 0) {
        int64_t some = steps < t->steps ? steps : t->steps;
        status =
            sdlf_plan_begin_epoch(plan, &(sdlf_epoch){.order = t->order, .order_count = t->samples, .rates = t->rates});
        if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
        double start = sdlf_clock();
        if (status == SDLF_OK) status = run_some(plan, some, t->on_host);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
        *seconds += sdlf_clock() - start;
        steps -= some;
    }
    return status;
}

static sdlf_status time_steps(placement_row *row, sdlf_plan *plan, const epoch_tables *t, int64_t iterations)
{
    double warm, total = 0, seconds[PLACEMENT_RUNS_MAX] = {0};
    sdlf_metrics metrics = {0};
    sdlf_status status = run_steps(plan, t, WARM_STEPS, &warm);
    if (status == SDLF_OK) status = sdlf_plan_clear_metrics(plan);
    for (row->runs = 0; row->runs < PLACEMENT_RUNS_MAX && total < long_enough && status == SDLF_OK; row->runs++) {
        status = run_steps(plan, t, iterations, &seconds[row->runs]);
        total += seconds[row->runs];
        if (status == SDLF_OK && row->runs == 0) status = sdlf_plan_metrics(plan, &metrics);
    }
    if (status != SDLF_OK || interrupt_signal() != 0) return status; /* an incomplete run has no time */
    sdlf_sort_doubles(seconds, (size_t)row->runs);
    row->seconds = seconds[row->runs / 2] / (double)iterations;
    row->loss = metrics.loss_sum / metrics.samples;
    return SDLF_OK;
}

/* Times the copies of a step alone. */
static sdlf_status time_copies(placement_row *row, sdlf_plan *plan)
{
    static const char to[] = " to ";
    for (int i = 0; i < sdlf_plan_step_count(plan); i++)
        row->copies += sdlf_plan_step_info(plan, i).phase == SDLF_PHASE_COPY;
    if (row->copies == 0) return SDLF_OK;
    sdlf_status status = sdlf_plan_time(plan, COPY_REPEATS);
    for (int i = 0; i < sdlf_plan_step_count(plan) && status == SDLF_OK; i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COPY) continue;
        bool down = strcmp(strstr(step.operation, to) + strlen(to), "host") == 0;
        *(down ? &row->down : &row->up) += step.cost.bytes;
        row->copy_seconds += step.seconds;
    }
    return status;
}

/* The share of backward passes and updates in the whole step. */
static sdlf_status time_backward(placement_row *row, sdlf_plan *plan)
{
    bool on_host = row->forward == row->backward && !row->placed && sdlf_calculator_is_on_host(row->forward);
    if (!on_host) return SDLF_OK;
    double all = 0, backward = 0;
    sdlf_status status = sdlf_plan_time(plan, COPY_REPEATS);
    for (int i = 0; i < sdlf_plan_step_count(plan) && status == SDLF_OK; i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        all += step.seconds;
        if (step.phase != SDLF_PHASE_FORWARD) backward += step.seconds;
    }
    if (all > 0) row->backward_share = backward / all;
    return status;
}

sdlf_status placement_measure(placement_row *row, sdlf_model *model, const sdlf_dataset *data, int64_t batch,
                              int64_t iterations)
{
    sdlf_feed feed = samples_feed(model, data);
    int count;
    sdlf_placement *placement = place_layers(row, model, &count);
    sdlf_plan_options options = {
        .batch = batch,
        .mode = SDLF_TRAIN,
        .forward = row->forward,
        .backward = row->backward,
        .placement = placement,
        .placement_count = count,
        .optimizer = sdlf_sgd(.momentum = 0.9),
        .feed = &feed,
        .no_fusion = row->algorithm[0] != '\0',
        .conv_algorithm = row->algorithm[0] ? row->algorithm : NULL,
    };
    sdlf_plan *plan = NULL;
    epoch_tables tables = make_tables(data->samples.shape.dim[0], batch);
    tables.on_host = sdlf_calculator_is_on_host(row->forward) && sdlf_calculator_is_on_host(row->backward) &&
                     (!row->placed || sdlf_calculator_is_on_host(row->placed));
    sdlf_status status = sdlf_plan_create(&plan, model, &options);
    if (status == SDLF_OK) status = time_steps(row, plan, &tables, iterations);
    if (status == SDLF_OK && interrupt_signal() == 0) status = time_copies(row, plan);
    if (status == SDLF_OK && interrupt_signal() == 0) status = time_backward(row, plan);
    sdlf_plan_free(plan);
    free(tables.order);
    free(tables.rates);
    free(placement);
    return sdlf_fail_context(status, "%s", row->name);
}
