/* SPDX-License-Identifier: MIT */
/* Layers that operate along axes: reductions, indexing, resizing. Negative axes count from the end: -1 is the last. The
 * batch is axis 0. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
#ifndef SDLF_LAYERS_AXES_H
#define SDLF_LAYERS_AXES_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reduce one or more axes. The gradient of a maximum or minimum is shared equally among ties. */
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
    sdlf_shape axes;   /* empty: all */
    bool keep;         /* keep the reduced axes with size 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_reduce_options;
sdlf_node sdlf_reduce(sdlf_model *model, sdlf_node x, const sdlf_reduce_options *options);

/* The index (int64) of the largest element along an axis. NaN counts as larger than all others (or, for `smallest`, as
 * smaller). No gradient passes. */
typedef struct sdlf_arg_reduce_layer_options {
    const char *name;
    int axis;          /* default 1 */
    bool smallest;     /* of the smallest element instead */
    bool last;         /* of equal elements, the last instead of the first */
    bool keep;         /* keep the axis with size 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_arg_reduce_layer_options;
sdlf_node sdlf_arg_reduce(sdlf_model *model, sdlf_node x, const sdlf_arg_reduce_layer_options *options);

/* The k largest elements along an axis, sorted; equal ones are in the order of their indices. Output 1 holds the
 * indices, int64. No gradient passes. */
typedef struct sdlf_top_k_layer_options {
    const char *name;
    int k;             /* required; at most the axis's size */
    int axis;          /* default -1 */
    bool smallest;     /* the k smallest instead */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_top_k_layer_options;
sdlf_node sdlf_top_k(sdlf_model *model, sdlf_node x, const sdlf_top_k_layer_options *options);

/* Select elements of x, of any element type, along an axis, which the shape of `index` replaces. Indices are int32 or
 * int64, of any shape; negative ones count from the end. An index out of range is an error in a network input
 * (sdlf_plan_write), and gives 0 if the network computed it. */
typedef struct sdlf_gather_options {
    const char *name;
    int axis;          /* default 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_gather_options;
sdlf_node sdlf_gather(sdlf_model *model, sdlf_node x, sdlf_node index, const sdlf_gather_options *options);

/* Resize axes, one after the other; for modes, coordinates and rounding see <sdlf/operations/indexing.h>. */
typedef struct sdlf_resize_options {
    const char *name;
    sdlf_shape axes;      /* empty: all from 2 on */
    sdlf_shape sizes;     /* of these axes; empty: floor(scale times the input size) */
    float scale;          /* the resizing factor; with `sizes`, 0 means output size / input size */
    int mode;             /* sdlf_resample_mode: nearest, linear, cubic */
    int coordinates;      /* sdlf_resample_coordinates */
    int rounding;         /* sdlf_resample_rounding, for nearest */
    float cubic;          /* default -0.75 */
    float start, end;     /* of the crop, as fractions of the axes; default 0 and 1 */
    bool extrapolates;    /* positions outside the input get the value `outside` */
    float outside;        /* default 0 */
    bool antialias;       /* when downscaling, widen the filter of linear and cubic by 1 / scale */
    bool exclude_outside; /* elements beyond the ends have weight 0; otherwise the edge element replaces them */
    void *reserved[4];    /* zero; reserved for new members */
} sdlf_resize_options;
sdlf_node sdlf_resize(sdlf_model *model, sdlf_node x, const sdlf_resize_options *options);

/* Softmax exp(x) / sum exp(x), and its logarithm, along axis 1 of (N,C,...). For another axis, call sdlf_model_add with
 * the class "softmax" or "log_softmax" (sdlf_layer_class_find) and these options. */
typedef struct sdlf_softmax_options {
    const char *name;
    int axis;          /* default 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_softmax_options;
sdlf_node sdlf_softmax(sdlf_model *model, sdlf_node x);
sdlf_node sdlf_log_softmax(sdlf_model *model, sdlf_node x);

#ifdef __cplusplus
}
#endif

#endif
