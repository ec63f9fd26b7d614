/* conv2d_forward, conv2d_backward_input, conv2d_backward_weights: which algorithm. Contracts: <sdlf/operation.h>. */
#include "calculators/cpu/kernels/im2col.h"
#include "calculators/cpu/kernels/kernels.h"

static int64_t bytes_of(const sdlf_calculator *calculator, im2col_space space)
{
    return (space.shared + cpu_from_const(calculator)->threads * space.each) * (int64_t)sizeof(element);
}

static convolution of_operation(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *w)
{
    return convolution_make(x, w, &operation->conv2d.window, operation->conv2d.groups);
}

/* ---- forward ---- */

int64_t conv2d_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->in[1]);
    return bytes_of(calculator, im2col_forward_space_cpu(&v));
}

sdlf_status conv2d_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution_forward forward = {.v = of_operation(operation, &operation->in[0], &operation->in[1]),
                                   .x = input(operation, 0),
                                   .w = input(operation, 1),
                                   .bias = input(operation, 2),
                                   .residual = input(operation, 3),
                                   .y = output(operation, 0),
                                   .activation = operation->conv2d.activation};
    im2col_forward_cpu(cpu_from(calculator), &forward, operation->workspace.data);
    return SDLF_OK;
}

/* ---- gradient by the input ---- */

int64_t conv2d_backward_input_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->out[0], &operation->in[1]);
    return bytes_of(calculator, im2col_backward_input_space_cpu(&v));
}

sdlf_status conv2d_backward_input_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->out[0], &operation->in[1]);
    im2col_backward_input_cpu(cpu_from(calculator), &v, input(operation, 0), input(operation, 1), output(operation, 0),
                              operation->workspace.data);
    return SDLF_OK;
}

/* ---- gradient by weights and bias ---- */

int64_t conv2d_backward_weights_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->out[0]);
    return bytes_of(calculator, im2col_backward_weights_space_cpu(&v));
}

sdlf_status conv2d_backward_weights_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    convolution v = of_operation(operation, &operation->in[0], &operation->out[0]);
    const cpu_calculator *cpu = cpu_from(calculator);
    im2col_backward_weights_cpu(cpu, &v, input(operation, 0), input(operation, 1), output(operation, 0),
                                operation->workspace.data);
    if (sdlf_tensor_present(&operation->out[1])) {
        convolution_backward_bias_cpu(cpu, &v, input(operation, 1), output(operation, 1));
    }
    return SDLF_OK;
}
