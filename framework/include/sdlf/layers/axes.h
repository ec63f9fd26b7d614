/* SPDX-License-Identifier: MIT */
/* Layers that work along axes: reductions, picking, resizing. Negative axes count from the end: -1 is the last. The
 * batch is axis 0. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_AXES_H
#define SDLF_LAYERS_AXES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Some axes folded to one number. The gradient of a maximum or minimum is shared equally among ties. */
typedef enum sdlf_reduce_function {
    SDLF_REDUCE_LAYER_SUM = 0,
    SDLF_REDUCE_LAYER_MEAN,
    SDLF_REDUCE_LAYER_MAX,
    SDLF_REDUCE_LAYER_MIN,
    SDLF_REDUCE_LAYER_PRODUCT, /* its gradient divides by x, which must not be 0 */
    SDLF_REDUCE_LAYER_L1,
    SDLF_REDUCE_LAYER_L2,
    SDLF_REDUCE_LAYER_SUM_SQUARES,
    SDLF_REDUCE_LAYER_LOG_SUM,
    SDLF_REDUCE_LAYER_LOG_SUM_EXP,
    SDLF_REDUCE_LAYER_FUNCTION_COUNT
} sdlf_reduce_function;
typedef struct sdlf_reduce_options {
    const char *name;
    int function;      /* sdlf_reduce_function */
    sdlf_shape axes;   /* left empty: all */
    bool keep;         /* the axes stay, with 1 element each */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_reduce_options;
sdlf_node sdlf_reduce(sdlf_model *model, sdlf_node x, const sdlf_reduce_options *options);

/* The index, int64, of the largest element along an axis; NaN counts as larger (or smaller) than all. No gradient
 * passes. */
typedef struct sdlf_arg_reduce_layer_options {
    const char *name;
    int axis;          /* default 1 */
    bool smallest;     /* of the smallest element instead */
    bool last;         /* of equal elements the last instead of the first */
    bool keep;         /* the axis stays, with 1 element */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_arg_reduce_layer_options;
sdlf_node sdlf_arg_reduce(sdlf_model *model, sdlf_node x, const sdlf_arg_reduce_layer_options *options);

/* The k largest along an axis, in order, equal ones by their index; output 1 has their indices, int64. No gradient
 * passes. */
typedef struct sdlf_top_k_layer_options {
    const char *name;
    int k;             /* required; at most the axis's size */
    int axis;          /* default -1 */
    bool smallest;     /* the k smallest instead */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_top_k_layer_options;
sdlf_node sdlf_top_k(sdlf_model *model, sdlf_node x, const sdlf_top_k_layer_options *options);

/* x, of any element type, at the indices (int32 or int64, of any shape, negative ones from the end) along an axis,
 * which the indices' shape replaces. An index that lies outside is refused where it is an input's (sdlf_plan_write), and
 * gives 0 where the network computes it. */
typedef struct sdlf_gather_options {
    const char *name;
    int axis;          /* default 1 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_gather_options;
sdlf_node sdlf_gather(sdlf_model *model, sdlf_node x, sdlf_node index, const sdlf_gather_options *options);

/* Axes enlarged or shrunk, one after the other; modes, coordinates and roundings as in <sdlf/operations/indexing.h>. */
typedef struct sdlf_resize_options {
    const char *name;
    sdlf_shape axes;      /* left empty: all from 2 on */
    sdlf_shape sizes;     /* of each of these axes; left empty: floor(scale times its size) */
    float scale;          /* what they are stretched by; with sizes, 0 stands for size / size before */
    int mode;             /* sdlf_resample_mode: nearest, linear, cubic */
    int coordinates;      /* sdlf_resample_coordinates */
    int rounding;         /* sdlf_resample_rounding, of nearest */
    float cubic;          /* default -0.75 */
    float start, end;     /* of a crop, as parts of the axes; default 0 and 1 */
    bool extrapolates;    /* what lies outside is `outside` */
    float outside;        /* default 0 */
    bool antialias;       /* shrinking: linear and cubic weigh as many more elements as the scale asks for */
    bool exclude_outside; /* elements beyond the ends have weight 0; else the last one stands for them */
    void *reserved[4];    /* zero: room for members to come */
} sdlf_resize_options;
sdlf_node sdlf_resize(sdlf_model *model, sdlf_node x, const sdlf_resize_options *options);

/* exp(x) / sum exp(x), and its logarithm, along axis 1 of (N,C,...). Another axis: sdlf_model_add with the class
 * "softmax" or "log_softmax" (sdlf_layer_class_find) and these options. */
typedef struct sdlf_softmax_options {
    const char *name;
    int axis;          /* default 1 */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_softmax_options;
sdlf_node sdlf_softmax(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_log_softmax(sdlf_model *model, sdlf_node x);

#ifdef __cplusplus
}
#endif

#endif
