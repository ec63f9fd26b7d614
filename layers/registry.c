/* SPDX-License-Identifier: MIT */
/* The layer classes of this library, in listing order, for framework/layer_classes.c. */
#include "layers/layers_internal.h"

const sdlf_layer_class *const sdlf_builtin_layers[] = {
#define SDLF_LAYER(class, writer) &class,
#include "layers/list.h"
#undef SDLF_LAYER
    NULL,
};
