/* SPDX-License-Identifier: MIT */
/* shuffle: 0 .. M - 1 in the order of their random keys. */
#include "calculators/shuffle.h"
#include "calculators/reference/reference.h"

sdlf_status shuffle_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_shuffle_on_host(operation);
}
