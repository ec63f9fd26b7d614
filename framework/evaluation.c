/* Running a model over a data set once. */
#include <sdlf/trainer.h>

#include <stdlib.h>
#include <string.h>

#include "framework/classifier.h"
#include "framework/evaluator.h"
#include "framework/model_internal.h"
#include "framework/require.h"

enum { DEFAULT_BATCH = 128 };

sdlf_status sdlf_evaluate_with(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                               sdlf_calculator *calculator, const sdlf_evaluation_options *wanted)
{
    static const sdlf_evaluation_options none = {.batch = 0};
    if (wanted == NULL) wanted = &none;
    int64_t batch = wanted->batch;
    SDLF_REQUIRE(evaluation);
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(dataset);
    SDLF_REQUIRE(calculator);
    *evaluation = (sdlf_evaluation){.class_count = 0};
    if (batch < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "evaluation: expected a batch of at least 1, found %lld",
                         (long long)batch);
    bool take = model->source.file != NULL; /* values that have been left in a file: the plan says what else is wrong */
    sdlf_status status = take ? SDLF_OK : sdlf_model_status(model);
    if (status == SDLF_OK && !model->built) status = sdlf_model_build(model, 1);
    if (status != SDLF_OK) return status;
    sdlf_evaluator *evaluator = NULL;
    sdlf_plan_options options = {
        .batch = batch == 0 ? DEFAULT_BATCH : batch, .forward = calculator, .take_parameters = take};
    status = sdlf_evaluator_create(&evaluator, model, dataset, &options);
    if (status == SDLF_OK) status = sdlf_evaluator_set_views(evaluator, wanted->views);
    if (status != SDLF_OK) {
        sdlf_evaluator_free(evaluator);
        return status;
    }
    size_t classes = (size_t)dataset->class_count;
    bool targets = sdlf_dataset_has_targets(dataset);
    sdlf_target_figures *figures = targets ? calloc(classes, sizeof *figures) : NULL;
    evaluation->confusion = targets ? NULL : calloc(classes * classes, sizeof *evaluation->confusion);
    if (targets ? figures == NULL : evaluation->confusion == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "evaluation: no memory to count %zu classes", classes);
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
