/* SPDX-License-Identifier: MIT */
/* The model of a training run. */
#ifndef SDLF_APPS_TRAIN_SESSION_MODEL_H
#define SDLF_APPS_TRAIN_SESSION_MODEL_H

#include "apps/train/session.h"

/* True if the data's labels are floats. */
bool session_has_targets(const train_session *session);

/* True if testing uses another data set than training, so that all samples of each are used. */
bool session_tests_others(const train_session *session);

/* Open the model that `set` names, with --from replacing its head for the data's classes, and load a
 * checkpoint's options.
 * Errors: those of opening; SDLF_ERROR_ARGUMENT if options contradict the file. */
sdlf_status session_open_model(train_session *session);

#endif
