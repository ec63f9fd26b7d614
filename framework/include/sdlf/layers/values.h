/* SPDX-License-Identifier: MIT */
/* Values of a network's own, and their element types. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_VALUES_H
#define SDLF_LAYERS_VALUES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The element types that a layer can have. */
typedef enum sdlf_value_dtype {
    SDLF_VALUE_FLOAT = 0, /* the network's own floating type */
    SDLF_VALUE_INT32,
    SDLF_VALUE_INT64,
    SDLF_VALUE_UINT8,
    SDLF_VALUE_INT8,
    SDLF_VALUE_BOOL
} sdlf_value_dtype;

/* The parameter "value", zero until it is set; no input. It is kept as float32, so of integers those up to 2^24 are
 * exact. A shape with a dimension of 0 has no parameter, and nothing but an output of the network may read it. */
typedef struct sdlf_value_options {
    const char *name;
    sdlf_shape shape;  /* all of it: there is no batch */
    int dtype;         /* sdlf_value_dtype */
    bool trainable;    /* only floats */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_value_options;
sdlf_node sdlf_value(sdlf_model *model, const sdlf_value_options *options);

/* Another element type. Floats become integers toward zero, saturating; what is not zero becomes true. A gradient
 * passes from only float to float. */
typedef struct sdlf_cast_options {
    const char *name;
    int dtype;         /* sdlf_value_dtype */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_cast_options;
sdlf_node sdlf_cast(sdlf_model *model, sdlf_node x, const sdlf_cast_options *options);

/* Floats as uint8 that stand for (y - zero) scale: round(x / scale) + zero, with the scale and zero point of the range that
 * x and 0 have together, all samples of a batch included. Output 1 is the scale, output 2 the zero point, uint8: one
 * number each. No gradient passes. */
sdlf_node sdlf_dynamic_quantize(sdlf_model *model, sdlf_node x);

#ifdef __cplusplus
}
#endif

#endif
