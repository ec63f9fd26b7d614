/* SPDX-License-Identifier: MIT */
/* Convolution by cuDNN: forward with bias, residual and ReLU in one call if cuDNN can fuse them, else followed by the cuda
 * calculator's epilogue (one more kernel, which reads and writes y); dgrad and wgrad.
 *
 * For NHWC images, cuDNN requires NHWC weights too, (K,R,S,C): they are prepacked once, or repacked into the workspace. */
#include "calculators/cudnn/convolution.h"

#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/conv2d.h"

static const int64_t ALIGNMENT = 256;

/* ---- NHWC weights ---- */

/* Tensor Core kernels read adjacent channels. 1x1 windows alone do not justify converting a network to NHWC: networks made of them have
 * depthwise convolutions in between, for which cuDNN is slower in NHWC. */
bool conv2d_prefers_channels_last_cudnn(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const sdlf_window2d *window = &op->conv2d.window;
    if (op->out[0].dtype != SDLF_FLOAT32 || calculator->math == SDLF_MATH_FP32 || op->conv2d.groups > 1) return false;
    sdlf_operation last = sdlf_operation_channels_last(op);
    return window->size[0] * window->size[1] > 1 && cudnn_convolution(base, &last) != NULL;
}

int64_t conv2d_prepared_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (!sdlf_operation_is_channels_last(op) || cudnn_convolution(calculator, op) == NULL) return 0;
    return sdlf_tensor_bytes(&op->in[1]);
}

