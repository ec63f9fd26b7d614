/* SPDX-License-Identifier: MIT */
/* Checks of the options of TrivialAugment and RandAugment: see sdlf_auto_augment in <sdlf/operation.h>. */
#ifndef SDLF_FRAMEWORK_AUTO_AUGMENT_H
#define SDLF_FRAMEWORK_AUTO_AUGMENT_H

#include <sdlf/operation.h>

/* Checks that the members are in their ranges and that samples are uint8 images where required. Fills in the default.
 * Errors: SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_auto_augment_complete(sdlf_auto_augment *policy, const sdlf_tensor *samples);

#endif
