/* SPDX-License-Identifier: MIT */
/* Softmax, forward and backward, and log_softmax, backward, by cuDNN, along any axis: the axes before it are images, those after it
 * pixels. log_softmax, forward, is computed by the cuda calculator: cuDNN subtracts the largest logit and the logarithm of the sum
 * one after the other, which loses digits of results close to 0 if logits are large. */
#include "calculators/cudnn/cudnn.h"

static cudnnStatus_t make(cudnn_calculator *calculator, cudnn_kept *kept)
{
    return cudnn_describe(calculator, &kept->tensor[0], &kept->key, kept->key.shape[0]);
}

static cudnn_kept *find(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    sdlf_shape shape = op->out[0].shape;
    int axis = op->softmax.axis;
    cudnn_key key = cudnn_key_of(op);
    key.last = 0;
    key.shape[0][0] = sdlf_shape_span(shape, 0, axis);
    key.shape[0][1] = shape.dim[axis];
    key.shape[0][2] = sdlf_shape_span(shape, axis + 1, shape.rank);
    key.shape[0][3] = 1;
    return cudnn_find(calculator, &key, make);
}

/* Always true; creates the descriptors, before the plan runs. */
bool softmax_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    find(calculator, op);
    return true;
}

sdlf_status softmax_forward_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL) return softmax_forward_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    return cudnn_check(calculator,
                       calculator->library->softmax(calculator->handle, CUDNN_SOFTMAX_ACCURATE,
                                                    CUDNN_SOFTMAX_MODE_CHANNEL, &one, kept->tensor[0], op->in[0].data,
                                                    &zero, kept->tensor[0], op->out[0].data),
                       "softmax");
}

static sdlf_status backward(sdlf_calculator *base, const sdlf_operation *op, cudnnSoftmaxAlgorithm_t algorithm,
                            sdlf_kernel *otherwise)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL) return otherwise(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    cudnnStatus_t status = calculator->library->softmax_backward(
        calculator->handle, algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &one, kept->tensor[0], op->in[0].data,
        kept->tensor[0], op->in[1].data, &zero, kept->tensor[0], op->out[0].data);
    return cudnn_check(calculator, status, "backward of softmax");
}

sdlf_status softmax_backward_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return backward(calculator, op, CUDNN_SOFTMAX_ACCURATE, softmax_backward_cuda);
}

sdlf_status log_softmax_backward_cudnn(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return backward(calculator, op, CUDNN_SOFTMAX_LOG, log_softmax_backward_cuda);
}
