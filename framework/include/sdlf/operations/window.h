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

/* conv2d_inverted_residual_forward, with h(p,r) = p stride_h + r dilation_h - padding_top, and w(q,s) alike:
 *   h[n,m,i,j] = expanded(bias[m] + sum over c of x[n,c,i,j] expand[m,c]), and h = 0 outside (not expanded(bias));
 *   z[n,m,p,q] = filtered(depthwise_bias[m] + sum over r,s of h[n,m,h(p,r),w(q,s)] depthwise[m,r,s]);
 *   y[n,k,p,q] = act(project_bias[k] + residual[n,k,p,q] + sum over m of z[n,m,p,q] project[k,m]).
 * Without expand h = x, M = C, there is no bias and expanded is the identity: a depthwise separable convolution. */

/* Output size of a sliding window along axis 0 or 1 over `input` elements; less than 1 where the window does not
 * fit. */
int64_t sdlf_window2d_output(const sdlf_window2d *window, int axis, int64_t input);

#ifdef __cplusplus
}
#endif

#endif
