/* SPDX-License-Identifier: MIT */
/* Constants and parameters as nodes, type conversion, quantisation. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
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

/* The parameter "value", zero until set; it has no input. It is stored as float32, so integers are exact up to 2^24. A
 * shape with a dimension of 0 has no parameter, and only an output of the network may read it. */
typedef struct sdlf_value_options {
    const char *name;
    sdlf_shape shape;  /* the complete shape, without a batch */
    int dtype;         /* sdlf_value_dtype */
    bool trainable;    /* only for floats */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_value_options;
sdlf_node sdlf_value(sdlf_model *model, const sdlf_value_options *options);

/* Convert to another element type. Floats become integers by truncation toward zero, saturating; non-zero values become
 * true. A gradient passes only from float to float. */
typedef struct sdlf_cast_options {
    const char *name;
    int dtype;         /* sdlf_value_dtype */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_cast_options;
sdlf_node sdlf_cast(sdlf_model *model, sdlf_node x, const sdlf_cast_options *options);

/* Quantise floats to uint8 q = round(x / scale) + zero, which represents (q - zero) scale. Scale and zero point follow
 * from the range of x and 0, over all samples of the batch. Output 1 is the scale, output 2 the zero point (uint8), one
 * element each. No gradient passes. */
sdlf_node sdlf_dynamic_quantize(sdlf_model *model, sdlf_node x);

#ifdef __cplusplus
}
#endif

#endif
