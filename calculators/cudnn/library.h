/* SPDX-License-Identifier: MIT */
/* cuDNN, loaded only when the first cudnn calculator is opened, like cuBLAS: its parts are a gigabyte. */
#ifndef SDLF_CALCULATORS_CUDNN_LIBRARY_H
#define SDLF_CALCULATORS_CUDNN_LIBRARY_H

#include <cudnn.h>

#include <sdlf/status.h>

/* The functions that are called, under their own names without the prefix. */
typedef struct cudnn_library {
    __typeof__(&cudnnGetVersion) version;
    __typeof__(&cudnnGetErrorString) error_string;
    __typeof__(&cudnnCreate) create;
    __typeof__(&cudnnDestroy) destroy;
    __typeof__(&cudnnSetStream) set_stream;

    __typeof__(&cudnnCreateTensorDescriptor) tensor_create;
    __typeof__(&cudnnDestroyTensorDescriptor) tensor_destroy;
    __typeof__(&cudnnSetTensor4dDescriptor) tensor_set;
    __typeof__(&cudnnCreateFilterDescriptor) filter_create;
    __typeof__(&cudnnDestroyFilterDescriptor) filter_destroy;
    __typeof__(&cudnnSetFilter4dDescriptor) filter_set;
    __typeof__(&cudnnCreateConvolutionDescriptor) convolution_create;
    __typeof__(&cudnnDestroyConvolutionDescriptor) convolution_destroy;
    __typeof__(&cudnnSetConvolution2dDescriptor) convolution_set;
    __typeof__(&cudnnSetConvolutionGroupCount) convolution_set_groups;
    __typeof__(&cudnnSetConvolutionMathType) convolution_set_math;
    __typeof__(&cudnnCreatePoolingDescriptor) pooling_create;
    __typeof__(&cudnnDestroyPoolingDescriptor) pooling_destroy;
    __typeof__(&cudnnSetPooling2dDescriptor) pooling_set;
    __typeof__(&cudnnCreateActivationDescriptor) activation_create;
    __typeof__(&cudnnDestroyActivationDescriptor) activation_destroy;
    __typeof__(&cudnnSetActivationDescriptor) activation_set;

    __typeof__(&cudnnGetConvolutionForwardAlgorithm_v7) choose_forward;
    __typeof__(&cudnnGetConvolutionBackwardDataAlgorithm_v7) choose_backward_input;
    __typeof__(&cudnnGetConvolutionBackwardFilterAlgorithm_v7) choose_backward_weights;
    __typeof__(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace;
    __typeof__(&cudnnGetConvolutionBackwardDataWorkspaceSize) backward_input_workspace;
    __typeof__(&cudnnGetConvolutionBackwardFilterWorkspaceSize) backward_weights_workspace;
    __typeof__(&cudnnConvolutionForward) convolve;
    __typeof__(&cudnnConvolutionBiasActivationForward) convolve_fused;
    __typeof__(&cudnnConvolutionBackwardData) backward_input;
    __typeof__(&cudnnConvolutionBackwardFilter) backward_weights;
    __typeof__(&cudnnConvolutionBackwardBias) backward_bias;

    __typeof__(&cudnnPoolingForward) pool;
    __typeof__(&cudnnPoolingBackward) pool_backward;
    __typeof__(&cudnnActivationForward) activate;
    __typeof__(&cudnnActivationBackward) activate_backward;
    __typeof__(&cudnnSoftmaxForward) softmax;
    __typeof__(&cudnnSoftmaxBackward) softmax_backward;
    __typeof__(&cudnnBatchNormalizationForwardInference) normalize;
    __typeof__(&cudnnBatchNormalizationForwardTraining) normalize_training;
    __typeof__(&cudnnBatchNormalizationBackward) normalize_backward;
} cudnn_library;

/* Fill the table; the library then stays loaded until the process ends. Errors: SDLF_ERROR_UNSUPPORTED with the loader's message. */
sdlf_status cudnn_load(cudnn_library *library);

#endif
