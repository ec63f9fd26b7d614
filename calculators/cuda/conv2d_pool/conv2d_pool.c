/* SPDX-License-Identifier: MIT */
/* conv2d + ReLU + max-pool: forward, by kernels for row-major activations, by those of conv2d/halo16.h for channels last,
 * or by the engine in 16-bit storage; backward, what is supported, and its parts in order. */
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"

#include "calculators/cuda/conv2d/halo16.h"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/fusions/conv2d_pool.h"

/* The convolution before the pooling; its output is never stored. */
sdlf_operation cuda_conv2d_of_pool(const sdlf_operation *op)
{
    const conv2d_pool_options *options = conv2d_pool_options_of(op);
    return (sdlf_operation){
        .kind = SDLF_CONV2D_FORWARD,
        .in = {op->in[0], op->in[1], op->in[2]},
        .out = {sdlf_tensor_channels_last(conv2d_pool_between(op, &op->in[0], &op->in[1]))},
        .prepared = op->prepared,
        .workspace = op->workspace,
        .ahead = op->ahead,
        .conv2d = {.window = options->window, .groups = options->groups, .activation = {.function = SDLF_RELU}},
    };
}

static bool is_stored(const sdlf_operation *op)
{
    return sdlf_operation_storage(op) != SDLF_NONE;
}

bool conv2d_pool_forward_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (is_stored(op)) {
        const sdlf_operation convolution = cuda_conv2d_of_pool(op);
        return !sdlf_tensor_present(&op->out[1]) && sdlf_operation_is_channels_last(op) &&
               conv2d_max_pool_supports_nhwc(base, &convolution, &conv2d_pool_options_of(op)->pool, &op->out[0]);
    }
    return sdlf_operation_is_channels_last(op) ? cuda_halo16_pool_takes(base, op) : conv2d_pool_supports_cuda(base, op);
}

int64_t conv2d_pool_forward_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (is_stored(op)) {
        const sdlf_operation convolution = cuda_conv2d_of_pool(op);
        return conv2d_workspace_nhwc(base, &convolution);
    }
    return sdlf_operation_is_channels_last(op) ? cuda_halo16_pool_workspace(base, op) : 0;
}

int64_t conv2d_pool_forward_prepared_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (is_stored(op)) {
        const sdlf_operation convolution = cuda_conv2d_of_pool(op);
        return conv2d_prepared_nhwc(&convolution);
    }
    return sdlf_operation_is_channels_last(op) ? cuda_halo16_pool_prepared(base, op) : 0;
}

sdlf_status conv2d_pool_forward_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (!is_stored(op)) return conv2d_halo16_pool_prepare_cuda(base, op);
    const sdlf_operation convolution = cuda_conv2d_of_pool(op);
    return conv2d_prepare_nhwc(base, &convolution);
}

sdlf_status conv2d_pool_forward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (is_stored(op)) {
        const sdlf_operation convolution = cuda_conv2d_of_pool(op);
        return conv2d_max_pool_nhwc(base, &convolution, &op->out[0]);
    }
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
