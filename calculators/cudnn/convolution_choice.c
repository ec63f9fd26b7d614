/* SPDX-License-Identifier: MIT */
/* Which of cuDNN's algorithms computes a convolution.
 *
 * "auto" follows cuDNN's own advice (cudnnGetConvolution..._v7): the first algorithm in its list that is deterministic and needs at
 * most 1 GiB of workspace. The others can be requested by name, and compared for a plan file. "cuda" is the cuda calculator's own
 * rule, which also computes what cuDNN does not support, for instance padding that differs from side to side.
 *
 * Math: in fp32 without Tensor Cores; in tf32 with whatever cuDNN offers for float32 tensors; in fp16 with permission to round
 * operands to float16 too, which cuDNN does not use where there is TF32. There is no such permission for bf16: it would compute as in
 * tf32, which rounds less. */
#include <string.h>

#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cudnn/convolution.h"

static const size_t MOST_WORKSPACE = (size_t)1 << 30;

/* Names, and cuDNN's enum values for them. Non-deterministic algorithms are left out. */
const char *const conv2d_forward_algorithms_cudnn[] = {
    "auto",       "implicit-gemm", "implicit-precomp-gemm", "gemm", "fft",
    "fft-tiling", "winograd",      "winograd-nonfused",     "cuda", NULL};
const char *const conv2d_backward_input_algorithms_cudnn[] = {"auto",     "algorithm-1",       "fft",  "fft-tiling",
                                                              "winograd", "winograd-nonfused", "cuda", NULL};
const char *const conv2d_backward_weights_algorithms_cudnn[] = {
    "auto", "algorithm-1", "fft", "fft-tiling", "winograd-nonfused", "cuda", NULL};

const sdlf_algorithm_note conv2d_forward_notes_cudnn[] = {
    {.summary = "cuDNN's own choice"},
    {.summary = "a product that gathers its operand as it goes"},
    {.summary = "the same, with precomputed indices"},
    {.summary = "im2col, then a product"},
    {.summary = "by Fourier transforms of whole images"},
    {.summary = "by Fourier transforms of tiles"},
    {.summary = "Winograd's minimal filtering in one kernel"},
    {.summary = "Winograd's, its steps one after the other", .takes = "3x3 windows"},
    {.summary = "the cuda calculator's own choice"},
};

static const int forward_numbers[] = {
    -1,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
};
static const int backward_input_numbers[] = {
    -1,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
};
static const int backward_weights_numbers[] = {
    -1,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
};

/* The enum values for a kind; their count is the index of "cuda". */
static const int *numbers_of(int32_t kind, int *count)
{
    switch (kind) {
    case SDLF_CONV2D_FORWARD: *count = sizeof forward_numbers / sizeof *forward_numbers; return forward_numbers;
    case SDLF_CONV2D_BACKWARD_INPUT:
        *count = sizeof backward_input_numbers / sizeof *backward_input_numbers;
        return backward_input_numbers;
    default:
        *count = sizeof backward_weights_numbers / sizeof *backward_weights_numbers;
        return backward_weights_numbers;
    }
}

/* ---- the choice ---- */

static cudnnMathType_t math_of(const cudnn_calculator *calculator, int32_t dtype)
{
    if (dtype == SDLF_FLOAT64) return CUDNN_DEFAULT_MATH;
    switch (calculator->cuda.math) {
    case SDLF_MATH_FP32: return CUDNN_FMA_MATH;
    case SDLF_MATH_FP16: return CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    default: return CUDNN_DEFAULT_MATH;
    }
}

/* For 5x5 windows, the rounding errors of Winograd are a thousand times those of the others. */
static bool is_inexact(const cudnn_key *key, int algorithm)
{
    bool winograd = key->kind == SDLF_CONV2D_FORWARD ? algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED
                    : key->kind == SDLF_CONV2D_BACKWARD_INPUT
                        ? algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED
                        : algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
    return winograd && (key->size[0] != 3 || key->size[1] != 3);
}

static bool takes(cudnn_calculator *calculator, cudnn_kept *kept, int algorithm, cudnnMathType_t math)
{
    size_t bytes = 0;
    if (is_inexact(&kept->key, algorithm)) return false;
    if (calculator->library->convolution_set_math(kept->convolution, math) != CUDNN_STATUS_SUCCESS) return false;
    if (cudnn_ask_workspace(calculator, kept, algorithm, &bytes) != CUDNN_STATUS_SUCCESS || bytes > MOST_WORKSPACE)
        return false;
    kept->algorithm = algorithm;
    kept->workspace = bytes;
    return true;
}

