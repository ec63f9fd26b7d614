/* SPDX-License-Identifier: MIT */
/* Layers that change the shape and the order of elements, of any element type. Axes count from 0, the batch; negative
 * ones count from the end. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_SHAPES_H
#define SDLF_LAYERS_SHAPES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* (N, ...) to (N, product). */
sdlf_node sdlf_flatten(sdlf_model *model, sdlf_node x);

/* (N, ...) to (N, shape); one dimension may be -1 and is inferred. With `whole`, the output has exactly `shape`, in
 * which the batch is a dimension like the others. */
typedef struct sdlf_reshape_options {
    const char *name;
    sdlf_shape shape; /* without the batch, unless `whole` */
    bool whole;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_reshape_options;
sdlf_node sdlf_reshape(sdlf_model *model, sdlf_node x, const sdlf_reshape_options *options);

/* Axis i of the output is axis order[i] of the input, including the batch. An empty order reverses the axes. */
typedef struct sdlf_transpose_options {
    const char *name;
    sdlf_shape order;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_transpose_options;
sdlf_node sdlf_transpose(sdlf_model *model, sdlf_node x, const sdlf_transpose_options *options);

/* Concatenate nodes of one element type along an axis; their other axes must be equal. */
typedef struct sdlf_concat_options {
    const char *name;
    int axis;          /* default 1, channels */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_concat_options;
sdlf_node sdlf_concat(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_concat_options *options);

/* Elements start, start + step, ... before `end` along each of the axes. As in numpy, negative positions count from the
 * end, and those out of range are clamped. A negative step goes backwards. */
typedef struct sdlf_slice_options {
    const char *name;
    sdlf_shape axes, start, end;
    sdlf_shape step;   /* empty: 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_slice_options;
sdlf_node sdlf_slice(sdlf_model *model, sdlf_node x, const sdlf_slice_options *options);

/* Add elements before and after each axis, including the batch; a negative number removes elements. */
typedef enum sdlf_pad_mode {
    SDLF_PAD_CONSTANT = 0, /* `value` */
    SDLF_PAD_EDGE,         /* repeats the edge element */
    SDLF_PAD_REFLECT,      /* mirrored at the edge element, which is not repeated */
    SDLF_PAD_WRAP          /* continued from the other end */
} sdlf_pad_mode;
typedef struct sdlf_pad_options {
    const char *name;
    sdlf_shape before, after; /* one number per axis */
    float value;              /* for the constant mode; default 0 */
    int mode;                 /* sdlf_pad_mode */
    void *reserved[4];        /* zero; reserved for new members */
} sdlf_pad_options;
sdlf_node sdlf_pad(sdlf_model *model, sdlf_node x, const sdlf_pad_options *options);

/* Broadcast with a shape, including the batch: where one of the two has size 1 or no axis, the other's size is used.
 * With `samples`, the shape is that of one sample and the plan's batch is prepended, which repeats a value for each
 * sample. */
typedef struct sdlf_expand_options {
    const char *name;
    sdlf_shape shape;
    bool samples;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_expand_options;
sdlf_node sdlf_expand(sdlf_model *model, sdlf_node x, const sdlf_expand_options *options);

/* Repeat along each axis, including the batch. */
typedef struct sdlf_tile_options {
    const char *name;
    sdlf_shape repeats;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_tile_options;
sdlf_node sdlf_tile(sdlf_model *model, sdlf_node x, const sdlf_tile_options *options);

/* (N, C block^2, H, W) to (N, C, H block, W block), and the inverse. */
typedef enum sdlf_depth_to_space_mode {
    SDLF_DEPTH_DCR = 0, /* channels are ordered (position in the block, channel) */
    SDLF_DEPTH_CRD      /* channels are ordered (channel, position in the block): pixel shuffle */
} sdlf_depth_to_space_mode;
typedef struct sdlf_depth_to_space_options {
    const char *name;
    int block;         /* required */
    int mode;          /* sdlf_depth_to_space_mode */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_depth_to_space_options;
sdlf_node sdlf_depth_to_space(sdlf_model *model, sdlf_node x, const sdlf_depth_to_space_options *options);
typedef sdlf_depth_to_space_options sdlf_space_to_depth_options;
sdlf_node sdlf_space_to_depth(sdlf_model *model, sdlf_node x, const sdlf_space_to_depth_options *options);

#ifdef __cplusplus
}
#endif

#endif
