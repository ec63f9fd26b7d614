/* SPDX-License-Identifier: MIT */
/* Evaluating a model on a data set once. */
#include <sdlf/trainer.h>

#include <stdlib.h>
#include <string.h>

#include "framework/classifier.h"
#include "framework/evaluator.h"
#include "framework/model_internal.h"
#include "framework/require.h"

enum { DEFAULT_BATCH = 128 };

/* Prepares everything except memory for the figures. */
static sdlf_status prepare(sdlf_evaluator **evaluator, sdlf_model *model, const sdlf_dataset *dataset,
                           sdlf_calculator *calculator, const sdlf_evaluation_options *wanted)
{
    int64_t batch = wanted->batch;
    if (batch < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "evaluation: expected a batch of at least 1, found %lld",
                         (long long)batch);
    bool take = model->source.file != NULL; /* values left in a file; the plan reports any other error */
    sdlf_status status = take ? SDLF_OK : sdlf_model_status(model);
    if (status == SDLF_OK && !model->built) status = sdlf_model_build(model, 1);
    if (status != SDLF_OK) return status;
    sdlf_plan_options options = {.batch = batch == 0 ? DEFAULT_BATCH : batch,
                                 .forward = calculator,
                                 .consume_parameters = take,
                                 .communicator = wanted->communicator};
    status = sdlf_evaluator_create(evaluator, model, dataset, &options);
    return status == SDLF_OK ? sdlf_evaluator_set_views(*evaluator, wanted->views) : status;
}

sdlf_status sdlf_evaluate_with(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                               sdlf_calculator *calculator, const sdlf_evaluation_options *wanted)
{
    static const sdlf_evaluation_options none = {.batch = 0};
    if (wanted == NULL) wanted = &none;
    SDLF_REQUIRE(evaluation);
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(dataset);
    SDLF_REQUIRE(calculator);
    sdlf_evaluator *evaluator = NULL;
    *evaluation = (sdlf_evaluation){.class_count = 0};
    sdlf_status status = prepare(&evaluator, model, dataset, calculator, wanted);
    size_t classes = (size_t)dataset->class_count;
    bool targets = sdlf_dataset_has_targets(dataset);
    sdlf_target_figures *figures = targets ? calloc(classes, sizeof *figures) : NULL;
    evaluation->confusion = targets ? NULL : calloc(classes * classes, sizeof *evaluation->confusion);
    if (status == SDLF_OK && (targets ? figures == NULL : evaluation->confusion == NULL))
        status = sdlf_fail(SDLF_ERROR_MEMORY, "evaluation: no memory to count %zu classes", classes);
    if (wanted->communicator != NULL) status = sdlf_communicator_agree(wanted->communicator, status);
    if (status == SDLF_OK) status = sdlf_evaluator_run(evaluator, evaluation, wanted->go_on, wanted->user);
    if (targets && evaluation->targets != NULL) memcpy(figures, evaluation->targets, classes * sizeof *figures);
    evaluation->targets = figures;
    if (status != SDLF_OK) sdlf_evaluation_release(evaluation);
    sdlf_evaluator_free(evaluator);
    return status;
}

sdlf_status sdlf_evaluate_while(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                                sdlf_calculator *calculator, int64_t batch, sdlf_go_on *go_on, void *user)
{
    SDLF_REQUIRE(evaluation);
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(dataset);
    SDLF_REQUIRE(calculator);
    return sdlf_evaluate_with(evaluation, model, dataset, calculator,
                              &(sdlf_evaluation_options){.batch = batch, .go_on = go_on, .user = user});
}

sdlf_status sdlf_evaluate(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                          sdlf_calculator *calculator, int64_t batch)
{
    SDLF_REQUIRE(evaluation);
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(dataset);
    SDLF_REQUIRE(calculator);
    return sdlf_evaluate_while(evaluation, model, dataset, calculator, batch, NULL, NULL);
}

void sdlf_evaluation_release(sdlf_evaluation *evaluation)
{
    if (evaluation == NULL) return;
    free(evaluation->confusion);
    free(evaluation->targets);
    *evaluation = (sdlf_evaluation){.class_count = 0};
}
