/* SPDX-License-Identifier: MIT */
/* Grad-CAM (Selvaraju and others 2017): where in a picture a network finds what speaks for a class.
 *
 *   A (K,H,W): a layer's output; s: the score (logit) of a class
 *   a[k] = mean over H,W of ds/dA[k];   map (H,W) = max(0, sum over k of a[k] A[k])
 *
 * ds/dA is what the library's backward pass computes, through a training plan in eval mode. Its loss is mae with
 * targets that are the scores themselves, except for the class's, which is below: its slope is 1 there and 0 elsewhere. */
#ifndef SDLF_APPS_REPORT_GRAD_CAM_H
#define SDLF_APPS_REPORT_GRAD_CAM_H

#include <sdlf/plan.h>

typedef struct grad_cam {
    sdlf_plan *plan;
    const char *input, *layer; /* the model's; layer: A */
    int64_t channels, rows, columns;
    int class_count;
    int64_t values;          /* of a sample */
    float *scores, *targets; /* class_count each, of the last picture */
} grad_cam;

/* Of a layer by its name, or, for NULL, of the last convolution on the way to the scores whose output is larger than
 * 1x1, or of what comes behind it in its shape: a normalisation, a residual's sum, an activation. The model, with one
 * input and its first output the scores (or their softmax), gets other outputs and is frozen except for what leads to
 * that layer: it serves only the plan, and outlives it. The calculator is a host's. Errors:
 * SDLF_ERROR_UNSUPPORTED (there is no such convolution, a loss of the model's own), SDLF_ERROR_ARGUMENT (a layer that
 * it does not have), SDLF_ERROR_SHAPE (its output is no (C,H,W)), those of plans. End with grad_cam_release, whatever
 * the status. */
sdlf_status grad_cam_open(grad_cam *cam, sdlf_model *model, sdlf_calculator *calculator, const char *layer);
void grad_cam_release(grad_cam *cam);

/* The map of a class for a sample as the network takes it: rows x columns numbers from 0 on. */
sdlf_status grad_cam_make(grad_cam *cam, const float *sample, int class, float *map);

#endif
