/* SPDX-License-Identifier: MIT */
/* conv2d + ReLU + max-pool: forward, by kernels for row-major activations or by those over boxes (conv2d/halo16.h) for such as lie channels
 * last; of the backward pass, what is supported, and its parts in order. */
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

#include "calculators/cuda/conv2d/halo16.h"

bool conv2d_pool_forward_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    return sdlf_operation_is_channels_last(op) ? cuda_halo16_pool_takes(base, op) : conv2d_pool_supports_cuda(base, op);
}

int64_t conv2d_pool_forward_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    return sdlf_operation_is_channels_last(op) ? cuda_halo16_pool_workspace(base, op) : 0;
}

int64_t conv2d_pool_forward_prepared_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    return sdlf_operation_is_channels_last(op) ? cuda_halo16_pool_prepared(base, op) : 0;
}

sdlf_status conv2d_pool_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return sdlf_operation_is_channels_last(op) ? conv2d_halo16_pool_cuda(base, op)
                                               : conv2d_relu_max_pool_forward_cuda(base, op);
}

bool conv2d_pool_backward_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const sdlf_tensor *dy = &op->in[op->kind == SDLF_CONV2D_RELU_MAX_POOL_BACKWARD ? 2 : 1];
    return conv2d_pool_supports_cuda(base, op) &&
           cuda_conv2d_pool_weights_memory(calculator, op) <= calculator->shared_most &&
           cuda_conv2d_pool_input_fits(calculator, op, dy);
}

int64_t conv2d_pool_backward_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    bool updates = op->kind == SDLF_CONV2D_RELU_MAX_POOL_BACKWARD_SGD;
    if (!updates && !sdlf_tensor_present(&op->out[0]) && !sdlf_tensor_present(&op->out[1])) return 0;
    return cuda_conv2d_pool_weights_workspace((const cuda_calculator *)base, op);
}

sdlf_status conv2d_relu_max_pool_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_present(&op->out[0]) || sdlf_tensor_present(&op->out[1]))
        status = cuda_conv2d_pool_weights(base, op);
    if (status != SDLF_OK || !sdlf_tensor_present(&op->out[2])) return status;
    return cuda_conv2d_pool_input(base, op, &op->in[1], &op->in[2], &op->in[3], &op->out[2]);
}

/* dx wants the weights before their update. */
sdlf_status conv2d_relu_max_pool_backward_sgd_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_present(&op->out[4]))
        status = cuda_conv2d_pool_input(base, op, &op->out[0], &op->in[1], &op->in[2], &op->out[4]);
    return status == SDLF_OK ? cuda_conv2d_pool_weights(base, op) : status;
}
