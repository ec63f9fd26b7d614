/* SPDX-License-Identifier: MIT */
/* cuDNN's heuristics for its algorithms, with one interface for the three kinds of convolution. */
#include "calculators/cudnn/convolution.h"

static int advise_forward(const cudnn_calculator *c, const cudnn_kept *k, cudnn_advice *list)
{
    cudnnConvolutionFwdAlgoPerf_t found[CUDNN_ADVICE];
    int count = 0;
    if (c->library->choose_forward(c->handle, k->tensor[CONVOLUTION_X], k->filter, k->convolution,
                                   k->tensor[CONVOLUTION_Y], CUDNN_ADVICE, &count, found) != CUDNN_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < count; i++)
        list[i] = (cudnn_advice){(int)found[i].algo,
                                 found[i].status == CUDNN_STATUS_SUCCESS && found[i].determinism == CUDNN_DETERMINISTIC,
                                 found[i].mathType};
    return count;
}

static int advise_backward_input(const cudnn_calculator *c, const cudnn_kept *k, cudnn_advice *list)
{
    cudnnConvolutionBwdDataAlgoPerf_t found[CUDNN_ADVICE];
    int count = 0;
    if (c->library->choose_backward_input(c->handle, k->filter, k->tensor[CONVOLUTION_Y], k->convolution,
                                          k->tensor[CONVOLUTION_X], CUDNN_ADVICE, &count,
                                          found) != CUDNN_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < count; i++)
        list[i] = (cudnn_advice){(int)found[i].algo,
                                 found[i].status == CUDNN_STATUS_SUCCESS && found[i].determinism == CUDNN_DETERMINISTIC,
                                 found[i].mathType};
    return count;
}

static int advise_backward_weights(const cudnn_calculator *c, const cudnn_kept *k, cudnn_advice *list)
{
    cudnnConvolutionBwdFilterAlgoPerf_t found[CUDNN_ADVICE];
    int count = 0;
    if (c->library->choose_backward_weights(c->handle, k->tensor[CONVOLUTION_X], k->tensor[CONVOLUTION_Y],
                                            k->convolution, k->filter, CUDNN_ADVICE, &count,
                                            found) != CUDNN_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < count; i++)
        list[i] = (cudnn_advice){(int)found[i].algo,
                                 found[i].status == CUDNN_STATUS_SUCCESS && found[i].determinism == CUDNN_DETERMINISTIC,
                                 found[i].mathType};
    return count;
}

int cudnn_advise(const cudnn_calculator *calculator, const cudnn_kept *kept, cudnn_advice *list)
{
    switch (kept->key.kind) {
    case SDLF_CONV2D_FORWARD: return advise_forward(calculator, kept, list);
    case SDLF_CONV2D_BACKWARD_INPUT: return advise_backward_input(calculator, kept, list);
    default: return advise_backward_weights(calculator, kept, list);
    }
}

cudnnStatus_t cudnn_ask_workspace(const cudnn_calculator *c, const cudnn_kept *k, int algorithm, size_t *bytes)
{
    switch (k->key.kind) {
    case SDLF_CONV2D_FORWARD:
        return c->library->forward_workspace(c->handle, k->tensor[CONVOLUTION_X], k->filter, k->convolution,
                                             k->tensor[CONVOLUTION_Y], (cudnnConvolutionFwdAlgo_t)algorithm, bytes);
    case SDLF_CONV2D_BACKWARD_INPUT:
        return c->library->backward_input_workspace(c->handle, k->filter, k->tensor[CONVOLUTION_Y], k->convolution,
                                                    k->tensor[CONVOLUTION_X], (cudnnConvolutionBwdDataAlgo_t)algorithm,
                                                    bytes);
    default:
        return c->library->backward_weights_workspace(c->handle, k->tensor[CONVOLUTION_X], k->tensor[CONVOLUTION_Y],
                                                      k->convolution, k->filter,
                                                      (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes);
    }
}
