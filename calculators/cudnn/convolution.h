/* SPDX-License-Identifier: MIT */
/* What the choice of a convolution's algorithm and the kernels share. */
#ifndef SDLF_CALCULATORS_CUDNN_CONVOLUTION_H
#define SDLF_CALCULATORS_CUDNN_CONVOLUTION_H

#include "calculators/cudnn/cudnn.h"

/* Descriptors and algorithm of an operation; NULL if cuDNN does not support it. The tensors are x, y and bias. */
enum { CONVOLUTION_X, CONVOLUTION_Y, CONVOLUTION_BIAS };
cudnn_kept *cudnn_convolution(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* ---- convolution_advice.c ---- */

/* An algorithm that cuDNN suggests. */
typedef struct cudnn_advice {
    int algorithm;        /* cuDNN's enum value */
    bool usable;          /* supported and deterministic */
    cudnnMathType_t math; /* to be set in the descriptor */
} cudnn_advice;
enum { CUDNN_ADVICE = 16 };

/* List what cuDNN suggests for the descriptors, best first; returns the number of entries. */
int cudnn_advise(const cudnn_calculator *calculator, const cudnn_kept *kept, cudnn_advice *list);
/* Bytes of workspace; fails if the algorithm does not support the descriptors. */
cudnnStatus_t cudnn_ask_workspace(const cudnn_calculator *calculator, const cudnn_kept *kept, int algorithm,
                                  size_t *bytes);

/* ---- convolution.c ---- */

/* Bytes at the workspace's start for NHWC weights; 0 if they have been prepacked. */
int64_t cudnn_weights_bytes(const sdlf_operation *operation);

#endif
