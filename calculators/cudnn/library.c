/* SPDX-License-Identifier: MIT */
/* Loads cuDNN: from the system loader's search path, or else from where it was found at build time. */
#include "calculators/cudnn/library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void *load(void)
{
    void *handle = dlopen(SDLF_CUDNN_FILE, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) return handle;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", SDLF_CUDNN_FOLDER, SDLF_CUDNN_FILE);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

sdlf_status cudnn_load(cudnn_library *library)
{
    static const struct entry {
        const char *name;
        size_t offset; /* in the table */
    } entries[] = {
        {"cudnnGetVersion", offsetof(cudnn_library, version)},
        {"cudnnGetErrorString", offsetof(cudnn_library, error_string)},
        {"cudnnCreate", offsetof(cudnn_library, create)},
        {"cudnnDestroy", offsetof(cudnn_library, destroy)},
        {"cudnnSetStream", offsetof(cudnn_library, set_stream)},
        {"cudnnCreateTensorDescriptor", offsetof(cudnn_library, tensor_create)},
        {"cudnnDestroyTensorDescriptor", offsetof(cudnn_library, tensor_destroy)},
        {"cudnnSetTensor4dDescriptor", offsetof(cudnn_library, tensor_set)},
        {"cudnnCreateFilterDescriptor", offsetof(cudnn_library, filter_create)},
        {"cudnnDestroyFilterDescriptor", offsetof(cudnn_library, filter_destroy)},
        {"cudnnSetFilter4dDescriptor", offsetof(cudnn_library, filter_set)},
        {"cudnnCreateConvolutionDescriptor", offsetof(cudnn_library, convolution_create)},
        {"cudnnDestroyConvolutionDescriptor", offsetof(cudnn_library, convolution_destroy)},
        {"cudnnSetConvolution2dDescriptor", offsetof(cudnn_library, convolution_set)},
        {"cudnnSetConvolutionGroupCount", offsetof(cudnn_library, convolution_set_groups)},
        {"cudnnSetConvolutionMathType", offsetof(cudnn_library, convolution_set_math)},
        {"cudnnCreatePoolingDescriptor", offsetof(cudnn_library, pooling_create)},
        {"cudnnDestroyPoolingDescriptor", offsetof(cudnn_library, pooling_destroy)},
        {"cudnnSetPooling2dDescriptor", offsetof(cudnn_library, pooling_set)},
        {"cudnnCreateActivationDescriptor", offsetof(cudnn_library, activation_create)},
        {"cudnnDestroyActivationDescriptor", offsetof(cudnn_library, activation_destroy)},
        {"cudnnSetActivationDescriptor", offsetof(cudnn_library, activation_set)},
        {"cudnnGetConvolutionForwardAlgorithm_v7", offsetof(cudnn_library, choose_forward)},
        {"cudnnGetConvolutionBackwardDataAlgorithm_v7", offsetof(cudnn_library, choose_backward_input)},
        {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", offsetof(cudnn_library, choose_backward_weights)},
        {"cudnnGetConvolutionForwardWorkspaceSize", offsetof(cudnn_library, forward_workspace)},
        {"cudnnGetConvolutionBackwardDataWorkspaceSize", offsetof(cudnn_library, backward_input_workspace)},
        {"cudnnGetConvolutionBackwardFilterWorkspaceSize", offsetof(cudnn_library, backward_weights_workspace)},
        {"cudnnConvolutionForward", offsetof(cudnn_library, convolve)},
        {"cudnnConvolutionBiasActivationForward", offsetof(cudnn_library, convolve_fused)},
        {"cudnnConvolutionBackwardData", offsetof(cudnn_library, backward_input)},
        {"cudnnConvolutionBackwardFilter", offsetof(cudnn_library, backward_weights)},
        {"cudnnConvolutionBackwardBias", offsetof(cudnn_library, backward_bias)},
        {"cudnnPoolingForward", offsetof(cudnn_library, pool)},
        {"cudnnPoolingBackward", offsetof(cudnn_library, pool_backward)},
        {"cudnnActivationForward", offsetof(cudnn_library, activate)},
        {"cudnnActivationBackward", offsetof(cudnn_library, activate_backward)},
        {"cudnnSoftmaxForward", offsetof(cudnn_library, softmax)},
        {"cudnnSoftmaxBackward", offsetof(cudnn_library, softmax_backward)},
        {"cudnnBatchNormalizationForwardInference", offsetof(cudnn_library, normalize)},
        {"cudnnBatchNormalizationForwardTraining", offsetof(cudnn_library, normalize_training)},
        {"cudnnBatchNormalizationBackward", offsetof(cudnn_library, normalize_backward)},
    };
    void *handle = load();
    if (handle == NULL) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "cuDNN is needed and was not found: %s", dlerror());
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(handle, entries[i].name);
        if (symbol == NULL) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "cuDNN has no %s: %s", entries[i].name, dlerror());
        memcpy((char *)library + entries[i].offset, &symbol, sizeof symbol);
    }
    return SDLF_OK;
}
