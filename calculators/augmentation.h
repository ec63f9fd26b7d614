/* SPDX-License-Identifier: MIT */
/* The arithmetic of gather_batch, for calculators: see framework/operations/warp.h and auto_augment.h. */
#ifndef SDLF_CALCULATORS_AUGMENTATION_H
#define SDLF_CALCULATORS_AUGMENTATION_H

#include "framework/operations/auto_augment.h"
#include "framework/operations/changed_pictures.h"
#include "framework/operations/warp.h"

#endif
