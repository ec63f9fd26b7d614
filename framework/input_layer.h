/* SPDX-License-Identifier: MIT */
/* The layer behind sdlf_input: a place where a model's input enters the graph. Models make it themselves, so it is the
 * framework's, in no registry and in no network file's list of layers. */
#ifndef SDLF_FRAMEWORK_INPUT_LAYER_H
#define SDLF_FRAMEWORK_INPUT_LAYER_H

#include <sdlf/layer.h>

typedef struct sdlf_input_options {
    const char *name;
    int dtype;        /* sdlf_dtype; a floating one becomes the plan's floating type */
    sdlf_shape shape; /* of one sample: the batch is put before it, unless `whole` */
    bool whole;       /* the shape is all there is, and has nothing to do with the batch */
    bool sparse;      /* a sparse matrix: of shape (N,N) over the batch, or of `shape` where that is whole */
} sdlf_input_options;

/* No inputs; one output of shape (signature->batch, shape), or shape, or a sparse one. Its passes consist of no
 * operations. */
extern const sdlf_layer_class sdlf_input_layer_class;

#endif
