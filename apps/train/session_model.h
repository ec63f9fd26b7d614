/* SPDX-License-Identifier: MIT */
/* The model of a training run. */
#ifndef SDLF_APPS_TRAIN_SESSION_MODEL_H
#define SDLF_APPS_TRAIN_SESSION_MODEL_H

#include "apps/train/session.h"

/* Are the labels of the data floats? */
bool session_has_targets(const train_session *session);

/* Is another set than the one that is trained on for testing, so that all samples of each count? */
bool session_tests_others(const train_session *session);

/* Open the model that `set` names, with --from a head for the data's classes, and take the options that a checkpoint
 * holds.
 * Errors: what opening says; SDLF_ERROR_ARGUMENT where options contradict the file. */
sdlf_status session_open_model(train_session *session);

#endif
