/* SPDX-License-Identifier: MIT */
/* next_batch: the indices, the labels, the learning rate and the number of the step that the cursor points at; advances
 * the cursor. */
#include "calculators/next_batch.h"
#include "calculators/reference/reference.h"

sdlf_status next_batch_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_next_batch_on_host(operation);
}
