/* SPDX-License-Identifier: MIT */
/* Receives the operations that a layer describes: the plan being built, or an exported C file. The caller of a layer's
 * forward or backward puts an object that begins with this struct into sdlf_layer_context.sink. */
#ifndef SDLF_FRAMEWORK_SINK_H
#define SDLF_FRAMEWORK_SINK_H

#include <sdlf/layer.h>

typedef struct layer_sink layer_sink;
struct layer_sink {
    sdlf_status (*emit)(layer_sink *sink, const sdlf_operation *operation);
    bool (*takes)(const layer_sink *sink, const sdlf_operation *operation);
    /* A tensor that lives for this pass of this layer. */
    sdlf_status (*scratch)(layer_sink *sink, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor);
    sdlf_status status; /* of sdlf_scratch, which cannot return it: check it after the layer */
};

#endif
