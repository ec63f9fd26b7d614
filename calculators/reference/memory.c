/* SPDX-License-Identifier: MIT */
/* fill, copy: setting and moving elements, with conversion between any two dtypes. */
#include "calculators/reference/reference.h"

#include <string.h>

/* y[e] = value */
sdlf_status fill_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    size_t size = sdlf_dtype_size(y->dtype);
    int64_t count = sdlf_tensor_count(y);
    unsigned char element[8];
    sdlf_convert(y->dtype, element, SDLF_FLOAT64, &operation->fill.value, 1);
    for (int64_t e = 0; e < count; e++) memcpy((char *)y->data + (size_t)e * size, element, size);
    return SDLF_OK;
}

/* y[e] = x[e], for any strides and dtypes */
sdlf_status copy_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    element_iterator from = first_element(x), to = first_element(y);
    for (int64_t e = sdlf_tensor_count(y); e > 0; e--, next_element(&from), next_element(&to))
        sdlf_convert(y->dtype, to.address, x->dtype, from.address, 1);
    return SDLF_OK;
}
