/* SPDX-License-Identifier: MIT */
/* The default training options of a built-in network: sdlf_network_builtin_training. */
#ifndef SDLF_APPS_TRAIN_RECIPE_H
#define SDLF_APPS_TRAIN_RECIPE_H

#include "apps/train/session.h"

/* Once the session's options are complete: replace those that were not given by the network's own, unless training is
 * resumed or --optimizer was given, and describe them in session->own. In any case the settings afterwards hold the
 * effective values. Errors: options out of range, or in conflict with the network's own. */
sdlf_status recipe_apply(train_session *session);

#endif
