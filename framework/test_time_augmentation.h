/* SPDX-License-Identifier: MIT */
/* Views of samples for test-time augmentation. */
#ifndef SDLF_FRAMEWORK_TEST_TIME_AUGMENTATION_H
#define SDLF_FRAMEWORK_TEST_TIME_AUGMENTATION_H

#include <sdlf/trainer.h>

typedef struct sample_view {
    bool flip;
    int down, right; /* pixels that the picture is moved by, -1 to 1 */
    float weight;    /* of all views they add up to 1 */
} sample_view;

/* How many there are, and each. */
int sample_view_count(sdlf_views views);
sample_view sample_view_at(sdlf_views views, int index);

/* `to` = the view of `count` samples of shape (C,H,W), one behind the other. */
void sample_view_make(float *to, const float *samples, int64_t count, sdlf_shape sample, sample_view view);

#endif
