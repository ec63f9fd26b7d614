/* SPDX-License-Identifier: MIT */
/* The layer behind sdlf_input: the node where a model's input enters the graph. Models create it themselves, so it is
 * internal to the framework, and not in the registry or in a network file's list of layers. */
#ifndef SDLF_FRAMEWORK_INPUT_LAYER_H
#define SDLF_FRAMEWORK_INPUT_LAYER_H

#include <sdlf/layer.h>

typedef struct sdlf_input_options {
    const char *name;
    int dtype;        /* sdlf_dtype; a floating one becomes the plan's floating type */
    sdlf_shape shape; /* of one sample: the batch is prepended, unless `whole` */
    bool whole;       /* `shape` is complete and does not depend on the batch */
    bool sparse;      /* a sparse matrix: of shape (N,N) over the batch, or of `shape` if `whole` */
} sdlf_input_options;

/* No inputs; one output of shape (signature->batch, shape), or `shape`, or a sparse one. Its passes have no
 * operations. */
extern const sdlf_layer_class sdlf_input_layer_class;

#endif
