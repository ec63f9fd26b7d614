/* SPDX-License-Identifier: MIT */
/* TrivialAugment and RandAugment of pictures of bytes: see sdlf_auto_augment in <sdlf/dataset.h>. */
#ifndef SDLF_FRAMEWORK_AUTO_AUGMENT_H
#define SDLF_FRAMEWORK_AUTO_AUGMENT_H

#include <sdlf/dataset.h>

enum { SDLF_AUGMENT_OPERATIONS = 14 };

static inline bool sdlf_auto_augment_wanted(const sdlf_auto_augment *policy)
{
    return policy->trivial || policy->rand_augment > 0;
}

/* Are the members in their ranges, and are samples pictures of bytes where they must be? Fills the default in.
 * SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_auto_augment_complete(sdlf_auto_augment *policy, const sdlf_tensor *samples);

/* Change a picture (C,H,W) in place; `from` is scratch space of its size. */
void sdlf_auto_augment_picture(uint8_t *picture, uint8_t *from, sdlf_shape sample, const sdlf_auto_augment *policy,
                               uint64_t seed, int64_t image, int64_t epoch);

/* One of the operations, with m in [0, 1] and a sign, in the ranges of TrivialAugment (wide) or RandAugment. */
void sdlf_augment_apply(uint8_t *picture, uint8_t *from, sdlf_shape sample, int operation, float m, bool negative,
                        bool wide);

#endif
