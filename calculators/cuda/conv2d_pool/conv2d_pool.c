/* SPDX-License-Identifier: MIT */
/* conv2d + ReLU + max-pool: forward, by kernels for row-major activations or by those of conv2d/halo16.h for channels
 * last; backward, what is supported, and its parts in order. */
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

#include "calculators/cuda/conv2d/halo16.h"
#include "calculators/fusions/conv2d_pool.h"

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
    return conv2d_pool_supports_cuda(base, op) &&
           cuda_conv2d_pool_weights_memory(calculator, op) <= calculator->shared_most &&
           cuda_conv2d_pool_input_fits(calculator, op);
}

/* True if out[0] is wanted: w or its gradient. */
static bool wants_weights(const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->out[0]);
}

int64_t conv2d_pool_backward_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    return wants_weights(op) ? cuda_conv2d_pool_weights_workspace((const cuda_calculator *)base, op) : 0;
}

/* dx needs the weights before their update. */
sdlf_status conv2d_relu_max_pool_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_status status = SDLF_OK;
    if (sdlf_tensor_present(conv2d_pool_operands_of(op).dx)) status = cuda_conv2d_pool_input(base, op);
    return status == SDLF_OK && wants_weights(op) ? cuda_conv2d_pool_weights(base, op) : status;
}
