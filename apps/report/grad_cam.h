/* SPDX-License-Identifier: MIT */
/* Grad-CAM (Selvaraju and others 2017): which regions of an image support a class.
 *
 *   A (K,H,W): a layer's output; s: the score (logit) of a class
 *   a[k] = mean over H,W of ds/dA[k];   map (H,W) = max(0, sum over k of a[k] A[k])
 *
 * The library's backward pass computes ds/dA through a training plan in eval mode. The loss is mae with the scores
 * themselves as targets, except for the class's, which is lower: the loss's gradient is 1 there and 0 elsewhere. */
#ifndef SDLF_APPS_REPORT_GRAD_CAM_H
#define SDLF_APPS_REPORT_GRAD_CAM_H

#include <sdlf/plan.h>

typedef struct grad_cam {
    sdlf_plan *plan;
    const char *input, *layer; /* the model's; layer: A */
    int64_t channels, rows, columns;
    int class_count;
    int64_t values;          /* of a sample */
    float *scores, *targets; /* class_count each, of the last image */
} grad_cam;

/* Open Grad-CAM for the named layer, or, for NULL, the last convolution on the path to the scores whose output is
 * larger than 1x1, or the layers of the same shape that follow it: a normalisation, a residual sum, an activation. The
 * model has one input, and its first output is the scores (or their softmax). Its outputs are changed and it is frozen
 * except for the layers up to that one: it can be used only by the plan, and must outlive it. The calculator is a
 * host's. Errors: SDLF_ERROR_UNSUPPORTED (no such convolution, or the model has its own loss), SDLF_ERROR_ARGUMENT (no
 * such layer), SDLF_ERROR_SHAPE (its output is not (C,H,W)), those of plans. End with grad_cam_release, whatever the
 * status. */
sdlf_status grad_cam_open(grad_cam *cam, sdlf_model *model, sdlf_calculator *calculator, const char *layer);
void grad_cam_release(grad_cam *cam);

/* Compute the map of a class for a preprocessed sample: rows x columns values >= 0. */
sdlf_status grad_cam_make(grad_cam *cam, const float *sample, int class, float *map);

#endif
