/* SPDX-License-Identifier: MIT */
/* add: y = act(a + b). */
#include "calculators/reference/reference.h"

sdlf_status add_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1], *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        put(y, e, activate_reference(&operation->add.activation, get(a, e) + get(b, e)));
    }
    return SDLF_OK;
}
