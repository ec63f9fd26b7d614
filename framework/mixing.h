/* SPDX-License-Identifier: MIT */
/* Mixing the samples of a batch in pairs: sdlf_mixing in <sdlf/dataset.h>. */
#ifndef SDLF_FRAMEWORK_MIXING_H
#define SDLF_FRAMEWORK_MIXING_H

#include <sdlf/dataset.h>

static inline bool sdlf_mixing_wanted(const sdlf_mixing *mixing)
{
    return mixing->mixup > 0 || mixing->cutmix > 0;
}

/* Are the numbers in their ranges, and are samples of that shape (without the batch) pictures where they must be?
 * SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_mixing_check(const sdlf_mixing *mixing, sdlf_shape sample);

/* How a sample is mixed: it keeps `share` of its values, or all of its pixels but those of a box. */
typedef struct sdlf_mix {
    float share;
    bool cut;
    int64_t top, left, bottom, right; /* of the box, the latter two behind it */
} sdlf_mix;
sdlf_mix sdlf_mix_of(const sdlf_mixing *mixing, uint64_t seed, int64_t image, int64_t epoch, sdlf_shape sample);

/* Mix the batch's samples, made of those of these numbers, and its labels. */
void sdlf_mix_batch(sdlf_batch *batch, const sdlf_mixing *mixing, uint64_t seed, const int32_t *images, int64_t epoch);

#endif
