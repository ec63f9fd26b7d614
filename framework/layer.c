/* SPDX-License-Identifier: MIT */
/* Functions with which a layer's `infer` fills its signature. */
#include <sdlf/layer.h>

#include "framework/require.h"

/* Checks that one more of `maximum` is allowed, and that its shape fits in memory. */
static sdlf_status check(const char *what, int count, int maximum, sdlf_dtype dtype, sdlf_shape shape)
{
    int64_t elements = sdlf_shape_count(shape), size = (int64_t)sdlf_dtype_size(dtype);
    if (count >= maximum)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s is one more than the %d that a layer can have", what, maximum);
    if (size == 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s has no element type", what);
    for (int axis = 0; axis < shape.rank; axis++)
        if (shape.dim[axis] < 1)
            return sdlf_fail(SDLF_ERROR_SHAPE, "%s would have the shape %s, with no elements", what,
                             sdlf_shape_print(shape).text);
    if (elements < 0 || elements > INT64_MAX / 64 / size)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s would have the shape %s, more elements than can be counted", what,
                         sdlf_shape_print(shape).text);
    return SDLF_OK;
}

sdlf_status sdlf_signature_add_output(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape)
{
    SDLF_REQUIRE(signature);
    sdlf_status status = check("its output", signature->output_count, SDLF_MAX_LAYER_OUTPUTS, dtype, shape);
    if (status != SDLF_OK) return status;
    int index = signature->output_count++;
    signature->output_dtype[index] = dtype;
    signature->output_shape[index] = shape;
    return SDLF_OK;
}

sdlf_status sdlf_signature_add_parameter(sdlf_signature *signature, sdlf_parameter_spec parameter)
{
    SDLF_REQUIRE(signature);
    sdlf_status status =
        check(parameter.name, signature->parameter_count, SDLF_MAX_LAYER_PARAMETERS, SDLF_FLOAT64, parameter.shape);
    bool filters = parameter.initializer == SDLF_INIT_IDENTITY || parameter.initializer == SDLF_INIT_WHITENING;
    if (status == SDLF_OK && filters && parameter.shape.rank != 4)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT, "initializer %s of %s: expected the weights (K,C,R,S) of a convolution, found %s",
            sdlf_initializer_names[parameter.initializer], parameter.name, sdlf_shape_print(parameter.shape).text);
    if (status == SDLF_OK) signature->parameter[signature->parameter_count++] = parameter;
    return status;
}

sdlf_status sdlf_signature_add_saved(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape)
{
    SDLF_REQUIRE(signature);
    sdlf_status status =
        check("what it keeps for the backward pass", signature->saved_count, SDLF_MAX_LAYER_SAVED, dtype, shape);
    if (status != SDLF_OK) return status;
    int index = signature->saved_count++;
    signature->saved_dtype[index] = dtype;
    signature->saved_shape[index] = shape;
    return SDLF_OK;
}
