/* SPDX-License-Identifier: MIT */
/* Evaluator: everything that is needed to run a model over a data set any number of times, without allocation in
 * between (except for sums over ranks). */
#ifndef SDLF_FRAMEWORK_EVALUATOR_H
#define SDLF_FRAMEWORK_EVALUATOR_H

#include <sdlf/trainer.h>

typedef struct sdlf_evaluator sdlf_evaluator;

/* `options` sets calculators, placement and fusion; the mode is inference, and its batch is limited to the size of the
 * data set. With a communicator each rank has its part of the samples, in batches of that size, and all get the total
 * figures. Model, data set and calculators are borrowed; free with sdlf_evaluator_free (accepts NULL). Samples are
 * normalised as the model specifies, if it does, else as the data set does. Errors: shapes that disagree with the data,
 * a network without an output, and those of sdlf_plan_create and sdlf_loader_create. */
sdlf_status sdlf_evaluator_create(sdlf_evaluator **evaluator, sdlf_model *model, const sdlf_dataset *dataset,
                                  const sdlf_plan_options *options);
void sdlf_evaluator_free(sdlf_evaluator *evaluator);

/* Averages over these views of each sample from now on. Errors: SDLF_ERROR_ARGUMENT (samples that are not images),
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_evaluator_set_views(sdlf_evaluator *evaluator, sdlf_views views);

/* Classifies every sample with the model's current parameters. Fills all of `evaluation` but `confusion`, which points
 * to class_count * class_count counts to be overwritten, or is NULL; `targets` belong to the evaluator, and are valid
 * until it runs again. `go_on`: as in sdlf_evaluate_while. */
sdlf_status sdlf_evaluator_run(sdlf_evaluator *evaluator, sdlf_evaluation *evaluation, sdlf_go_on *go_on, void *user);

/* Adds a batch of float targets and of the network's predictions, both (count, class_count). */
void sdlf_evaluation_count_targets(sdlf_evaluation *evaluation, const float *values, const sdlf_batch *batch);

/* Replaces each rank's figures by the sums over all ranks; `loss` is a sum, too. */
sdlf_status sdlf_evaluation_sum(sdlf_evaluation *evaluation, sdlf_communicator *ranks);

/* The bytes that it holds: arena, loader, and the current batch. */
int64_t sdlf_evaluator_memory(const sdlf_evaluator *evaluator);

#endif
