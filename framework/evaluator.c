/* SPDX-License-Identifier: MIT */
/* Evaluator: runs a model over a data set, and counts what its scores predict. See evaluator.h.
 *
 * The last batch is padded with zeros, so that one plan serves all. Reading the scores also waits for the uploads. */
#include "framework/evaluator.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/classifier.h"
#include "framework/clock.h"
#include "framework/heap.h"
#include "framework/model_internal.h"
#include "framework/test_time_augmentation.h"

struct sdlf_evaluator {
    sdlf_dataset data; /* a view of the caller's, with the model's normalisation */
    sdlf_classifier classifier;
    sdlf_loader *loader;
    sdlf_plan *plan;
    sdlf_communicator *ranks;    /* NULL: this process evaluates all */
    int64_t whole;               /* samples of a batch of all ranks */
    int64_t batch, sample_count; /* samples of a batch; elements of a sample */
    int64_t rows;                /* rows of scores per sample: its positions, or 1 */
    float *samples;              /* (batch, sample_count): a padded last batch */
    float *scores;               /* (batch, rows, class_count) */
    sdlf_views views;
    float *view, *part; /* with several views: one view of a batch, and its scores */
    sdlf_loss loss;
    double huber_delta;
    sdlf_target_figures *targets; /* for float targets: class_count */
};

static int64_t bytes_of_samples(const sdlf_evaluator *evaluator)
{
    return evaluator->batch * evaluator->sample_count * (int64_t)sizeof(float);
}

static int64_t bytes_of_scores(const sdlf_evaluator *evaluator)
{
    return evaluator->batch * evaluator->rows * evaluator->data.class_count * (int64_t)sizeof(float);
}

void sdlf_evaluator_free(sdlf_evaluator *evaluator)
{
    if (evaluator == NULL) return;
    sdlf_loader_free(evaluator->loader);
    sdlf_plan_free(evaluator->plan);
    sdlf_heap_free(evaluator->samples);
    sdlf_heap_free(evaluator->scores);
    sdlf_heap_free(evaluator->view);
    sdlf_heap_free(evaluator->part);
    free(evaluator->targets);
    free(evaluator);
}

static sdlf_status prepare(sdlf_evaluator *evaluator, sdlf_model *model, const sdlf_plan_options *options)
{
    sdlf_plan_options inference = *options;
    inference.mode = SDLF_INFER;
    inference.batch = evaluator->batch;
    inference.communicator = NULL;
    sdlf_status status = sdlf_plan_create(&evaluator->plan, model, &inference);
    if (status == SDLF_OK)
        status = sdlf_loader_create(
            &evaluator->loader, &evaluator->data,
            &(sdlf_loader_options){.batch = evaluator->whole,
                                   .calculator = sdlf_classifier_uploads(&evaluator->classifier, evaluator->plan),
                                   .rank = evaluator->ranks != NULL ? evaluator->ranks->rank : 0,
                                   .ranks = evaluator->ranks != NULL ? evaluator->ranks->rank_count : 0});
    if (status != SDLF_OK) return status;
    evaluator->samples = sdlf_heap_allocate(bytes_of_samples(evaluator));
    evaluator->scores = sdlf_heap_allocate(bytes_of_scores(evaluator));
    evaluator->loss = sdlf_model_loss(model);
    evaluator->huber_delta = (double)sdlf_model_huber_delta(model);
    bool targets = sdlf_dataset_has_targets(&evaluator->data);
    if (targets) evaluator->targets = calloc((size_t)evaluator->data.class_count, sizeof *evaluator->targets);
    if (evaluator->samples == NULL || evaluator->scores == NULL || (targets && evaluator->targets == NULL))
        return sdlf_fail(SDLF_ERROR_MEMORY, "evaluation: no memory for batches of %lld", (long long)evaluator->batch);
    return SDLF_OK;
}

/* Chooses the batch size; a network with a fixed batch size gets that. */
static sdlf_status choose_batch(sdlf_evaluator *evaluator, const sdlf_model *model, int64_t wanted)
{
    sdlf_status status = sdlf_classifier_find(&evaluator->classifier, model, &evaluator->data);
    if (status != SDLF_OK) return status;
    if (evaluator->classifier.output == NULL)
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' has no output that classes can be read from", model->name);
    int64_t ranks = evaluator->ranks != NULL ? evaluator->ranks->rank_count : 1;
    int64_t count = evaluator->data.samples.shape.dim[0], most = (count + ranks - 1) / ranks;
    evaluator->batch = wanted < most ? wanted : most;
    if (evaluator->classifier.batch > 0) evaluator->batch = evaluator->classifier.batch;
    evaluator->whole = evaluator->batch * ranks < count ? evaluator->batch * ranks : count;
    return SDLF_OK;
}

