/* SPDX-License-Identifier: MIT */
/* --freeze and --unfreeze: parameters that training does not change, by name. */
#ifndef SDLF_APPS_TRAIN_FROZEN_H
#define SDLF_APPS_TRAIN_FROZEN_H

#include <sdlf/model.h>

/* Freeze (or not) the parameters of a comma-separated list; "encoder.*" are all whose names begin so, which passes over
 * those that nothing trains, and "trunk" all but the last layer's (sdlf_model_head). NULL: nothing to do. Errors:
 * SDLF_ERROR_ARGUMENT for a name that fits none, after `option`. */
sdlf_status frozen_apply(sdlf_model *model, const char *list, bool frozen, const char *option);

#endif
