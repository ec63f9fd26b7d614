/* SPDX-License-Identifier: MIT */
/* What a convolution's choice of algorithm and its kernels share. */
#ifndef SDLF_CALCULATORS_CUDNN_CONVOLUTION_H
#define SDLF_CALCULATORS_CUDNN_CONVOLUTION_H

#include "calculators/cudnn/cudnn.h"

/* Descriptors and algorithm of an operation; NULL: cuDNN does not take it. The tensors are x, y and bias. */
enum { CONVOLUTION_X, CONVOLUTION_Y, CONVOLUTION_BIAS };
cudnn_kept *cudnn_convolution(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* ---- convolution_advice.c ---- */

/* An algorithm that cuDNN thinks of. */
typedef struct cudnn_advice {
    int algorithm;        /* cuDNN's number */
    bool usable;          /* and the same bits in every run */
    cudnnMathType_t math; /* to be set in the descriptor */
} cudnn_advice;
enum { CUDNN_ADVICE = 16 };

/* What cuDNN advises for the descriptors, best first; how many. */
int cudnn_advise(const cudnn_calculator *calculator, const cudnn_kept *kept, cudnn_advice *list);
/* Bytes of scratch space; fails where the algorithm does not take the descriptors. */
cudnnStatus_t cudnn_ask_workspace(const cudnn_calculator *calculator, const cudnn_kept *kept, int algorithm,
                                  size_t *bytes);

/* ---- convolution.c ---- */

/* Bytes at the workspace's start for weights channels last, which are only there where they have not been prepacked. */
int64_t cudnn_weights_bytes(const sdlf_operation *operation);

#endif
