/* SPDX-License-Identifier: MIT */
/* The geometry of gather_batch, for calculators: see framework/operations/warp.h. */
#ifndef SDLF_CALCULATORS_AUGMENTATION_H
#define SDLF_CALCULATORS_AUGMENTATION_H

#include "framework/operations/warp.h"

#endif
