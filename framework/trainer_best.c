/* SPDX-License-Identifier: MIT */
/* The best epoch of a training by its tests: how it is determined, when patience runs out, and the values that are kept
 * of it. */
#include <math.h>
#include <string.h>

#include "framework/heap.h"
#include "framework/model_internal.h"
#include "framework/trainer_internal.h"

enum { STATES = 3 };

/* Every tensor that a parameter may have, in a fixed order. */
static sdlf_tensor *tensor_at(sdlf_parameter *parameter, int which)
{
    return which == 0 ? &parameter->value : &parameter->state[which - 1];
}

/* Copies between the model and `values`, contiguously; with NULL only counts. Returns the bytes. */
static int64_t exchange(sdlf_model *model, char *values, bool to_model)
{
    int64_t bytes = 0;
    for (int i = 0; i < sdlf_model_parameter_count(model); i++) {
        for (int which = 0; which < 1 + STATES; which++) {
            const sdlf_tensor *tensor = tensor_at(sdlf_model_parameter(model, i), which);
            if (tensor->data == NULL) continue;
            size_t size = (size_t)sdlf_tensor_bytes(tensor);
            if (values != NULL && to_model) memcpy(tensor->data, values + bytes, size);
            if (values != NULL && !to_model) memcpy(values + bytes, tensor->data, size);
            bytes += (int64_t)size;
        }
    }
    return bytes;
}

sdlf_status sdlf_trainer_prepare_best(sdlf_trainer *trainer)
{
    trainer->best = (trainer_best){.loss = NAN, .accuracy = NAN};
    bool wanted = trainer->options.keep != SDLF_KEEP_LAST || trainer->options.patience > 0;
    if (!wanted) return SDLF_OK;
    if (trainer->test == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "trainer: %s needs a test set to compare epochs",
                         trainer->options.keep != SDLF_KEEP_LAST ? "keep" : "patience");
    if (trainer->options.keep != SDLF_KEEP_LAST) {
        trainer->best.bytes = exchange(trainer->model, NULL, false);
        trainer->best.values = sdlf_heap_allocate(trainer->best.bytes);
        if (trainer->best.values == NULL)
            return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for the parameters of the best epoch");
    }
    return SDLF_OK;
}

sdlf_status sdlf_trainer_begin_best(sdlf_trainer *trainer)
{
    bool wanted = trainer->options.keep != SDLF_KEEP_LAST || trainer->options.patience > 0;
    if (!wanted || !trainer->options.resume || trainer->epoch == 0 || trainer->epoch_step > 0) return SDLF_OK;
    /* the epoch that training resumes from is the best so far */
    sdlf_evaluation test = {.confusion = NULL};
    sdlf_status status = sdlf_evaluator_run(trainer->test, &test, NULL, NULL);
    return status == SDLF_OK ? sdlf_trainer_note_best(trainer, &test) : status;
}

void sdlf_trainer_release_best(sdlf_trainer *trainer)
{
    sdlf_heap_free(trainer->best.values);
    trainer->best.values = NULL;
}

static bool is_better(const sdlf_trainer *trainer, const sdlf_evaluation *test, double accuracy)
{
    const trainer_best *best = &trainer->best;
    if (!isfinite(test->loss)) return false;
    if (best->epoch == 0) return true;
    if (trainer->options.keep == SDLF_KEEP_BEST_LOSS || isnan(accuracy)) return test->loss < best->loss;
    return accuracy > best->accuracy || (accuracy == best->accuracy && test->loss < best->loss);
}

sdlf_status sdlf_trainer_note_best(sdlf_trainer *trainer, const sdlf_evaluation *test)
{
    trainer_best *best = &trainer->best;
    double accuracy = sdlf_evaluation_accuracy(test), is_new = is_better(trainer, test, accuracy);
    sdlf_communicator *ranks = trainer->options.communicator;
    if (ranks != NULL && best->epoch > 0) { /* rank 0 decides, since all ranks must continue alike */
        if (ranks->rank > 0) is_new = 0;
        sdlf_status status = sdlf_communicator_sum(ranks, &is_new, 1);
        if (status != SDLF_OK) return status;
    }
    best->is_new = is_new > 0;
    if (!best->is_new) return SDLF_OK;
    best->epoch = (int)trainer->epoch;
    best->loss = test->loss;
    best->accuracy = accuracy;
    best->state = *sdlf_model_training_state(trainer->model);
    if (best->values == NULL) return SDLF_OK;
    if (exchange(trainer->model, NULL, false) != best->bytes)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "trainer: the model's parameters are not those that the trainer was made with");
    exchange(trainer->model, best->values, false);
    return SDLF_OK;
}

bool sdlf_trainer_is_patient(const sdlf_trainer *trainer)
{
    int patience = trainer->options.patience;
    return patience == 0 || trainer->best.epoch == 0 || trainer->epoch - trainer->best.epoch < patience;
}

sdlf_status sdlf_trainer_take_best(sdlf_trainer *trainer)
{
    const trainer_best *best = &trainer->best;
    if (best->values == NULL || best->epoch == 0 || best->epoch == trainer->epoch) return SDLF_OK;
    exchange(trainer->model, best->values, true);
    *sdlf_model_training_state(trainer->model) = best->state;
    model_note_change(trainer->model);
    return sdlf_plan_load_parameters(trainer->full);
}

int sdlf_trainer_best_epoch(const sdlf_trainer *trainer, double *test_loss, double *test_accuracy)
{
    if (trainer == NULL) return 0;
    if (test_loss != NULL) *test_loss = trainer->best.loss;
    if (test_accuracy != NULL) *test_accuracy = trainer->best.accuracy;
    return trainer->best.epoch;
}
