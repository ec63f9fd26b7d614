/* SPDX-License-Identifier: MIT */
/* The cudnn calculator's class: that of cuda, except for the slots that cuDNN implements. */
#include "calculators/cudnn/cudnn.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calculators/cuda/slots.h"
#include "calculators/registry.h"

static_assert(offsetof(cudnn_calculator, cuda) == 0, "the cuda calculator must be first");

cudnn_calculator *cudnn_calculator_from(sdlf_calculator *calculator)
{
    assert(calculator->type == &sdlf_cudnn_calculator_class);
    return (cudnn_calculator *)cuda_calculator_from(calculator);
}

sdlf_status cudnn_check(const cudnn_calculator *calculator, cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_DEVICE, "%s: cuDNN says %s", what, calculator->library->error_string(status));
}

static void close_cudnn(sdlf_calculator *base)
{
    cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudaStreamSynchronize(calculator->cuda.stream);
    cudnn_forget(calculator);
    if (calculator->handle != NULL) calculator->library->destroy(calculator->handle);
    free(calculator->library);
    calculator->library = NULL;
    close_cuda(base);
}

/* cuDNN's bfloat16 math requires bfloat16 tensors, and SDLF's are float32: it would compute in tf32 whatever the mode's name. */
static sdlf_status check_math(const sdlf_calculator_options *options)
{
    if (options == NULL || options->math != SDLF_MATH_BF16) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                     "cuDNN computes float32 tensors in fp32, tf32 or fp16, not in bf16; 'cuda' has bf16");
}

static sdlf_status open_cudnn(sdlf_calculator *base, const sdlf_calculator_options *options)
{
    sdlf_status wrong = check_math(options);
    if (wrong != SDLF_OK) return wrong;
    sdlf_status status = open_cuda(base, options);
    if (status != SDLF_OK) return status;
    cudnn_calculator *calculator = cudnn_calculator_from(base);
    calculator->library = calloc(1, sizeof *calculator->library);
    if (calculator->library == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a calculator");
    if (status == SDLF_OK) status = cudnn_load(calculator->library);
    if (status == SDLF_OK) {
        const cudnn_library *library = calculator->library;
        status = cudnn_check(calculator, library->create(&calculator->handle), "opening cuDNN");
        if (status == SDLF_OK)
            status = cudnn_check(calculator, library->set_stream(calculator->handle, calculator->cuda.stream),
                                 "cuDNN's stream");
    }
    if (status != SDLF_OK) close_cudnn(base);
    return status;
}

/* "cuDNN 9.19.0, NVIDIA H200, ..." */
static void describe_cudnn(const sdlf_calculator *base, char *text, size_t size)
{
    size_t version = ((const cudnn_calculator *)base)->library->version();
    int length = snprintf(text, size, "cuDNN %zu.%zu.%zu, ", version / 10000, version / 100 % 100, version % 100);
    if (length > 0 && (size_t)length < size) describe_cuda(base, text + length, size - (size_t)length);
}

/* The later of two designators for one slot takes effect. */
#pragma GCC diagnostic ignored "-Woverride-init"

static const sdlf_fused_slot fusions[] = {CUDA_GEMM_FUSION, {.fusion = NULL}};

const sdlf_calculator_class sdlf_cudnn_calculator_class = {
    .name = "cudnn",
    .summary = "one NVIDIA GPU, with cuDNN's kernels where it has some",
    .size = sizeof(cudnn_calculator),
    .has_math = true,
    .open = open_cudnn,
    .close = close_cudnn,
    .describe = describe_cudnn,
    CUDA_METHODS,
    .fusions = fusions,
    .kernel =
        {
            CUDA_SLOTS,
            [SDLF_CONV2D_FORWARD] = {.run = conv2d_forward_cudnn,
                                     .supports = conv2d_supports_cudnn,
                                     .workspace = conv2d_workspace_cudnn,
                                     .algorithms = conv2d_forward_algorithms_cudnn,
                                     .notes = conv2d_forward_notes_cudnn,
                                     .automatic = conv2d_automatic_cudnn,
                                     .channels_last = true,
                                     .prefers_channels_last = conv2d_prefers_channels_last_cudnn,
                                     .prepared = conv2d_prepared_cudnn,
                                     .prepare = conv2d_prepare_cudnn},
            [SDLF_CONV2D_BACKWARD_INPUT] = {.run = conv2d_backward_input_cudnn,
                                            .supports = conv2d_supports_cudnn,
                                            .workspace = conv2d_workspace_cudnn,
                                            .algorithms = conv2d_backward_input_algorithms_cudnn,
                                            .automatic = conv2d_automatic_cudnn},
            [SDLF_CONV2D_BACKWARD_WEIGHTS] = {.run = conv2d_backward_weights_cudnn,
                                              .supports = conv2d_supports_cudnn,
                                              .workspace = conv2d_workspace_cudnn,
                                              .algorithms = conv2d_backward_weights_algorithms_cudnn,
                                              .automatic = conv2d_automatic_cudnn},
            [SDLF_MAX_POOL2D_FORWARD] = {.run = max_pool2d_forward_cudnn,
                                         .supports = pool2d_supports_cudnn,
                                         .channels_last = true},
            [SDLF_AVG_POOL2D_FORWARD] = {.run = avg_pool2d_forward_cudnn,
                                         .supports = pool2d_supports_cudnn,
                                         .channels_last = true},
            [SDLF_AVG_POOL2D_BACKWARD] = {.run = avg_pool2d_backward_cudnn, .supports = pool2d_supports_cudnn},
            [SDLF_ACTIVATION_FORWARD] = {.run = activation_forward_cudnn, .supports = activation_supports_cudnn},
            [SDLF_ACTIVATION_BACKWARD] = {.run = activation_backward_cudnn, .supports = activation_supports_cudnn},
            [SDLF_SOFTMAX_FORWARD] = {.run = softmax_forward_cudnn, .supports = softmax_supports_cudnn},
            [SDLF_SOFTMAX_BACKWARD] = {.run = softmax_backward_cudnn, .supports = softmax_supports_cudnn},
            [SDLF_LOG_SOFTMAX_BACKWARD] = {.run = log_softmax_backward_cudnn, .supports = softmax_supports_cudnn},
            [SDLF_BATCH_NORM2D_FORWARD] = {.run = batch_norm2d_forward_cudnn,
                                           .supports = batch_norm2d_supports_cudnn,
                                           .workspace = batch_norm2d_workspace_cuda},
            [SDLF_BATCH_NORM2D_INFER] = {.run = batch_norm2d_infer_cudnn, .supports = batch_norm2d_supports_cudnn},
            [SDLF_BATCH_NORM2D_BACKWARD] = {.run = batch_norm2d_backward_cudnn,
                                            .supports = batch_norm2d_supports_cudnn,
                                            .workspace = batch_norm2d_workspace_cuda},
        },
};