sdlf_status sdlf_evaluator_create(sdlf_evaluator **evaluator, sdlf_model *model, const sdlf_dataset *dataset,
                                  const sdlf_plan_options *options)
{
    *evaluator = NULL;
    sdlf_evaluator *made = calloc(1, sizeof *made);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "evaluation: no memory");
    made->data = *dataset;
    sdlf_dataset_normalize_for(&made->data, model);
    made->ranks = options->communicator;
    int64_t positions = sdlf_dataset_positions(dataset);
    made->rows = positions > 0 ? positions : 1;
    made->sample_count = sdlf_shape_span(dataset->samples.shape, 1, dataset->samples.shape.rank);
    sdlf_status status = choose_batch(made, model, options->batch);
    if (status == SDLF_OK) status = prepare(made, model, options);
    if (status != SDLF_OK) {
        sdlf_evaluator_free(made);
        return status;
    }
    *evaluator = made;
    return SDLF_OK;
}

sdlf_status sdlf_evaluator_set_views(sdlf_evaluator *evaluator, sdlf_views views)
{
    sdlf_shape sample = sdlf_shape_without(evaluator->data.samples.shape, 0);
    bool pictures = sample.rank == 3 && sample.dim[1] >= 2 && sample.dim[2] >= 2;
    if (views != SDLF_VIEWS_ONE && sdlf_dataset_has_pixel_labels(&evaluator->data))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "evaluation: views are for samples of one label, not for pixels");
    if ((unsigned)views >= SDLF_VIEWS_COUNT || (views != SDLF_VIEWS_ONE && !pictures))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "evaluation: views %d: expected one of sdlf_views, and pictures of 2x2 or more, found %s",
                         (int)views, sdlf_shape_print(sample).text);
    evaluator->views = views;
    if (views == SDLF_VIEWS_ONE || evaluator->view != NULL) return SDLF_OK;
    evaluator->view = sdlf_heap_allocate(bytes_of_samples(evaluator));
    evaluator->part = sdlf_heap_allocate(bytes_of_scores(evaluator));
    if (evaluator->view != NULL && evaluator->part != NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "evaluation: no memory for views of %lld samples", (long long)evaluator->batch);
}

/* -log of the probability that the scores, `step` apart, assign to `label`. A probability of 0 counts as the smallest
 * float. */
static double loss_of(sdlf_scores kind, const float *score, int64_t step, int class_count, int32_t label)
{
    double own = (double)score[label * step];
    if (kind == SDLF_SCORES_PROBABILITIES) return -log(own < (double)FLT_MIN ? (double)FLT_MIN : own);
    if (kind == SDLF_SCORES_LOG_PROBABILITIES) return -own;
    double largest = (double)score[0], sum = 0;
    for (int index = 1; index < class_count; index++) largest = fmax(largest, (double)score[index * step]);
    for (int index = 0; index < class_count; index++) sum += exp((double)score[index * step] - largest);
    return largest + log(sum) - own;
}

/* The class with the largest score, the first among equals. */
static int predict(const float *score, int64_t step, int class_count)
{
    int best = 0;
    for (int index = 1; index < class_count; index++)
        if (score[index * step] > score[best * step]) best = index;
    return best;
}

static void count_batch(const sdlf_evaluator *evaluator, const sdlf_batch *batch, sdlf_evaluation *evaluation)
{
    const int32_t *labels = batch->labels.data;
    int class_count = evaluator->data.class_count;
    if (sdlf_dataset_has_targets(&evaluator->data)) {
        sdlf_evaluation_count_targets(evaluation, evaluator->scores, batch);
        return;
    }
    bool pixels = sdlf_dataset_has_pixel_labels(&evaluator->data); /* scores are (N,C,H,W) */
    int64_t rows = evaluator->rows, step = pixels ? rows : 1;
    for (int64_t n = 0; n < batch->count * rows; n++) {
        if (labels[n] < 0) continue;
        const float *score = evaluator->scores + (pixels ? n / rows * class_count * rows + n % rows : n * class_count);
        int predicted = predict(score, step, class_count);
        evaluation->loss += loss_of(evaluator->classifier.scores, score, step, class_count, labels[n]);
        evaluation->correct += predicted == labels[n];
        evaluation->samples++;
        if (evaluation->confusion != NULL) evaluation->confusion[(int64_t)labels[n] * class_count + predicted]++;
    }
}

/* Computes the network's scores of a batch. */
static sdlf_status score_batch(sdlf_evaluator *evaluator, const void *samples, float *scores)
{
    sdlf_status status = sdlf_plan_write_converted(evaluator->plan, evaluator->classifier.samples, samples,
                                                   SDLF_FLOAT32, bytes_of_samples(evaluator) / (int64_t)sizeof(float));
    if (status == SDLF_OK) status = sdlf_plan_forward(evaluator->plan);
    if (status != SDLF_OK) return status;
    return sdlf_plan_read(evaluator->plan, evaluator->classifier.output, scores, SDLF_FLOAT32,
                          bytes_of_scores(evaluator));
}

