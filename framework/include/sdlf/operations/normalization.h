/* SPDX-License-Identifier: MIT */
/* How raw samples become a network's input: (x - mean) * scale, with one mean and scale for all elements or, for images
 * (N,C,H,W), one for each channel.
 *
 * Threads: declarations only.
 * Ownership: values.
 * Errors: ranges are checked where the options are used. */
#ifndef SDLF_OPERATIONS_NORMALIZATION_H
#define SDLF_OPERATIONS_NORMALIZATION_H

enum { SDLF_NORMALIZED_CHANNELS = 16 };

/* Mean and scale per channel; `count` 0: none, and one mean and scale apply to all elements. */
typedef struct sdlf_channel_normalization {
    int count; /* the samples' channels, up to SDLF_NORMALIZED_CHANNELS */
    float mean[SDLF_NORMALIZED_CHANNELS], scale[SDLF_NORMALIZED_CHANNELS];
} sdlf_channel_normalization;

#endif
