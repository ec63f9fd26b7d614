/* SPDX-License-Identifier: MIT */
/* Checks of the options of TrivialAugment and RandAugment. The contract is at sdlf_auto_augment in <sdlf/operation.h>;
 * framework/operations/auto_augment.h changes the images. */
#include "framework/auto_augment.h"

#include "framework/operations/augmented.h"

sdlf_status sdlf_auto_augment_complete(sdlf_auto_augment *policy, const sdlf_tensor *samples)
{
    const char *name = policy->trivial ? "TrivialAugment" : "RandAugment";
    if (policy->rand_magnitude == 0) policy->rand_magnitude = 9;
    if (policy->rand_augment < 0 || policy->rand_augment > 8 || policy->rand_magnitude < 0 ||
        policy->rand_magnitude > 30)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "RandAugment: expected 0 to 8 operations and a magnitude of 1 to 30, found %d and %d",
                         policy->rand_augment, policy->rand_magnitude);
    if (policy->trivial && policy->rand_augment > 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "TrivialAugment or RandAugment, not both");
    if (!sdlf_auto_augment_wanted(policy) || (samples->shape.rank == 4 && samples->dtype == SDLF_UINT8)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s is for pictures CxHxW of bytes, but samples are %s %s", name,
                     sdlf_dtype_name(samples->dtype), sdlf_shape_print(sdlf_shape_without(samples->shape, 0)).text);
}
