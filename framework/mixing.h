/* SPDX-License-Identifier: MIT */
/* Mixing the samples of a batch in pairs: sdlf_mixing in <sdlf/dataset.h>. */
#ifndef SDLF_FRAMEWORK_MIXING_H
#define SDLF_FRAMEWORK_MIXING_H

#include <sdlf/dataset.h>

static inline bool sdlf_mixing_wanted(const sdlf_mixing *mixing)
{
    return mixing->mixup > 0 || mixing->cutmix > 0;
}

/* Checks that the values are in their ranges, and that samples of that shape (without the batch) are images where
 * required. Errors: SDLF_ERROR_ARGUMENT. */
sdlf_status sdlf_mixing_check(const sdlf_mixing *mixing, sdlf_shape sample);

/* How a sample is mixed: the fraction of its values that it keeps, or, if `cut`, the box that is replaced. */
typedef struct sdlf_mix {
    float share;
    bool cut;
    int64_t top, left, bottom, right; /* of the box; bottom and right are exclusive */
} sdlf_mix;
sdlf_mix sdlf_mix_of(const sdlf_mixing *mixing, uint64_t seed, int64_t image, int64_t epoch, sdlf_shape sample);

/* Mixes the batch's samples, which are those with these indices, and its labels. */
void sdlf_mix_batch(sdlf_batch *batch, const sdlf_mixing *mixing, uint64_t seed, const int32_t *images, int64_t epoch);

#endif
