/* SPDX-License-Identifier: MIT */
/* Gradients of a network in training, for histograms: of the mean loss over one batch, the first samples of its data
 * without augmentation, with the network in eval mode (running statistics in batch normalisation, no dropout) and
 * without class weights. Training is not affected: its next step computes the same. */
#ifndef SDLF_APPS_TRAIN_GRADIENTS_H
#define SDLF_APPS_TRAIN_GRADIENTS_H

#include <sdlf/trainer.h>

#include "apps/tensorboard/events.h"

typedef struct training_gradients training_gradients;

/* Create a separate plan on that calculator, with the batch size of `options`. Model and calculator are borrowed for its
 * life, `train` until this returns. Errors: those of sdlf_plan_create; SDLF_ERROR_UNSUPPORTED if the network has more
 * inputs than samples and labels. After an error there is nothing to free. */
sdlf_status training_gradients_create(training_gradients **gradients, sdlf_model *model, const sdlf_dataset *train,
                                      const sdlf_trainer_options *options, sdlf_calculator *calculator);
void training_gradients_free(training_gradients *gradients); /* accepts NULL */

/* Write a histogram of each trained parameter's gradient at the model's current values: "gradients/conv2d.weight". */
sdlf_status training_gradients_write(training_gradients *gradients, event_file *file, int64_t step);

#endif
