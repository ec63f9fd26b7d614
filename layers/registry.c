/* SPDX-License-Identifier: MIT */
/* The layer classes of this library, in the order of listings, for framework/layer_classes.c. */
#include "layers/layers_internal.h"

const sdlf_layer_class *const sdlf_builtin_layers[] = {
#define SDLF_LAYER(class, writer) &class,
#include "layers/list.h"
#undef SDLF_LAYER
    NULL,
};