int64_t cudnn_weights_bytes(const sdlf_operation *op)
{
    if (!sdlf_operation_is_channels_last(op) || sdlf_tensor_present(&op->prepared)) return 0;
    return (sdlf_tensor_bytes(&op->in[1]) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static sdlf_status lay_out_weights(sdlf_calculator *calculator, const sdlf_tensor *weights, void *to)
{
    sdlf_tensor made = sdlf_tensor_view(weights->dtype, weights->shape, to);
    const sdlf_operation copy = {.kind = SDLF_COPY, .in = {*weights}, .out = {sdlf_tensor_channels_last(made)}};
    return copy_cuda(calculator, &copy);
}

sdlf_status conv2d_prepare_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return lay_out_weights(calculator, &op->in[1], op->prepared.data);
}

/* ---- operations that cuDNN does not support after all ---- */

/* Run the cuda calculator's kernel; `plain` if the workspace has not been sized for it. */
static sdlf_status delegate(sdlf_calculator *calculator, const sdlf_operation *op, bool plain)
{
    sdlf_operation other = *op;
    other.algorithm = 0;
    other.prepared = (sdlf_tensor){.dtype = SDLF_NONE};
    if (!plain) return conv2d_cuda(calculator, &other);
    switch (op->kind) {
    case SDLF_CONV2D_FORWARD: return conv2d_forward_direct_cuda(calculator, &other);
    case SDLF_CONV2D_BACKWARD_INPUT: return conv2d_backward_input_direct_cuda(calculator, &other);
    default: return conv2d_backward_weights_direct_cuda(calculator, &other);
    }
}

static bool is_refusal(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_NOT_SUPPORTED || CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

/* ---- the three kinds ---- */

typedef struct call {
    cudnn_calculator *calculator;
    cudnn_kept *kept;
    const void *weights;
    void *workspace;
} call;

/* False if cuDNN does not compute the operation; *status is then the result of the fallback. */
static bool begin(call *c, sdlf_calculator *calculator, const sdlf_operation *op, sdlf_status *status)
{
    bool last = sdlf_operation_is_channels_last(op);
    c->kept = cudnn_convolution(calculator, op);
    c->calculator = cudnn_calculator_from(calculator);
    c->weights = op->in[1].data;
    c->workspace = op->workspace.data;
    *status = SDLF_OK;
    if (c->kept == NULL || (!last && !cudnn_is_aligned(op))) {
        *status = delegate(calculator, op, c->kept != NULL);
        return false;
    }
    if (!last) return true;
    int64_t bytes = cudnn_weights_bytes(op);
    c->weights = bytes > 0 ? op->workspace.data : op->prepared.data;
    c->workspace = bytes > 0 ? (char *)op->workspace.data + bytes : op->workspace.data;
    if (bytes > 0) *status = lay_out_weights(calculator, &op->in[1], op->workspace.data);
    return *status == SDLF_OK;
}

/* Handle the result of a cuDNN call: an operation may be refused only by the call itself. */
static sdlf_status end(const call *c, cudnnStatus_t status, const sdlf_operation *op)
{
    if (is_refusal(status) && !sdlf_operation_is_channels_last(op))
        return delegate(&c->calculator->cuda.base, op, true);
    return cudnn_check(c->calculator, status, sdlf_operation_type(op)->name);
}

static cudnnStatus_t convolve_fused(const call *c, const sdlf_operation *op)
{
    const cudnn_library *library = c->calculator->library;
    const cudnn_kept *k = c->kept;
    bool residual = sdlf_tensor_present(&op->in[3]);
    cudnn_scalar one = cudnn_number(k->key.dtype, 1), added = cudnn_number(k->key.dtype, residual ? 1 : 0);
    return library->convolve_fused(c->calculator->handle, &one, k->tensor[CONVOLUTION_X], op->in[0].data, k->filter,
                                   c->weights, k->convolution, (cudnnConvolutionFwdAlgo_t)k->algorithm, c->workspace,
                                   k->workspace, &added, k->tensor[CONVOLUTION_Y],
                                   residual ? op->in[3].data : op->out[0].data, k->tensor[CONVOLUTION_BIAS],
                                   op->in[2].data, k->activation, k->tensor[CONVOLUTION_Y], op->out[0].data);
}

static sdlf_status add_epilogue(sdlf_calculator *calculator, const sdlf_operation *op, bool residual)
{
    const sdlf_tensor *y = &op->out[0];
    bool last = sdlf_operation_is_channels_last(op);
    const cuda_epilogue epilogue = {
        .dtype = y->dtype,
        .data = y->data,
        .bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL,
        .residual = residual ? op->in[3].data : NULL,
        .count = sdlf_tensor_count(y),
        .channels = y->shape.dim[1],
        .area = last ? 1 : y->shape.dim[2] * y->shape.dim[3],
        .activation = op->conv2d.activation,
    };
    if (epilogue.bias == NULL && epilogue.residual == NULL && epilogue.activation.function == SDLF_IDENTITY)
        return SDLF_OK;
    return cuda_apply_epilogue(calculator, &epilogue);
}

sdlf_status conv2d_forward_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    call c;
    sdlf_status status;
    if (!begin(&c, calculator, op, &status)) return status;
    cudnn_kept *k = c.kept;
    if (k->activation != NULL && !k->unfused) {
        cudnnStatus_t fused = convolve_fused(&c, op);
        if (!is_refusal(fused)) return end(&c, fused, op);
        k->unfused = true;
    }
    /* if the residual is y itself, the convolution accumulates into it */
    bool residual = sdlf_tensor_present(&op->in[3]), within = residual && op->in[3].data == op->out[0].data;
    cudnn_scalar one = cudnn_number(k->key.dtype, 1), beta = cudnn_number(k->key.dtype, within ? 1 : 0);
    cudnnStatus_t made =
        c.calculator->library->convolve(c.calculator->handle, &one, k->tensor[CONVOLUTION_X], op->in[0].data, k->filter,
                                        c.weights, k->convolution, (cudnnConvolutionFwdAlgo_t)k->algorithm, c.workspace,
                                        k->workspace, &beta, k->tensor[CONVOLUTION_Y], op->out[0].data);
    if (made != CUDNN_STATUS_SUCCESS) return end(&c, made, op);
    return add_epilogue(calculator, op, residual && !within);
}

sdlf_status conv2d_backward_input_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    call c;
    sdlf_status status;
    if (!begin(&c, calculator, op, &status)) return status;
    const cudnn_kept *k = c.kept;
    cudnn_scalar one = cudnn_number(k->key.dtype, 1), zero = cudnn_number(k->key.dtype, 0);
    cudnnStatus_t made = c.calculator->library->backward_input(
        c.calculator->handle, &one, k->filter, c.weights, k->tensor[CONVOLUTION_Y], op->in[0].data, k->convolution,
        (cudnnConvolutionBwdDataAlgo_t)k->algorithm, c.workspace, k->workspace, &zero, k->tensor[CONVOLUTION_X],
        op->out[0].data);
    return end(&c, made, op);
}

sdlf_status conv2d_backward_weights_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    call c;
    sdlf_status status;
    if (!begin(&c, calculator, op, &status)) return status;
    const cudnn_kept *k = c.kept;
    cudnn_scalar one = cudnn_number(k->key.dtype, 1), zero = cudnn_number(k->key.dtype, 0);
    cudnnStatus_t made = c.calculator->library->backward_weights(
        c.calculator->handle, &one, k->tensor[CONVOLUTION_X], op->in[0].data, k->tensor[CONVOLUTION_Y], op->in[1].data,
        k->convolution, (cudnnConvolutionBwdFilterAlgo_t)k->algorithm, c.workspace, k->workspace, &zero, k->filter,
        op->out[0].data);
    if (made != CUDNN_STATUS_SUCCESS || !sdlf_tensor_present(&op->out[1])) return end(&c, made, op);
    made = c.calculator->library->backward_bias(c.calculator->handle, &one, k->tensor[CONVOLUTION_Y], op->in[1].data,
                                                &zero, k->tensor[CONVOLUTION_BIAS], op->out[1].data);
    return cudnn_check(c.calculator, made, "conv2d_backward_weights: the bias");
}
