/* SPDX-License-Identifier: MIT */
/* What TrivialAugment and RandAugment may be asked for: see sdlf_auto_augment in <sdlf/operation.h>. */
#ifndef SDLF_FRAMEWORK_AUTO_AUGMENT_H
#define SDLF_FRAMEWORK_AUTO_AUGMENT_H

#include <sdlf/operation.h>

/* Are the members in their ranges, and are samples pictures of bytes where they must be? Fills the default in.
 * SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_auto_augment_complete(sdlf_auto_augment *policy, const sdlf_tensor *samples);

#endif
