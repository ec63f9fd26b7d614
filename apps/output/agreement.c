/* SPDX-License-Identifier: MIT */
/* See agreement.h. */
#include "apps/output/agreement.h"

#include <math.h>
#include <stdlib.h>

#include <sdlf/plan.h>

#include "apps/input/samples.h"
#include "apps/output/number.h"
#include "apps/output/report.h"
#include "apps/output/status_line.h"
#include "apps/system/interrupt.h"

enum { BATCH = 8 };

/* A network that runs, and its first output. */
typedef struct side {
    sdlf_plan *plan;
    const char *input, *output;
    float *y;
    sdlf_shape shape;
} side;

/* The first output that is not a loss; NULL: that of the last layer. */
static const char *output_of(const sdlf_model *model)
{
    for (int i = 0; i < sdlf_model_output_count(model); i++)
        if (!sdlf_model_layer(model, sdlf_model_output(model, i).layer)->type->is_loss)
            return sdlf_model_output_name(model, i);
    return NULL;
}

static sdlf_status open_side(side *s, sdlf_model *model, const sdlf_dataset *data, sdlf_calculator *calculator,
                             int64_t batch)
{
    sdlf_binding output;
    s->input = samples_feed(model, data).samples;
    s->output = output_of(model);
    sdlf_status status = sdlf_plan_create(&s->plan, model, &(sdlf_plan_options){.batch = batch, .forward = calculator});
    if (status == SDLF_OK) status = sdlf_plan_output(s->plan, s->output, &output);
    if (status != SDLF_OK) return status;
    s->shape = output.tensor.shape;
    s->y = malloc((size_t)sdlf_shape_count(s->shape) * sizeof *s->y + 1);
    return s->y ? SDLF_OK
                : sdlf_fail(SDLF_ERROR_MEMORY, "no memory for outputs of %s", sdlf_shape_print(s->shape).text);
}

static sdlf_status run_side(side *s, const sdlf_batch *batch)
{
    sdlf_status status = sdlf_plan_write_converted(s->plan, s->input, batch->samples.data, SDLF_FLOAT32,
                                                   sdlf_tensor_count(&batch->samples));
    if (status == SDLF_OK) status = sdlf_plan_forward(s->plan);
    if (status == SDLF_OK)
        status =
            sdlf_plan_read(s->plan, s->output, s->y, SDLF_FLOAT32, sdlf_shape_count(s->shape) * (int64_t)sizeof *s->y);
    return status;
}

static int64_t largest(const float *score, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (score[i] > score[best]) best = i;
    return best;
}

static void count_batch(agreement *a, const side *before, const side *after, const sdlf_batch *batch)
{
    int64_t all = sdlf_shape_count(before->shape), each = all / batch->count;
    for (int64_t i = 0; i < all; i++) {
        double difference = (double)after->y[i] - (double)before->y[i];
        a->squared += difference * difference;
        a->squared_before += (double)before->y[i] * (double)before->y[i];
    }
    a->samples += batch->count;
    for (int64_t n = 0; n < batch->count && a->classes; n++) {
        int64_t x = largest(before->y + n * each, each), y = largest(after->y + n * each, each);
        a->same += x == y;
        if (!a->labels) continue;
        int64_t label = ((const int32_t *)batch->labels.data)[n];
        a->right_before += x == label;
        a->right_after += y == label;
    }
}

sdlf_status agreement_measure(agreement *a, sdlf_model *before, sdlf_model *after, sdlf_dataset *data,
                              sdlf_calculator *calculator, int64_t most)
{
    side sides[2] = {{.plan = NULL}};
    sdlf_loader *loader = NULL;
    int64_t samples = data->samples.shape.dim[0];
    if (samples > most) samples = most;
    int64_t batch = samples < BATCH ? samples : BATCH;
    samples -= samples % batch; /* unchanged for a batch of one, which limited memory may require */
    *a = (agreement){.samples = 0};
    sdlf_dataset_normalize_for(data, before);
    sdlf_status status = open_side(&sides[0], before, data, calculator, batch);
    if (status != SDLF_OK && batch > 1) { /* a network for one sample at a time */
        batch = 1;
        status = open_side(&sides[0], before, data, calculator, batch);
    }
    if (status == SDLF_OK) status = open_side(&sides[1], after, data, calculator, batch);
    if (status == SDLF_OK)
        status = sdlf_loader_create(&loader, data, &(sdlf_loader_options){.batch = batch, .shuffle = true, .seed = 1});
    const sdlf_shape *shape = &sides[0].shape;
    a->classes = shape->rank == 2 && shape->dim[0] == batch && shape->dim[1] > 1;
    a->labels =
        a->classes && data->labels.dtype == SDLF_INT32 && data->class_count > 1 && data->class_count <= shape->dim[1];
    while (status == SDLF_OK && a->samples + batch <= samples && (a->samples == 0 || interrupt_goes_on(NULL))) {
        sdlf_batch now;
        status = sdlf_loader_next(loader, &now);
        if (status == SDLF_OK) status = run_side(&sides[0], &now);
        if (status == SDLF_OK) status = run_side(&sides[1], &now);
        if (status == SDLF_OK) count_batch(a, &sides[0], &sides[1], &now);
        status_line_show("comparing: sample %s of %s", number_count(a->samples).text, number_count(samples).text);
    }
    sdlf_loader_free(loader);
    for (int i = 0; i < 2; i++) {
        sdlf_plan_free(sides[i].plan);
        free(sides[i].y);
    }
    return status;
}

static double part(int64_t count, int64_t all)
{
    return all > 0 ? (double)count / (double)all : (double)NAN;
}

static double error_of(const agreement *a)
{
    return a->squared_before > 0 ? sqrt(a->squared / a->squared_before) : (double)NAN;
}

void agreement_print(const terminal *out, const agreement *a)
{
    report_label(out, "test");
    if (a->labels)
        printf("%s right before, %s after; ", number_percent(part(a->right_before, a->samples), 2).text,
               number_percent(part(a->right_after, a->samples), 2).text);
    if (a->classes) printf("the same class for %s; ", number_percent(part(a->same, a->samples), 2).text);
    printf("root mean square error %s of the output's, on %s samples\n", number_percent(error_of(a), 2).text,
           number_count(a->samples).text);
}

json_t *agreement_json(const agreement *a)
{
    return json_pack("{sI so so so so}", "samples", (json_int_t)a->samples, "accuracy_before",
                     a->labels ? json_number(part(a->right_before, a->samples)) : json_null(), "accuracy_after",
                     a->labels ? json_number(part(a->right_after, a->samples)) : json_null(), "same_class",
                     a->classes ? json_number(part(a->same, a->samples)) : json_null(), "error",
                     json_number(error_of(a)));
}
