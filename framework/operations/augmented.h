/* SPDX-License-Identifier: MIT */
/* Whether options of augmentation change an image at all, and whether they move its pixels. */
#ifndef SDLF_OPERATIONS_AUGMENTED_H
#define SDLF_OPERATIONS_AUGMENTED_H

#include <sdlf/operation.h>

static inline bool sdlf_augmentation_moves(const sdlf_augmentation *augment)
{
    return augment->flip || augment->flip_alternate || augment->crop != 0 || augment->shift != 0 ||
           augment->rotate != 0 || augment->scale != 0 || augment->elastic != 0 || augment->resized_crop != 0;
}

static inline bool sdlf_augmentation_wanted(const sdlf_augmentation *augment)
{
    return sdlf_augmentation_moves(augment) || augment->cutout != 0 || augment->brightness != 0 ||
           augment->contrast != 0 || augment->saturation != 0 || augment->hue != 0;
}

static inline bool sdlf_auto_augment_wanted(const sdlf_auto_augment *policy)
{
    return policy->trivial || policy->rand_augment > 0;
}

#endif
