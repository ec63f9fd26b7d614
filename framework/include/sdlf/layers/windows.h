/* SPDX-License-Identifier: MIT */
/* Layers with windows that slide over images: convolution, transposed convolution, pooling.
 *
 * Pairs are vertical, then horizontal. The output of a window over H rows has
 * P = (H + padding above and below - dilation (size - 1) - 1) / stride + 1 rows, rounded down; Q columns likewise. A
 * window that does not fit is SDLF_ERROR_SHAPE. layers.h describes what is common to all layers.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options are copied.
 * Errors: recorded in the model (layers.h). */
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
    int padding[2];       /* zeros on both sides: above and below, left and right; default 0 */
    int padding_extra[2]; /* additional (if negative, fewer) zeros below and right; default 0 */
    int dilation[2];      /* default 1 */
    int groups;           /* divides C; default 1 */
    bool no_bias;
    int initializer;         /* sdlf_initializer_kind of the weight */
    float initializer_scale; /* of uniform and normal, default 0.1 */
    void *reserved[4];       /* zero; reserved for new members */
} sdlf_conv2d_options;
sdlf_node sdlf_conv2d(sdlf_model *model, sdlf_node x, const sdlf_conv2d_options *options);

/* Transposed convolution: the input gradient (dgrad) of conv2d as a layer.
 * Input (N,C,P,Q); output (N,filters,H,W) with
 * H = (P - 1) stride + dilation (kernel - 1) + 1 + output_padding - 2 padding - padding_extra, and W likewise;
 * parameters weight (C, filters/groups, kernel) and bias (filters). Initialisation: he_uniform, bias zero. */
typedef struct sdlf_conv_transpose2d_options {
    const char *name;
    int filters;           /* required; a multiple of groups */
    int kernel[2];         /* required */
    int stride[2];         /* default 1 */
    int padding[2];        /* cropped on both sides: above and below, left and right; default 0 */
    int padding_extra[2];  /* additionally cropped below and right; default 0 */
    int output_padding[2]; /* added below and right; less than the stride; default 0 */
    int dilation[2];       /* default 1 */
    int groups;            /* divides C; default 1 */
    bool no_bias;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_conv_transpose2d_options;
sdlf_node sdlf_conv_transpose2d(sdlf_model *model, sdlf_node x, const sdlf_conv_transpose2d_options *options);

/* Max and average pooling. Input (N,C,H,W); output (N,C,P,Q): the maximum, which ignores padding, or the mean of each
 * window. */
typedef struct sdlf_pool2d_options {
    const char *name;
    int window[2];        /* required */
    int stride[2];        /* default: the window */
    int padding[2];       /* on both sides: above and below, left and right; smaller than the window; default 0 */
    int padding_extra[2]; /* additional (if negative, less) padding below and right; default 0 */
    int dilation[2];      /* default 1; only max_pool2d */
    int ties;             /* max_pool2d: sdlf_ties, which of several maxima gets the gradient; default shared */
    bool count_padding;   /* avg_pool2d: count padding in the mean, as zeros; default no */
    void *reserved[4];    /* zero; reserved for new members */
} sdlf_pool2d_options;
sdlf_node sdlf_max_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options);
sdlf_node sdlf_avg_pool2d(sdlf_model *model, sdlf_node x, const sdlf_pool2d_options *options);

/* Mean over H and W: (N,C,H,W) to (N,C,1,1). */
sdlf_node sdlf_global_avg_pool2d(sdlf_model *model, sdlf_node x);

#ifdef __cplusplus
}
#endif

#endif
