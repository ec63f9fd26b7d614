/* SPDX-License-Identifier: MIT */
/* Weights of samples in the loss: by class, and by their share if samples are mixed. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "framework/mixing.h"
#include "framework/parallel.h"
#include "framework/saved_error.h"
#include "framework/trainer_internal.h"

/* The number of labels of each class. */
typedef struct label_counts {
    const sdlf_dataset *train;
    int64_t rows;         /* labels per sample */
    pthread_mutex_t lock; /* guards the members below: the first failure, in sample order */
    int64_t *count, all, failed;
    sdlf_saved_error error;
} label_counts;

/* Labels that are not in memory are read by several threads at once. */
static void count_sample(void *context, int64_t n)
{
    label_counts *c = context;
    bool held = c->train->labels.data != NULL;
    int32_t *read = held ? NULL : malloc((size_t)c->rows * sizeof *read);
    const int32_t *label = held ? (const int32_t *)c->train->labels.data + n * c->rows : read;
    sdlf_status status = held           ? SDLF_OK
                         : read != NULL ? sdlf_dataset_read_labels(c->train, n, read)
                                        : sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for labels");
    pthread_mutex_lock(&c->lock);
    for (int64_t i = 0; status == SDLF_OK && i < c->rows; i++)
        if (label[i] >= 0) c->count[label[i]]++, c->all++; /* those that are not ignored */
    if (status != SDLF_OK && (c->error.status == SDLF_OK || n < c->failed)) {
        c->failed = n;
        sdlf_save_error(&c->error, status);
    }
    pthread_mutex_unlock(&c->lock);
    free(read);
}

/* (samples) / (classes times samples of the class); a class without samples does not need a weight. */
static sdlf_status balance(float *weights, const sdlf_dataset *train)
{
    int64_t samples = train->labels.shape.dim[0];
    int classes = train->class_count;
    label_counts c = {.train = train,
                      .rows = sdlf_tensor_count(&train->labels) / samples,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .count = calloc((size_t)classes, sizeof *c.count)};
    if (c.count == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for labels");
    bool held = train->labels.data != NULL;
    parallel_for(samples, held || train->readers < 1 ? 1 : train->readers, count_sample, &c);
    pthread_mutex_destroy(&c.lock);
    for (int k = 0; c.error.status == SDLF_OK && k < classes; k++)
        weights[k] = c.count[k] > 0 ? (float)((double)c.all / (classes * (double)c.count[k])) : 1;
    free(c.count);
    return sdlf_restore_error(&c.error);
}

/* "1,2,0.5": as many numbers above 0 as there are classes. */
static sdlf_status read_list(float *weights, const char *text, int classes)
{
    const char *at = text;
    int count = 0;
    for (char *end; count < classes; count++, at = end + 1) {
        weights[count] = strtof(at, &end);
        bool good = end != at && isfinite(weights[count]) && weights[count] > 0;
        if (!good || *end != (count + 1 < classes ? ',' : '\0')) break;
    }
    if (count == classes) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_ARGUMENT,
        "trainer: class_weights '%s': expected balanced, or %d numbers above 0 separated by commas, one for each class "
        "of the data, found %d",
        text, classes, count);
}

/* True if steps split their loss between the labels of mixed samples. */
static bool mixes(const sdlf_trainer *trainer)
{
    return sdlf_mixing_wanted(&trainer->options.mixing) && !sdlf_dataset_has_targets(&trainer->train);
}

/* For this rank's part of a batch, twice. */
static int64_t bytes_of_weights(const sdlf_trainer *trainer)
{
    bool pixels = sdlf_dataset_has_pixel_labels(&trainer->train);
    int64_t rows = pixels ? sdlf_dataset_positions(&trainer->train) : 1;
    int ranks = trainer->options.communicator != NULL ? trainer->options.communicator->rank_count : 1;
    return 2 * ((trainer->batch - 1) / ranks + 1) * rows * (int64_t)sizeof *trainer->weights;
}

