/* SPDX-License-Identifier: MIT */
/* Layers that change the shape and the order of elements, of any element type. Axes count from 0, the batch; negative
 * ones from the end. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_SHAPES_H
#define SDLF_LAYERS_SHAPES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* (N, ...) to (N, product). */
sdlf_node sdlf_flatten(sdlf_model *model, sdlf_node x);

/* (N, ...) to (N, shape); one dimension may be -1 and is worked out. With `whole`, anything to shape itself: the batch
 * is a dimension like the others. */
typedef struct sdlf_reshape_options {
    const char *name;
    sdlf_shape shape; /* without the batch, unless `whole` */
    bool whole;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_reshape_options;
sdlf_node sdlf_reshape(sdlf_model *model, sdlf_node x, const sdlf_reshape_options *options);

/* Axis i of the output is axis order[i] of the input, the batch included; left empty, the axes are reversed. */
typedef struct sdlf_transpose_options {
    const char *name;
    sdlf_shape order;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_transpose_options;
sdlf_node sdlf_transpose(sdlf_model *model, sdlf_node x, const sdlf_transpose_options *options);

/* Nodes of one element type joined along an axis; their other axes agree. */
typedef struct sdlf_concat_options {
    const char *name;
    int axis;          /* default 1, channels */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_concat_options;
sdlf_node sdlf_concat(sdlf_model *model, const sdlf_node *nodes, int count, const sdlf_concat_options *options);

/* Elements start, start + step, ... before end along each of the axes; negative ones count from the end, and what lies
 * outside is moved to the edge, as in numpy. A negative step walks backwards. */
typedef struct sdlf_slice_options {
    const char *name;
    sdlf_shape axes, start, end;
    sdlf_shape step;   /* left empty: 1 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_slice_options;
sdlf_node sdlf_slice(sdlf_model *model, sdlf_node x, const sdlf_slice_options *options);

/* So many elements before and behind each axis, the batch first; negative: fewer. */
typedef enum sdlf_pad_mode {
    SDLF_PAD_CONSTANT = 0, /* `value` */
    SDLF_PAD_EDGE,         /* the last element again */
    SDLF_PAD_REFLECT,      /* back from the end, which is not repeated */
    SDLF_PAD_WRAP          /* on from the other end */
} sdlf_pad_mode;
typedef struct sdlf_pad_options {
    const char *name;
    sdlf_shape before, after; /* a number for every axis */
    float value;              /* of the constant mode; default 0 */
    int mode;                 /* sdlf_pad_mode */
    void *reserved[4];        /* zero: room for members to come */
} sdlf_pad_options;
sdlf_node sdlf_pad(sdlf_model *model, sdlf_node x, const sdlf_pad_options *options);

/* Broadcast with a shape, the batch included: where one of the two has 1 or no axis, the other's size is taken. With
 * `samples` the shape is that of one sample, and the plan's batch comes before it: so a value becomes one for each
 * sample. */
typedef struct sdlf_expand_options {
    const char *name;
    sdlf_shape shape;
    bool samples;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_expand_options;
sdlf_node sdlf_expand(sdlf_model *model, sdlf_node x, const sdlf_expand_options *options);

/* So many times along each axis, the batch first. */
typedef struct sdlf_tile_options {
    const char *name;
    sdlf_shape repeats;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_tile_options;
sdlf_node sdlf_tile(sdlf_model *model, sdlf_node x, const sdlf_tile_options *options);

/* (N, C block^2, H, W) to (N, C, H block, W block), and back. */
typedef enum sdlf_depth_to_space_mode {
    SDLF_DEPTH_DCR = 0, /* the place in its block comes before the channel */
    SDLF_DEPTH_CRD      /* the channel before the place: pixel shuffle */
} sdlf_depth_to_space_mode;
typedef struct sdlf_depth_to_space_options {
    const char *name;
    int block;         /* required */
    int mode;          /* sdlf_depth_to_space_mode */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_depth_to_space_options;
sdlf_node sdlf_depth_to_space(sdlf_model *model, sdlf_node x, const sdlf_depth_to_space_options *options);
typedef sdlf_depth_to_space_options sdlf_space_to_depth_options;
sdlf_node sdlf_space_to_depth(sdlf_model *model, sdlf_node x, const sdlf_space_to_depth_options *options);

#ifdef __cplusplus
}
#endif

#endif
