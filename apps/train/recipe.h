/* SPDX-License-Identifier: MIT */
/* How a built-in network is trained unless the user says otherwise: sdlf_network_builtin_training. */
#ifndef SDLF_APPS_TRAIN_RECIPE_H
#define SDLF_APPS_TRAIN_RECIPE_H

#include "apps/train/session.h"

/* With the session's options complete: take the network's own in place of those that were not given, unless the
 * training is gone on with or --optimizer was given, and describe them in session->own. In any case the settings say
 * then what is trained with. Errors: options out of range, or without a meaning beside the network's own. */
sdlf_status recipe_apply(train_session *session);

#endif
