/* Helpers with which a layer's `infer` fills its signature. Going past a maximum is a mistake in the layer class. */
#include <sdlf/layer.h>

#include <assert.h>

void sdlf_signature_output(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape)
{
    assert(signature->output_count < SDLF_MAX_LAYER_OUTPUTS);
    int index = signature->output_count++;
    signature->output_dtype[index] = dtype;
    signature->output_shape[index] = shape;
}

void sdlf_signature_parameter(sdlf_signature *signature, sdlf_parameter_spec parameter)
{
    assert(signature->parameter_count < SDLF_MAX_LAYER_PARAMETERS);
    signature->parameter[signature->parameter_count++] = parameter;
}

void sdlf_signature_saved(sdlf_signature *signature, sdlf_dtype dtype, sdlf_shape shape)
{
    assert(signature->saved_count < SDLF_MAX_LAYER_SAVED);
    int index = signature->saved_count++;
    signature->saved_dtype[index] = dtype;
    signature->saved_shape[index] = shape;
}
