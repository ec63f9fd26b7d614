/* SPDX-License-Identifier: MIT */
/* The cudnn calculator: the cuda calculator with NVIDIA's own kernels for convolution, pooling, batch normalisation, softmax
 * and the most common activations. It exists as a baseline for measurements. What cuDNN does not support, and every other
 * operation, is computed by the cuda calculator's kernels, in the same memory and the same stream. */
#ifndef SDLF_CALCULATORS_CUDNN_H
#define SDLF_CALCULATORS_CUDNN_H

#include "calculators/cuda/cuda.h"
#include "calculators/cudnn/library.h"

/* Everything that the descriptors and the choice of an algorithm depend on; compared byte by byte. */
typedef struct cudnn_key {
    int64_t shape[3][4]; /* x, weights, y; zero if absent */
    double coefficient;  /* of an activation */
    int32_t kind, algorithm, dtype, groups, mode;
    int32_t size[2], stride[2], dilation[2], padding[2];
    int32_t fused; /* there is a bias, and an activation that cuDNN can fuse with it */
    int32_t last;  /* channels last */
} cudnn_key;

/* Descriptors that are created once and used in every run. */
typedef struct cudnn_kept {
    struct cudnn_kept *next;
    cudnn_key key;
    bool taken;    /* supported by cuDNN; else the other members are unused */
    bool unfused;  /* cuDNN has refused the fused convolution */
    int algorithm; /* cuDNN's enum value */
    size_t workspace;
    cudnnTensorDescriptor_t tensor[3];
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t convolution;
    cudnnPoolingDescriptor_t pooling;
    cudnnActivationDescriptor_t activation;
} cudnn_kept;

typedef struct cudnn_calculator {
    cuda_calculator cuda;
    cudnn_library *library; /* owned */
    cudnnHandle_t handle;
    cudnn_kept *kept; /* a list, owned */
} cudnn_calculator;

/* As cuda_calculator_from. */
cudnn_calculator *cudnn_calculator_from(sdlf_calculator *calculator);

/* SDLF_OK, or SDLF_ERROR_DEVICE with `what` failed and cuDNN's error text. */
sdlf_status cudnn_check(const cudnn_calculator *calculator, cudnnStatus_t status, const char *what);

/* ---- descriptors (descriptors.c) ---- */

/* Create the descriptors that the key specifies. */
typedef cudnnStatus_t cudnn_maker(cudnn_calculator *calculator, cudnn_kept *kept);

/* The descriptors for the key, created on first use; NULL if cuDNN does not support it, or memory is exhausted. */
cudnn_kept *cudnn_find(const sdlf_calculator *calculator, const cudnn_key *key, cudnn_maker *make);
void cudnn_forget(cudnn_calculator *calculator);

/* Create the descriptor of a tensor of these four sides; CUDNN_STATUS_NOT_SUPPORTED if they exceed cuDNN's range. */
cudnnStatus_t cudnn_describe(cudnn_calculator *calculator, cudnnTensorDescriptor_t *tensor, const cudnn_key *key,
                             const int64_t side[4]);
cudnnDataType_t cudnn_type(int32_t dtype);

/* The key of an operation, without shapes; then an image's sides, 1 for missing ones. */
cudnn_key cudnn_key_of(const sdlf_operation *operation);
void cudnn_key_set_shape(cudnn_key *key, int which, sdlf_shape shape);
/* Sets the window in the key; false if cuDNN does not support it: its padding is the same on both sides. */
bool cudnn_key_set_window(cudnn_key *key, const sdlf_window2d *window);

/* alpha and beta, which cuDNN reads as double for double tensors and as float for others. */
typedef union cudnn_scalar {
    float single;
    double twice;
} cudnn_scalar;
cudnn_scalar cudnn_number(int32_t dtype, double value);

/* True if every operand begins at a multiple of 16 bytes, as cuDNN's kernels require. */
bool cudnn_is_aligned(const sdlf_operation *operation);

/* ---- kernels ---- */

sdlf_kernel conv2d_forward_cudnn, conv2d_backward_input_cudnn, conv2d_backward_weights_cudnn;
sdlf_kernel max_pool2d_forward_cudnn, avg_pool2d_forward_cudnn, avg_pool2d_backward_cudnn;
sdlf_kernel activation_forward_cudnn, activation_backward_cudnn;
sdlf_kernel softmax_forward_cudnn, softmax_backward_cudnn, log_softmax_backward_cudnn;
sdlf_kernel batch_norm2d_forward_cudnn, batch_norm2d_infer_cudnn, batch_norm2d_backward_cudnn;

bool pool2d_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool activation_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool softmax_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool batch_norm2d_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);

extern const char *const conv2d_forward_algorithms_cudnn[], *const conv2d_backward_input_algorithms_cudnn[],
                                                                *const conv2d_backward_weights_algorithms_cudnn[];
extern const sdlf_algorithm_note conv2d_forward_notes_cudnn[];
bool conv2d_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_workspace_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
int conv2d_automatic_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool conv2d_prefers_channels_last_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t conv2d_prepared_cudnn(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_kernel conv2d_prepare_cudnn;

#endif
