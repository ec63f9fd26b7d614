/* SPDX-License-Identifier: MIT */
/* Where the operations go that a layer describes: the plan that is being made, or a file of C. Whoever calls a layer's
 * forward or backward puts an object that begins with this into sdlf_layer_context.sink. */
#ifndef SDLF_FRAMEWORK_SINK_H
#define SDLF_FRAMEWORK_SINK_H

#include <sdlf/layer.h>

typedef struct layer_sink layer_sink;
struct layer_sink {
    sdlf_status (*emit)(layer_sink *sink, const sdlf_operation *operation);
    bool (*takes)(const layer_sink *sink, const sdlf_operation *operation);
    /* A tensor that lives for this pass of this layer. */
    sdlf_status (*scratch)(layer_sink *sink, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor);
    sdlf_status status; /* of sdlf_scratch, which has no other way to say it: look at it behind the layer */
};

#endif
