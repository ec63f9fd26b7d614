/* SPDX-License-Identifier: MIT */
/* See evaluate.h. */
#include "apps/report/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/scores.h"
#include "apps/system/interrupt.h"
#include "apps/system/memory.h"

enum { BATCH = 64 };

typedef struct evaluation_run {
    sdlf_plan *plan;
    sdlf_loader *loader;
    const char *input, *output;
    int64_t batch, values; /* samples of a batch; elements of one */
    float *samples, *scores;
    double *probability;
    double loss_sum;
    int most;
} evaluation_run;

sdlf_dataset evaluation_view(sdlf_model *model, const sdlf_dataset *data)
{
    sdlf_dataset view = *data;
    sdlf_dataset_normalize_for(&view, model);
    return view;
}

static sdlf_status check_shapes(evaluation_run *c, report_evaluation *j, sdlf_model *model, const sdlf_dataset *data)
{
    sdlf_binding input, output;
    if (sdlf_model_input_count(model) != 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' has %d inputs, expected one for samples",
                         sdlf_model_name(model), sdlf_model_input_count(model));
    c->input = sdlf_model_layer(model, sdlf_model_input(model, 0).layer)->name;
    c->output = sdlf_model_output_name(model, 0);
    if (data->labels.dtype == SDLF_INT32 && data->labels.shape.rank != 1)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "reports need samples with one label each, but those of %s are sequences", data->name);
    sdlf_status status = sdlf_plan_input(c->plan, c->input, &input);
    if (status == SDLF_OK) status = sdlf_plan_output(c->plan, c->output, &output);
    if (status != SDLF_OK) return status;
    c->values = sdlf_shape_count(sdlf_shape_without(data->samples.shape, 0));
    if (sdlf_tensor_count(&input.tensor) != c->batch * c->values)
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' takes samples of %s, but the data have %s",
                         sdlf_model_name(model), sdlf_shape_print(input.tensor.shape).text,
                         sdlf_shape_print(data->samples.shape).text);
    int64_t classes = sdlf_tensor_count(&output.tensor) / c->batch;
    if (output.tensor.dtype != SDLF_FLOAT32 || classes < data->class_count || classes > 1 << 16)
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' outputs %s %s, expected scores of %d classes",
                         sdlf_model_name(model), sdlf_dtype_name(output.tensor.dtype),
                         sdlf_shape_print(output.tensor.shape).text, data->class_count);
    j->evaluation.class_count = (int)classes;
    return SDLF_OK;
}

/* Insertion sort: few are kept. */
static void insert_mistake(evaluation_run *c, report_evaluation *j, mistake one)
{
    int at = j->worst_count;
    while (at > 0 && j->worst[at - 1].probability < one.probability) at--;
    if (at == c->most) return;
    if (j->worst_count < c->most) j->worst_count++;
    memmove(j->worst + at + 1, j->worst + at, (size_t)(j->worst_count - 1 - at) * sizeof *j->worst);
    j->worst[at] = one;
}

static sdlf_status evaluate_sample(evaluation_run *c, report_evaluation *j, const float *score, int truth)
{
    sdlf_evaluation *e = &j->evaluation;
    for (int k = 0; k < e->class_count; k++) c->probability[k] = (double)score[k];
    sdlf_status status = scores_check(c->probability, e->class_count);
    if (status != SDLF_OK) return status;
    scores_to_probabilities(c->probability, e->class_count);
    int best = 0;
    for (int k = 1; k < e->class_count; k++)
        if (c->probability[k] > c->probability[best]) best = k;
    e->confusion[(int64_t)truth * e->class_count + best]++;
    e->correct += best == truth;
    c->loss_sum -= log(fmax(c->probability[truth], 1e-30));
    if (best != truth)
        insert_mistake(
            c, j,
            (mistake){.sample = e->samples, .truth = truth, .taken_for = best, .probability = c->probability[best]});
    e->samples++;
    return SDLF_OK;
}

static sdlf_status evaluate_batches(evaluation_run *c, report_evaluation *j)
{
    sdlf_batch batch;
    sdlf_status status = SDLF_OK;
    int64_t score_bytes = c->batch * j->evaluation.class_count * (int64_t)sizeof *c->scores;
    while (status == SDLF_OK && interrupt_signal() == 0) {
        status = sdlf_loader_next(c->loader, &batch);
        if (status != SDLF_OK || batch.count == 0) break;
        memcpy(c->samples, batch.samples.data, (size_t)(batch.count * c->values) * sizeof *c->samples);
        status = sdlf_plan_write_converted(c->plan, c->input, c->samples, SDLF_FLOAT32, c->batch * c->values);
        if (status == SDLF_OK) status = sdlf_plan_forward(c->plan);
        if (status == SDLF_OK) status = sdlf_plan_synchronize(c->plan);
        if (status == SDLF_OK) status = sdlf_plan_read(c->plan, c->output, c->scores, SDLF_FLOAT32, score_bytes);
        const int32_t *label = batch.labels.data;
        for (int64_t i = 0; i < batch.count && status == SDLF_OK; i++)
            status = evaluate_sample(c, j, c->scores + i * j->evaluation.class_count, label[i]);
    }
    return status;
}

sdlf_status evaluate_report(report_evaluation *j, sdlf_model *model, const sdlf_dataset *data,
                            sdlf_calculator *calculator, int most)
{
    *j = (report_evaluation){.worst_count = 0};
    evaluation_run c = {.batch = data->samples.shape.dim[0] < BATCH ? data->samples.shape.dim[0] : BATCH, .most = most};
    sdlf_dataset view = evaluation_view(model, data);
    sdlf_status status =
        sdlf_plan_create(&c.plan, model, &(sdlf_plan_options){.batch = c.batch, .forward = calculator});
    if (status == SDLF_OK) status = check_shapes(&c, j, model, data);
    if (status == SDLF_OK) status = sdlf_loader_create(&c.loader, &view, &(sdlf_loader_options){.batch = c.batch});
    if (status == SDLF_OK) {
        size_t classes = (size_t)j->evaluation.class_count, batch = (size_t)c.batch;
        j->evaluation.confusion = memory_allocate(classes * classes * sizeof *j->evaluation.confusion);
        j->worst = memory_allocate((size_t)(most + 1) * sizeof *j->worst);
        c.samples = memory_allocate(batch * (size_t)c.values * sizeof *c.samples);
        c.scores = memory_allocate(batch * classes * sizeof *c.scores);
        c.probability = memory_allocate(classes * sizeof *c.probability);
        status = evaluate_batches(&c, j);
    }
    if (j->evaluation.samples > 0) j->evaluation.loss = c.loss_sum / (double)j->evaluation.samples;
    sdlf_loader_free(c.loader);
    sdlf_plan_free(c.plan);
    free(c.samples);
    free(c.scores);
    free(c.probability);
    return status;
}

void report_evaluation_release(report_evaluation *j)
{
    free(j->evaluation.confusion);
    free(j->worst);
    *j = (report_evaluation){.worst = NULL};
}
