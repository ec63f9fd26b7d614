/* SPDX-License-Identifier: MIT */
/* Layers of windows that slide over images: convolution, its transpose, pooling.
 *
 * Pairs are vertical, then horizontal. The output of a window over H rows has
 * P = (H + padding above and below - dilation (size - 1) - 1) / stride + 1, rounded down, and Q likewise. A window that
 * fits nowhere is SDLF_ERROR_SHAPE. See layers.h for what holds for every layer.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: kept in the model (layers.h). */
#ifndef SDLF_LAYERS_WINDOWS_H
#define SDLF_LAYERS_WINDOWS_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 2-D convolution (cross-correlation). Input (N,C,H,W); output (N,filters,P,Q); parameters weight
 * (filters, C/groups, kernel) and bias (filters). Depthwise: groups = C. Formula: conv2d_forward in
 * <sdlf/operations/kinds.h>. Default initialisation: he_uniform, bias zero. */
typedef struct sdlf_conv2d_options {
    const char *name;
    int filters;          /* required; a multiple of groups */
    int kernel[2];        /* required */
    int stride[2];        /* default 1 */
    int padding[2];       /* zeros above and left, and below and right too; default 0 */
    int padding_extra[2]; /* more (or, if negative, fewer) zeros below and right; default 0 */
    int dilation[2];      /* default 1 */
    int groups;           /* divides C; default 1 */
    bool no_bias;
    int initializer;         /* sdlf_initializer_kind of the weight */
    float initializer_scale; /* of uniform and normal, default 0.1 */
    void *reserved[4];       /* zero: room for members to come */
} sdlf_conv2d_options;
sdlf_node sdlf_conv2d(sdlf_model *model, sdlf_node x, const sdlf_conv2d_options *options);

/* Transposed convolution: what conv2d's gradient by its input computes, as a layer. Input (N,C,P,Q); output
 * (N,filters,H,W) with
 * H = (P - 1) stride + dilation (kernel - 1) + 1 + output_padding - 2 padding - padding_extra, and W likewise;
 * parameters weight (C, filters/groups, kernel) and bias (filters). Initialisation: he_uniform, bias zero. */
typedef struct sdlf_conv_transpose2d_options {
    const char *name;
    int filters;           /* required; a multiple of groups */
    int kernel[2];         /* required */
    int stride[2];         /* default 1 */
    int padding[2];        /* cut off above and left, and below and right too; default 0 */
    int padding_extra[2];  /* more cut off below and right; default 0 */
    int output_padding[2]; /* added below and right, less than the stride; default 0 */
    int dilation[2];       /* default 1 */
    int groups;            /* divides C; default 1 */
    bool no_bias;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_conv_transpose2d_options;
sdlf_node sdlf_conv_transpose2d(sdlf_model *model, sdlf_node x, const sdlf_conv_transpose2d_options *options);

/* Max and average pooling. Input (N,C,H,W); output (N,C,P,Q): the largest element of each window, which padding never
 * is, or the mean. */
typedef struct sdlf_pool2d_options {
    const char *name;
    int window[2];        /* required */
    int stride[2];        /* default: the window */
    int padding[2];       /* above and left, and below and right too; smaller than the window; default 0 */
    int padding_extra[2]; /* more (or, if negative, less) below and right; default 0 */
    int dilation[2];      /* default 1; only max_pool2d */
    int ties;             /* max_pool2d: sdlf_ties, who gets the gradient of tied maxima; default shared */
    bool count_padding;   /* avg_pool2d: padding counts in the mean, as zeros; default no */
    void *reserved[4];    /* zero: room for members to come */
} sdlf_pool2d_options;
sdlf_node sdlf_max_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options);
sdlf_node sdlf_avg_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options);

/* Mean over H and W: (N,C,H,W) to (N,C,1,1). */
sdlf_node sdlf_global_avg_pool2d(sdlf_model *model, sdlf_node x);

#ifdef __cplusplus
}
#endif

#endif
