/* SPDX-License-Identifier: MIT */
/* Shared by the layer classes: their tables, and checks for their `infer`. */
#ifndef SDLF_LAYERS_INTERNAL_H
#define SDLF_LAYERS_INTERNAL_H

#include <sdlf/layers.h>

#define SDLF_LAYER(class, writer) extern const sdlf_layer_class class;
#include "layers/list.h"
#undef SDLF_LAYER

/* All of them, NULL-terminated. */
extern const sdlf_layer_class *const sdlf_builtin_layers[];

/* The options of a layer that has only a name. */
typedef struct sdlf_plain_options {
    const char *name;
} sdlf_plain_options;

/* The field table of these options: empty. */
extern const sdlf_field sdlf_plain_fields[];

/* ---- checks for `infer`: status SDLF_ERROR_SHAPE; their messages begin with what is wrong ---- */

/* Checks that input `index` has the plan's floating-point type. */
sdlf_status sdlf_layer_check_float(const sdlf_signature *signature, int index);

/* Checks that input `index` is floating-point and has this rank; `form` describes it: "(N,C,H,W)". */
sdlf_status sdlf_layer_check_rank(const sdlf_signature *signature, int index, int rank, const char *form);

/* The window of these options, vertical and horizontal: a stride of 0 means the size, a dilation of 0 means 1; `extra`
 * is added to the padding at the bottom and right. */
sdlf_window2d sdlf_layer_window(const int size[2], const int stride[2], const int dilation[2], const int padding[2],
                                const int extra[2]);

/* The size of a window's output over an image (N,C,H,W), each at least 1. `what` names the window: "kernel". */
sdlf_status sdlf_layer_window_output(const sdlf_window2d *window, sdlf_shape input, const char *what,
                                     int64_t output[2]);

/* The destination of a parameter gradient that an operation cannot omit: the gradient, or, for a frozen parameter, a
 * scratch tensor. */
sdlf_tensor sdlf_layer_gradient(sdlf_layer_context *context, int parameter);

#endif
