/* SPDX-License-Identifier: MIT */
/* Views of samples for test-time augmentation. */
#ifndef SDLF_FRAMEWORK_TEST_TIME_AUGMENTATION_H
#define SDLF_FRAMEWORK_TEST_TIME_AUGMENTATION_H

#include <sdlf/trainer.h>

typedef struct sample_view {
    bool flip;
    int down, right; /* pixels by which the image is shifted, -1 to 1 */
    float weight;    /* of this view; the weights of all views add up to 1 */
} sample_view;

/* The number of views, and each of them. */
int sample_view_count(sdlf_views views);
sample_view sample_view_at(sdlf_views views, int index);

/* Writes the view of `count` samples of shape (C,H,W) to `to`, one after the other. */
void sample_view_make(float *to, const float *samples, int64_t count, sdlf_shape sample, sample_view view);

#endif
