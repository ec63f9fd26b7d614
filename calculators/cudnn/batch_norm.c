/* SPDX-License-Identifier: MIT */
/* Batch normalisation by cuDNN. */
#include "calculators/cudnn/cudnn.h"

enum { NORM_X, NORM_CHANNELS };

static cudnnStatus_t make(cudnn_calculator *calculator, cudnn_kept *kept)
{
    const int64_t channels[4] = {1, kept->key.shape[0][1], 1, 1};
    cudnnStatus_t status = cudnn_describe(calculator, &kept->tensor[NORM_X], &kept->key, kept->key.shape[0]);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return cudnn_describe(calculator, &kept->tensor[NORM_CHANNELS], &kept->key, channels);
}

static cudnn_kept *find(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cudnn_key key = cudnn_key_of(op);
    key.last = 0;
    key.dtype = (int32_t)op->in[0].dtype;
    cudnn_key_set_shape(&key, 0, op->in[0].shape);
    return op->batch_norm.epsilon >= CUDNN_BN_MIN_EPSILON ? cudnn_find(calculator, &key, make) : NULL;
}

/* True unless something is fused; creates the descriptors, before the plan runs. */
bool batch_norm2d_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (sdlf_batch_norm2d_is_fused(op)) return false;
    find(calculator, op);
    return true;
}

sdlf_status batch_norm2d_infer_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL || op->batch_norm.activation.function != SDLF_IDENTITY) return batch_norm2d_infer_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    cudnnStatus_t status = calculator->library->normalize(
        calculator->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, kept->tensor[NORM_X], op->in[0].data,
        kept->tensor[NORM_X], op->out[0].data, kept->tensor[NORM_CHANNELS], op->in[1].data, op->in[2].data,
        op->in[3].data, op->in[4].data, op->batch_norm.epsilon);
    return cudnn_check(calculator, status, "batch normalisation");
}

/* With one value per channel cuDNN has no unbiased variance. */
sdlf_status batch_norm2d_forward_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL || sdlf_tensor_count(&op->in[0]) <= sdlf_tensor_count(&op->in[1]))
        return batch_norm2d_forward_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    cudnnStatus_t status = calculator->library->normalize_training(
        calculator->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, kept->tensor[NORM_X], op->in[0].data,
        kept->tensor[NORM_X], op->out[0].data, kept->tensor[NORM_CHANNELS], op->in[1].data, op->in[2].data,
        op->batch_norm.momentum, op->out[3].data, op->out[4].data, op->batch_norm.epsilon, op->out[1].data,
        op->out[2].data);
    return cudnn_check(calculator, status, "batch normalisation");
}

sdlf_status batch_norm2d_backward_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL || !sdlf_tensor_present(&op->out[0])) return batch_norm2d_backward_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    cudnnStatus_t status = calculator->library->normalize_backward(
        calculator->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, kept->tensor[NORM_X], op->in[0].data,
        kept->tensor[NORM_X], op->in[4].data, kept->tensor[NORM_X], op->out[0].data, kept->tensor[NORM_CHANNELS],
        op->in[1].data, op->out[1].data, op->out[2].data, CUDNN_BN_MIN_EPSILON, op->in[2].data, op->in[3].data);
    return cudnn_check(calculator, status, "backward of batch normalisation");
}
