/* SPDX-License-Identifier: MIT */
/* --freeze and --unfreeze: select by name the parameters that training does not change. */
#ifndef SDLF_APPS_TRAIN_FROZEN_H
#define SDLF_APPS_TRAIN_FROZEN_H

#include <sdlf/model.h>

/* Freeze or unfreeze the parameters of a comma-separated list; "encoder.*" matches a prefix, skipping parameters that
 * are never trained, and "trunk" all but the last layer's (sdlf_model_head). NULL: nothing to do. Errors:
 * SDLF_ERROR_ARGUMENT for a name without a match; the message begins with `option`. */
sdlf_status frozen_apply(sdlf_model *model, const char *list, bool frozen, const char *option);

#endif
