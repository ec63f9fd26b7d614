/* SPDX-License-Identifier: MIT */
/* Sliding windows: what convolution and pooling share.
 *
 * Threads: functions of values, which may be called from any thread.
 * Ownership: values.
 * Errors: ranges are checked by what takes them. */
#ifndef SDLF_OPERATIONS_WINDOW_H
#define SDLF_OPERATIONS_WINDOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Geometry of a sliding window. Index 0 is vertical, 1 horizontal. All sides >= 1 except padding >= 0. */
typedef struct sdlf_window2d {
    int size[2], stride[2], dilation[2];
    int padding_before[2], padding_after[2]; /* top, left; bottom, right */
} sdlf_window2d;

/* Which of the inputs of a max-pool window that tie for the maximum get its gradient: each an equal part, or the
 * first. */
typedef enum sdlf_ties { SDLF_TIES_SHARE = 0, SDLF_TIES_FIRST } sdlf_ties;

/* Output size of a sliding window along axis 0 or 1 over `input` elements; less than 1 where the window does not
 * fit. */
int64_t sdlf_window2d_output(const sdlf_window2d *window, int axis, int64_t input);

#ifdef __cplusplus
}
#endif

#endif
