/* SPDX-License-Identifier: MIT */
/* Activations by cuDNN: ReLU, clipping with a lower bound of 0 (ReLU6), sigmoid, tanh and, forward, ELU. The cuda calculator computes all others. */
#include "calculators/cudnn/cudnn.h"

static cudnnStatus_t make(cudnn_calculator *calculator, cudnn_kept *kept)
{
    cudnnStatus_t status = cudnn_describe(calculator, &kept->tensor[0], &kept->key, kept->key.shape[0]);
    if (status == CUDNN_STATUS_SUCCESS) status = calculator->library->activation_create(&kept->activation);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return calculator->library->activation_set(kept->activation, (cudnnActivationMode_t)kept->key.mode,
                                               CUDNN_PROPAGATE_NAN, kept->key.coefficient);
}

/* cuDNN's function, with its coefficient in *coefficient; negative if it has none. */
static int mode_of(const sdlf_operation *op, double *coefficient)
{
    const sdlf_activation *activation = &op->activation;
    bool forward = op->kind == SDLF_ACTIVATION_FORWARD;
    *coefficient = 0;
    switch (activation->function) {
    case SDLF_RELU: return CUDNN_ACTIVATION_RELU;
    case SDLF_SIGMOID: return CUDNN_ACTIVATION_SIGMOID;
    case SDLF_TANH: return CUDNN_ACTIVATION_TANH;
    case SDLF_CLIP:
        *coefficient = activation->high;
        return forward && activation->low == 0 ? CUDNN_ACTIVATION_CLIPPED_RELU : -1;
    case SDLF_ELU: *coefficient = activation->alpha; return forward ? CUDNN_ACTIVATION_ELU : -1;
    default: return -1;
    }
}

static cudnn_kept *find(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cudnn_key key = cudnn_key_of(op);
    key.last = 0;
    key.mode = mode_of(op, &key.coefficient);
    if (key.mode < 0) return NULL;
    cudnn_key_set_shape(&key, 0, sdlf_shape(1, 1, 1, sdlf_tensor_count(&op->out[0])));
    return cudnn_find(calculator, &key, make);
}

/* Always true; creates the descriptors, before the plan runs. */
bool activation_supports_cudnn(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    find(calculator, op);
    return true;
}

sdlf_status activation_forward_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL) return activation_forward_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    return cudnn_check(calculator,
                       calculator->library->activate(calculator->handle, kept->activation, &one, kept->tensor[0],
                                                     op->in[0].data, &zero, kept->tensor[0], op->out[0].data),
                       "activation");
}

/* The slopes of these functions follow from y; cuDNN also requires x, and for ReLU y serves as x. */
sdlf_status activation_backward_cudnn(sdlf_calculator *base, const sdlf_operation *op)
{
    const cudnn_kept *kept = find(base, op);
    if (kept == NULL) return activation_backward_cuda(base, op);
    const cudnn_calculator *calculator = cudnn_calculator_from(base);
    cudnn_scalar one = cudnn_number(kept->key.dtype, 1), zero = cudnn_number(kept->key.dtype, 0);
    cudnnStatus_t status = calculator->library->activate_backward(
        calculator->handle, kept->activation, &one, kept->tensor[0], op->in[0].data, kept->tensor[0], op->in[1].data,
        kept->tensor[0], op->in[0].data, &zero, kept->tensor[0], op->out[0].data);
    return cudnn_check(calculator, status, "backward of activation");
}
