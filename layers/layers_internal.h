/* SPDX-License-Identifier: MIT */
/* What the layer classes share: their tables, and checks for their `infer`. */
#ifndef SDLF_LAYERS_INTERNAL_H
#define SDLF_LAYERS_INTERNAL_H

#include <sdlf/layers.h>

#define SDLF_LAYER(class, writer) extern const sdlf_layer_class class;
#include "layers/list.h"
#undef SDLF_LAYER

/* All of them, and NULL. */
extern const sdlf_layer_class *const sdlf_builtin_layers[];

/* The options of a layer that has none but its name. */
typedef struct sdlf_plain_options {
    const char *name;
} sdlf_plain_options;

/* The field table that goes with them: empty. */
extern const sdlf_field sdlf_plain_fields[];

/* ---- checks for `infer`; their messages begin with what is wrong, status SDLF_ERROR_SHAPE ---- */

/* Input `index` has the plan's floating type. */
sdlf_status sdlf_layer_check_float(const sdlf_signature *signature, int index);

/* Input `index` is floating and has this many dimensions; `form` says which: "(N,C,H,W)". */
sdlf_status sdlf_layer_check_rank(const sdlf_signature *signature, int index, int rank, const char *form);

/* A window of these options, vertical and horizontal: a stride of 0 is the size, a dilation of 0 is 1, `extra` is added
 * to the padding below and right. */
sdlf_window2d sdlf_layer_window(const int size[2], const int stride[2], const int dilation[2], const int padding[2],
                                const int extra[2]);

/* The size of a window's output over an image of (N,C,H,W); each at least 1. `what` is the window's name: "kernel". */
sdlf_status sdlf_layer_window_output(const sdlf_window2d *window, sdlf_shape input, const char *what,
                                     int64_t output[2]);

/* Where an operation writes a parameter's gradient that it cannot leave out: the gradient, or, of a frozen parameter, a
 * scratch tensor. */
sdlf_tensor sdlf_layer_gradient(sdlf_layer_context *context, int parameter);

#endif
