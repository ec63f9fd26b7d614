/* SPDX-License-Identifier: MIT */
/* The times of two plans of one network, layer by layer, side by side. Plans on different calculators may fuse
 * different layers; a line here covers the smallest group of layers that is the same on both sides. */
#ifndef SDLF_APPS_TIMING_LAYERS_H
#define SDLF_APPS_TIMING_LAYERS_H

#include <sdlf/plan.h>

enum { LAYER_TIMES_SIDES = 2, LAYER_TIMES_PHASES = 4 };

typedef struct layer_line {
    char *name;       /* "conv2d+relu+max_pool2d" */
    sdlf_shape shape; /* of its output; rank 0: it has none of its own */
    double seconds[LAYER_TIMES_SIDES]
                  [LAYER_TIMES_PHASES]; /* of a step, by sdlf_phase; copies count where they are waited for */
} layer_line;

typedef struct layer_times {
    layer_line *line;
    int count;
} layer_times;

/* Both plans have been timed (sdlf_plan_time) and are of models that have the same layers as `model`. The caller frees
 * the result with layer_times_release. Work before the first layer, drawing the batch, is a line of its own. */
layer_times layer_times_make(const sdlf_model *model, const sdlf_plan *const plan[LAYER_TIMES_SIDES]);
void layer_times_release(layer_times *times);

/* All phases of a line on one side. */
double layer_times_sum(const layer_line *line, int side);

/* The sum of all lines, without a name. */
layer_line layer_times_total(const layer_times *times);

#endif
