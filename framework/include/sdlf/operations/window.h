/* SPDX-License-Identifier: MIT */
/* Sliding windows, as used by convolution and pooling.
 *
 * Threads: the functions operate on values and may be called from any thread.
 * Ownership: values.
 * Errors: ranges are checked where the windows are used. */
#ifndef SDLF_OPERATIONS_WINDOW_H
#define SDLF_OPERATIONS_WINDOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Geometry of a sliding window. Index 0 is vertical, 1 horizontal. Everything is >= 1, except padding >= 0. */
typedef struct sdlf_window2d {
    int size[2], stride[2], dilation[2];
    int padding_before[2], padding_after[2]; /* top, left; bottom, right */
} sdlf_window2d;

/* Which of several maxima in a max-pool window receive its gradient: all in equal parts, or only the
 * first. */
typedef enum sdlf_ties { SDLF_TIES_SHARE = 0, SDLF_TIES_FIRST } sdlf_ties;

/* The output size of a sliding window along axis 0 or 1 over `input` elements; less than 1 if the window does not
 * fit. */
int64_t sdlf_window2d_output(const sdlf_window2d *window, int axis, int64_t input);

#ifdef __cplusplus
}
#endif

#endif