static cudnnStatus_t choose(cudnn_calculator *calculator, cudnn_kept *kept)
{
    int count;
    const int *numbers = numbers_of(kept->key.kind, &count);
    cudnnMathType_t allowed = math_of(calculator, kept->key.dtype);
    if (calculator->library->convolution_set_math(kept->convolution, allowed) != CUDNN_STATUS_SUCCESS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    cudnn_advice list[CUDNN_ADVICE];
    int wanted = numbers[kept->key.algorithm], listed = cudnn_advise(calculator, kept, list);
    for (int i = 0; i < listed; i++) {
        if (!list[i].usable || (wanted >= 0 && list[i].algorithm != wanted)) continue;
        cudnnMathType_t math = allowed == CUDNN_FMA_MATH ? allowed : list[i].math;
        if (takes(calculator, kept, list[i].algorithm, math)) return CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}

static cudnnStatus_t make(cudnn_calculator *calculator, cudnn_kept *kept)
{
    const cudnn_library *library = calculator->library;
    const cudnn_key *key = &kept->key;
    const int64_t *w = key->shape[1], bias[4] = {1, w[0], 1, 1};
    cudnnTensorFormat_t format = key->last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    cudnnStatus_t status = cudnn_describe(calculator, &kept->tensor[CONVOLUTION_X], key, key->shape[0]);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_describe(calculator, &kept->tensor[CONVOLUTION_Y], key, key->shape[2]);
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn_describe(calculator, &kept->tensor[CONVOLUTION_BIAS], key, bias);
    if (status == CUDNN_STATUS_SUCCESS) status = library->filter_create(&kept->filter);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library->filter_set(kept->filter, cudnn_type(key->dtype), format, (int)w[0], (int)w[1], (int)w[2],
                                     (int)w[3]);
    if (status == CUDNN_STATUS_SUCCESS) status = library->convolution_create(&kept->convolution);
    if (status == CUDNN_STATUS_SUCCESS)
        status = library->convolution_set(kept->convolution, key->padding[0], key->padding[1], key->stride[0],
                                          key->stride[1], key->dilation[0], key->dilation[1], CUDNN_CROSS_CORRELATION,
                                          cudnn_type(key->dtype));
    if (status == CUDNN_STATUS_SUCCESS) status = library->convolution_set_groups(kept->convolution, key->groups);
    if (status == CUDNN_STATUS_SUCCESS) status = choose(calculator, kept);
    if (status != CUDNN_STATUS_SUCCESS || !key->fused) return status;
    status = library->activation_create(&kept->activation);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return library->activation_set(kept->activation,
                                   key->mode == SDLF_RELU ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                   CUDNN_PROPAGATE_NAN, 0);
}

/* Empty tensors have a side of 0, which cudnn_describe refuses. */
static bool key_of(const sdlf_operation *op, cudnn_key *key)
{
    const sdlf_tensor *x, *w, *y;
    int count;
    cuda_conv2d_operands(op, &x, &w, &y);
    *key = cudnn_key_of(op);
    cudnn_key_set_shape(key, 0, x->shape);
    cudnn_key_set_shape(key, 1, w->shape);
    cudnn_key_set_shape(key, 2, y->shape);
    key->groups = op->conv2d.groups;
    numbers_of(key->kind, &count);
    if (!cudnn_key_set_window(key, &op->conv2d.window) || op->algorithm >= count || sdlf_tensor_count(w) == 0 ||
        sdlf_tensor_count(w) > INT32_MAX)
        return false;
    if (op->kind != SDLF_CONV2D_FORWARD || !sdlf_tensor_present(&op->in[2])) return true;
    key->mode = (int32_t)op->conv2d.activation.function;
    key->fused = key->mode == SDLF_RELU || key->mode == SDLF_IDENTITY;
    if (!key->fused) key->mode = 0;
    return true;
}

cudnn_kept *cudnn_convolution(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cudnn_key key;
    return key_of(op, &key) ? cudnn_find(calculator, &key, make) : NULL;
}

/* ---- slots ---- */

/* "auto" and "cuda" support what the cuda calculator supports. */
bool conv2d_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    int cuda;
    numbers_of(op->kind, &cuda);
    bool beside = op->in[1].dtype != op->in[0].dtype; /* float32 weights with 16-bit images */
    if (op->kind == SDLF_CONV2D_BACKWARD_INPUT && (sdlf_tensor_present(&op->in[2]) || beside)) return false;
    if (cudnn_convolution(calculator, op) != NULL) return true;
    sdlf_operation other = *op;
    other.algorithm = 0;
    bool named = op->algorithm != 0 && op->algorithm != cuda;
    return !named && !sdlf_operation_is_channels_last(op) && conv2d_supports_cuda(calculator, &other);
}

int conv2d_automatic_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    int cuda;
    const int *numbers = numbers_of(op->kind, &cuda);
    const cudnn_kept *kept = cudnn_convolution(calculator, op);
    for (int i = 1; kept != NULL && i < cuda; i++) {
        if (numbers[i] == kept->algorithm) return i;
    }
    return cuda;
}

int64_t conv2d_workspace_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    const cudnn_kept *kept = cudnn_convolution(calculator, op);
    if (kept != NULL) return cudnn_weights_bytes(op) + (int64_t)kept->workspace;
    sdlf_operation other = *op;
    other.algorithm = 0;
    return conv2d_workspace_cuda(calculator, &other);
}
