/* SPDX-License-Identifier: MIT */
/* What layers make of a picture, as pictures: the outputs (1,C,H,W) of convolutions and poolings, a grey plane for each
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

/* Is the output of layer `index` such a one, and in the host's memory? The plan has batch 1 and keep_activations, and
 * has run. */
bool activation_of(activation *activation, const sdlf_model *model, sdlf_plan *plan, int index);

/* `count` planes of `size` numbers as bytes, each plane from its least number (0) to its greatest (255); of equal
 * numbers 0. The caller's. */
unsigned char *activation_grey(const float *values, int64_t count, int64_t size);

#endif