/* Computes the mean of the scores over the views. */
static sdlf_status score_augmented(sdlf_evaluator *evaluator, const void *samples)
{
    sdlf_shape sample = sdlf_shape_without(evaluator->data.samples.shape, 0);
    int64_t count = evaluator->batch * evaluator->data.class_count;
    memset(evaluator->scores, 0, (size_t)bytes_of_scores(evaluator));
    for (int v = 0; v < sample_view_count(evaluator->views); v++) {
        sample_view view = sample_view_at(evaluator->views, v);
        sample_view_make(evaluator->view, samples, evaluator->batch, sample, view);
        sdlf_status status = score_batch(evaluator, evaluator->view, evaluator->part);
        if (status != SDLF_OK) return status;
        for (int64_t i = 0; i < count; i++) evaluator->scores[i] += view.weight * evaluator->part[i];
    }
    return SDLF_OK;
}

static sdlf_status run_batch(sdlf_evaluator *evaluator, const sdlf_batch *batch)
{
    const void *samples = batch->samples.data;
    if (batch->count < evaluator->batch) {
        size_t filled = (size_t)(batch->count * evaluator->sample_count) * sizeof(float);
        memcpy(evaluator->samples, samples, filled);
        memset((char *)evaluator->samples + filled, 0, (size_t)bytes_of_samples(evaluator) - filled);
        samples = evaluator->samples;
    }
    return evaluator->views == SDLF_VIEWS_ONE ? score_batch(evaluator, samples, evaluator->scores)
                                              : score_augmented(evaluator, samples);
}

/* Every rank has its part of each batch; in the last one some ranks may have none, and process a sample that is not
 * counted. */
static int64_t count_part(const sdlf_evaluator *evaluator, int64_t done, int64_t given)
{
    int64_t left = evaluator->data.samples.shape.dim[0] - done;
    if (evaluator->ranks == NULL) return given;
    return sdlf_communicator_share(evaluator->ranks, left < evaluator->whole ? left : evaluator->whole);
}

static sdlf_status run_parts(sdlf_evaluator *evaluator, sdlf_evaluation *evaluation, sdlf_go_on *go_on, void *user)
{
    sdlf_status status = SDLF_OK;
    for (int64_t done = 0; status == SDLF_OK; done += evaluator->whole) {
        sdlf_batch batch;
        status = sdlf_loader_next(evaluator->loader, &batch);
        if (status != SDLF_OK || batch.count == 0) break;
        status = run_batch(evaluator, &batch);
        batch.count = count_part(evaluator, done, batch.count);
        if (status == SDLF_OK) count_batch(evaluator, &batch, evaluation);
        if (go_on != NULL && !go_on(user)) break;
    }
    return status;
}

sdlf_status sdlf_evaluator_run(sdlf_evaluator *evaluator, sdlf_evaluation *evaluation, sdlf_go_on *go_on, void *user)
{
    double start = sdlf_clock();
    int class_count = evaluator->data.class_count;
    *evaluation = (sdlf_evaluation){.class_count = class_count,
                                    .kind = evaluator->loss,
                                    .of_pixels = sdlf_dataset_has_pixel_labels(&evaluator->data),
                                    .huber_delta = evaluator->huber_delta,
                                    .confusion = evaluation->confusion,
                                    .targets = evaluator->targets};
    if (evaluation->targets != NULL) memset(evaluation->targets, 0, (size_t)class_count * sizeof *evaluation->targets);
    if (evaluation->confusion != NULL)
        memset(evaluation->confusion, 0, (size_t)class_count * (size_t)class_count * sizeof *evaluation->confusion);
    /* recompute what the plan derives from the parameters, such as folded batch normalisation */
    sdlf_status status = sdlf_plan_load_parameters(evaluator->plan);
    if (status == SDLF_OK) status = sdlf_loader_seek(evaluator->loader, 0, 0);
    if (status == SDLF_OK) status = run_parts(evaluator, evaluation, go_on, user);
    if (evaluator->ranks != NULL) status = sdlf_communicator_agree(evaluator->ranks, status);
    if (evaluator->ranks != NULL && status == SDLF_OK) status = sdlf_evaluation_sum(evaluation, evaluator->ranks);
    if (evaluation->samples > 0) evaluation->loss /= (double)evaluation->samples;
    evaluation->seconds = sdlf_clock() - start;
    return status;
}

int64_t sdlf_evaluator_memory(const sdlf_evaluator *evaluator)
{
    return sdlf_plan_memory(evaluator->plan).arena + sdlf_loader_memory(evaluator->loader) +
           bytes_of_samples(evaluator) + bytes_of_scores(evaluator);
}