sdlf_status sdlf_trainer_prepare_weights(sdlf_trainer *trainer)
{
    const char *text = trainer->options.class_weights;
    int classes = trainer->train.class_count;
    trainer->mixed = mixes(trainer);
    bool pixels = sdlf_dataset_has_pixel_labels(&trainer->train); /* some of which are ignored */
    if (text[0] == '\0' && !trainer->mixed && !pixels) return SDLF_OK;
    if (sdlf_dataset_positions(&trainer->train) > 0 && (!pixels || trainer->mixed))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: class_weights, mixup and cutmix are for samples of one label, and %s has %lld of a "
                         "sample",
                         sdlf_dataset_title(&trainer->train), (long long)sdlf_dataset_positions(&trainer->train));
    if (trainer->classifier.labels != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: %s for networks without a loss layer of their own; '%s' has one",
                         text[0] != '\0'  ? "class_weights are"
                         : trainer->mixed ? "mixup and cutmix of classes are"
                                          : "labels of pixels are",
                         sdlf_model_name(trainer->model));
    trainer->class_weights = malloc((size_t)classes * sizeof *trainer->class_weights);
    trainer->weights = malloc((size_t)bytes_of_weights(trainer));
    if (pixels) trainer->test_confusion = calloc((size_t)classes * (size_t)classes, sizeof *trainer->test_confusion);
    if (trainer->class_weights == NULL || trainer->weights == NULL || (pixels && trainer->test_confusion == NULL))
        return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the weights of %d classes", classes);
    for (int c = 0; c < classes; c++) trainer->class_weights[c] = 1;
    if (text[0] == '\0') return SDLF_OK;
    if (strcmp(text, "balanced") != 0) return read_list(trainer->class_weights, text, classes);
    return balance(trainer->class_weights, &trainer->train);
}

void sdlf_trainer_pin_weights(sdlf_trainer *trainer)
{
    sdlf_calculator *sender = trainer->sender;
    void *memory = NULL;
    if (trainer->weights == NULL) return;
    if (sender->type->queues->allocate_host(sender, bytes_of_weights(trainer), &memory) != SDLF_OK) return;
    free(trainer->weights);
    trainer->weights = memory;
    trainer->weights_pinned = true;
}

void sdlf_trainer_release_weights(sdlf_trainer *trainer)
{
    free(trainer->class_weights);
    if (trainer->weights_pinned) {
        trainer->sender->type->synchronize(trainer->sender); /* after a failure something may still be queued */
        trainer->sender->type->queues->deallocate_host(trainer->sender, trainer->weights);
        trainer->weights = NULL;
    }
    free(trainer->weights);
    free(trainer->test_confusion);
}

static sdlf_status write(sdlf_plan *plan, const char *input, const float *weights, int64_t count)
{
    return sdlf_plan_write(plan, input, weights, SDLF_FLOAT32, count * (int64_t)sizeof *weights);
}

sdlf_status sdlf_trainer_write_weights(sdlf_trainer *trainer, sdlf_plan *plan, const sdlf_batch *batch)
{
    const int32_t *label = batch->labels.data, *second = batch->second_labels.data;
    const float *share = batch->shares.data, *of = trainer->class_weights;
    int64_t count = sdlf_tensor_count(&batch->labels);
    float *own = trainer->weights, *other = own + count;
    double sum = 0;
    for (int64_t n = 0; n < count; n++) {
        if (label[n] < 0)
            own[n] = 0; /* an ignored pixel */
        else
            own[n] = trainer->mixed ? share[n] * of[label[n]] : of[label[n]];
        other[n] = trainer->mixed ? (1 - share[n]) * of[second[n]] : 0;
        sum += (double)own[n] + (double)other[n];
    }
    sdlf_status status = SDLF_OK;
    if (plan == trainer->tail && trainer->tail_share == 0 &&
        trainer->options.communicator != NULL) { /* a sample of weight 0 */
        memset(own, 0, 2 * (size_t)count * sizeof *own);
        sum = 0;
    }
    if (trainer->options.communicator != NULL) status = sdlf_communicator_sum(trainer->options.communicator, &sum, 1);
    if (status != SDLF_OK) return status;
    for (int64_t n = 0; n < 2 * count; n++) own[n] = sum > 0 ? (float)((double)own[n] / sum) : 0;
    status = write(plan, "weights", own, count);
    if (status != SDLF_OK || !trainer->mixed) return status;
    status = write(plan, "second_weights", other, count);
    if (status != SDLF_OK) return status;
    return sdlf_plan_write(plan, "second_labels", second, SDLF_INT32, sdlf_tensor_bytes(&batch->second_labels));
}
