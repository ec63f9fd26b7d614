/* SPDX-License-Identifier: MIT */
/* Pooling by cuDNN: forward, and average pooling, backward. Dilated windows and padding that differs from side to side are left
 * to the cuda kernels; so is max pooling, backward, since cuDNN does not specify which of tied elements get the gradient. */
#include "calculators/cudnn/cudnn.h"

enum { POOLING_X, POOLING_Y };

static cudnnStatus_t make(cudnn_calculator *calculator, cudnn_kept *kept)
{
    const cudnn_key *key = &kept->key;
    cudnnStatus_t status = cudnn_describe(calculator, &kept->tensor[POOLING_X], key, key->shape[0]);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_describe(calculator, &kept->tensor[POOLING_Y], key, key->shape[2]);
    if (status == CUDNN_STATUS_SUCCESS) status = calculator->library->pooling_create(&kept->pooling);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return calculator->library->pooling_set(kept->pooling, (cudnnPoolingMode_t)key->mode, CUDNN_PROPAGATE_NAN,
                                            key->size[0], key->size[1], key->padding[0], key->padding[1],
                                            key->stride[0], key->stride[1]);
}

static cudnn_kept *find(const sdlf_calculator *calculator, const sdlf_operation *op, const sdlf_tensor *x,
                        const sdlf_tensor *y)
{
    const sdlf_window2d *window = &op->pool2d.window;
    cudnn_key key = cudnn_key_of(op);
    if (!cudnn_key_set_window(&key, window)) return NULL;
    for (int i = 0; i < 2; i++) {
        if (window->dilation[i] != 1 || window->padding_before[i] >= window->size[i]) return NULL;
    }
    cudnn_key_set_shape(&key, 0, x->shape);
    cudnn_key_set_shape(&key, 2, y->shape);
    key.mode = op->kind == SDLF_MAX_POOL2D_FORWARD ? CUDNN_POOLING_MAX_DETERMINISTIC
               : op->pool2d.count_padding          ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                                   : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    return cudnn_find(calculator, &key, make);
}

/* Also creates the descriptors, before the plan runs. */
bool pool2d_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    bool backward = op->kind == SDLF_AVG_POOL2D_BACKWARD;
    if (sdlf_tensor_present(&op->out[1]) || op->pool2d.activation.function != SDLF_IDENTITY) return false;
    const cudnn_kept *kept =
        find(calculator, op, backward ? &op->out[0] : &op->in[0], backward ? &op->in[0] : &op->out[0]);
    return kept != NULL || !sdlf_operation_is_channels_last(op);
}

static sdlf_status forward(sdlf_calculator *base, const sdlf_operation *op, sdlf_kernel *otherwise)
{
    const cudnn_kept *kept = find(base, op, &op->in[0], &op->out[0]);
    if (kept == NULL) return otherwise(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    return cudnn_check(calculator,
                       calculator->library->pool(calculator->handle, kept->pooling, &one, kept->tensor[POOLING_X],
                                                 op->in[0].data, &zero, kept->tensor[POOLING_Y], op->out[0].data),
                       "pooling");
}

sdlf_status max_pool2d_forward_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return forward(calculator, op, max_pool2d_forward_cuda);
}

sdlf_status avg_pool2d_forward_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return forward(calculator, op, avg_pool2d_forward_cuda);
}

/* cuDNN also requires x and y, but reads neither in average pooling. */
sdlf_status avg_pool2d_backward_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op, &op->out[0], &op->in[0]);
    if (kept == NULL) return avg_pool2d_backward_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    const void *dy = op->in[0].data;
    void *dx = op->out[0].data;
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    cudnnStatus_t status = calculator->library->pool_backward(
        calculator->handle, kept->pooling, &one, kept->tensor[POOLING_Y], dy, kept->tensor[POOLING_Y], dy,
        kept->tensor[POOLING_X], dx, &zero, kept->tensor[POOLING_X], dx);
    return cudnn_check(calculator, status, "backward of pooling");
}
