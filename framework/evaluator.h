/* SPDX-License-Identifier: MIT */
/* Evaluator: everything prepared to run a model over a data set as often as wanted, with no allocation in between (but
 * of what ranks add up). */
#ifndef SDLF_FRAMEWORK_EVALUATOR_H
#define SDLF_FRAMEWORK_EVALUATOR_H

#include <sdlf/trainer.h>

typedef struct sdlf_evaluator sdlf_evaluator;

/* `options` says calculators, placement and fusion; mode is inference, and its batch is cut to the size of the data
 * set. With a communicator each rank has its part of the samples, in batches of that size, and all have the figures of
 * all. Model, data set and calculators are borrowed; free with sdlf_evaluator_free (accepts NULL). Samples are
 * normalised as the model's normalisation says where it is known, else as the data set's does. Errors: shapes that
 * disagree with the data, a network with no output, and those of sdlf_plan_create and sdlf_loader_create. */
sdlf_status sdlf_evaluator_create(sdlf_evaluator **evaluator, sdlf_model *model, const sdlf_dataset *dataset,
                                  const sdlf_plan_options *options);
void sdlf_evaluator_free(sdlf_evaluator *evaluator);

/* Average over these views of each sample from now on. Errors: SDLF_ERROR_ARGUMENT (samples that are no pictures),
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_evaluator_set_views(sdlf_evaluator *evaluator, sdlf_views views);

/* Classify every sample with the model's present parameters. Fills all of `evaluation` but `confusion`, which points to
 * class_count * class_count counts to be overwritten, or is NULL; `targets` become the evaluator's, until it runs
 * again. `go_on`: as of sdlf_evaluate_while. */
sdlf_status sdlf_evaluator_run(sdlf_evaluator *evaluator, sdlf_evaluation *evaluation, sdlf_go_on *go_on, void *user);

/* Add a batch of float targets and of what the network says, both (count, class_count). */
void sdlf_evaluation_count_targets(sdlf_evaluation *evaluation, const float *values, const sdlf_batch *batch);

/* Sums over all ranks become each rank's figures; `loss` is a sum, too. */
sdlf_status sdlf_evaluation_sum(sdlf_evaluation *evaluation, sdlf_communicator *ranks);

/* Bytes that it holds: arena, loader, and the batch on its way. */
int64_t sdlf_evaluator_memory(const sdlf_evaluator *evaluator);

#endif
