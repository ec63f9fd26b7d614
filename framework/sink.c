/* SPDX-License-Identifier: MIT */
/* See sink.h: forwards the calls of layers. */
#include "framework/sink.h"
#include "framework/require.h"

sdlf_status sdlf_emit(sdlf_layer_context *context, const sdlf_operation *operation)
{
    SDLF_REQUIRE(context);
    SDLF_REQUIRE(operation);
    layer_sink *sink = context->sink;
    return sink->status == SDLF_OK ? sink->emit(sink, operation) : sink->status;
}

bool sdlf_layer_supports(const sdlf_layer_context *context, const sdlf_operation *operation)
{
    if (context == NULL || operation == NULL) return false;
    const layer_sink *sink = context->sink;
    return sink->takes(sink, operation);
}

sdlf_tensor sdlf_scratch(sdlf_layer_context *context, sdlf_dtype dtype, sdlf_shape shape)
{
    if (context == NULL) return (sdlf_tensor){.dtype = SDLF_NONE};
    layer_sink *sink = context->sink;
    sdlf_tensor tensor = {.dtype = SDLF_NONE};
    sdlf_status status = sink->scratch(sink, dtype, shape, &tensor);
    if (status != SDLF_OK) sink->status = status;
    return tensor;
}
