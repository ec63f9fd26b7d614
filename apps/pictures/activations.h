/* SPDX-License-Identifier: MIT */
/* Layer outputs as images: the outputs (1,C,H,W) of convolution and pooling layers, as one grey plane for each
 * channel. */
#ifndef SDLF_APPS_PICTURES_ACTIVATIONS_H
#define SDLF_APPS_PICTURES_ACTIVATIONS_H

#include <stdbool.h>

#include <sdlf/plan.h>

typedef struct activation {
    const char *layer;
    sdlf_shape shape;    /* (C,H,W) */
    const float *values; /* in the plan's memory */
} activation;

/* True if layer `index` has such an output, in host memory. The plan has batch 1 and keep_activations, and has
 * run. */
bool activation_of(activation *activation, const sdlf_model *model, sdlf_plan *plan, int index);

/* Convert `count` planes of `size` values to bytes, each plane scaled from its minimum (0) to its maximum (255); a
 * constant plane becomes 0. The caller frees the result. */
unsigned char *activation_grey(const float *values, int64_t count, int64_t size);

#endif
