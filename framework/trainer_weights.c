/* What samples of each class count in the loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/trainer_internal.h"

/* (samples) / (classes times samples of the class); a class without samples has no use for its weight. */
static void balance(float *weights, const sdlf_dataset *train)
{
    int64_t count = train->samples.shape.dim[0];
    const int32_t *label = train->labels.data;
    for (int c = 0; c < train->class_count; c++) weights[c] = 0;
    for (int64_t n = 0; n < count; n++) weights[label[n]]++; /* exact to 2^24, and near enough beyond */
    for (int c = 0; c < train->class_count; c++)
        weights[c] = weights[c] > 0 ? (float)((double)count / (train->class_count * (double)weights[c])) : 1;
}

/* "1,2,0.5", as many numbers above 0 as there are classes. */
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
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "trainer: class_weights '%s': expected balanced, or %d numbers above 0 with commas between, found "
                     "%d",
                     text, classes, count);
}

sdlf_status sdlf_trainer_prepare_weights(sdlf_trainer *trainer)
{
    const char *text = trainer->options.class_weights;
    int classes = trainer->train.class_count;
    if (text[0] == '\0') return SDLF_OK;
    if (trainer->classifier.labels != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: class_weights are for networks without a loss layer of their own; '%s' has one",
                         sdlf_model_name(trainer->model));
    trainer->class_weights = malloc((size_t)classes * sizeof *trainer->class_weights);
    trainer->weights = malloc((size_t)trainer->batch * sizeof *trainer->weights);
    if (trainer->class_weights == NULL || trainer->weights == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the weights of %d classes", classes);
    if (strcmp(text, "balanced") != 0) return read_list(trainer->class_weights, text, classes);
    balance(trainer->class_weights, &trainer->train);
    return SDLF_OK;
}

void sdlf_trainer_release_weights(sdlf_trainer *trainer)
{
    free(trainer->class_weights);
    free(trainer->weights);
}

sdlf_status sdlf_trainer_write_weights(sdlf_trainer *trainer, sdlf_plan *plan, const sdlf_batch *batch)
{
    const int32_t *label = batch->labels.data;
    double sum = 0;
    for (int64_t n = 0; n < batch->count; n++) sum += (double)trainer->class_weights[label[n]];
    for (int64_t n = 0; n < batch->count; n++)
        trainer->weights[n] = (float)((double)trainer->class_weights[label[n]] / sum);
    return sdlf_plan_write(plan, "weights", trainer->weights, SDLF_FLOAT32,
                           batch->count * (int64_t)sizeof *trainer->weights);
}
