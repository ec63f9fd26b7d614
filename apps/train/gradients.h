/* SPDX-License-Identifier: MIT */
/* Gradients of a network that is being trained, for histograms: of the mean loss over the first samples of its data, a
 * batch of them as they are, by the network as it answers (batch normalisation by its running statistics, no dropout),
 * without class weights. Training is not disturbed: its next step computes the same. */
#ifndef SDLF_APPS_TRAIN_GRADIENTS_H
#define SDLF_APPS_TRAIN_GRADIENTS_H

#include <sdlf/trainer.h>

#include "apps/tensorboard/events.h"

typedef struct training_gradients training_gradients;

/* A plan of its own on that calculator, with a batch of as many samples as `options` trains with. Model and calculator
 * are borrowed for its life, `train` until this returns. Errors: those of sdlf_plan_create; SDLF_ERROR_UNSUPPORTED where
 * the network has more inputs than samples and labels. There is nothing to free then. */
sdlf_status training_gradients_create(training_gradients **gradients, sdlf_model *model, const sdlf_dataset *train,
                                      const sdlf_trainer_options *options, sdlf_calculator *calculator);
void training_gradients_free(training_gradients *gradients); /* accepts NULL */

/* A histogram of each trained parameter's gradient, by the model's parameters as they are: "gradients/conv2d.weight". */
sdlf_status training_gradients_write(training_gradients *gradients, event_file *file, int64_t step);

#endif
