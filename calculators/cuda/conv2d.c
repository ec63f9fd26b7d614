/* The convolution slots: which algorithm computes an operation. "auto" takes products wherever there are enough of them to
 * fill the machine: a group with at least 8 filters and a window of at least 8 numbers; the direct kernels do the rest
 * (depthwise convolutions above all). */
#include "calculators/cuda/conv2d.h"

enum { AUTO, DIRECT, TWO_STEP };

const char *const conv2d_algorithms_cuda[] = {"auto", "direct", "two-step", NULL};

/* cuBLAS takes sizes as int: larger ones are for the direct kernels. */
static bool fits_products(const sdlf_operation *op, const sdlf_tensor *w)
{
    const sdlf_tensor *y = op->kind == SDLF_CONV2D_FORWARD          ? &op->out[0]
                           : op->kind == SDLF_CONV2D_BACKWARD_INPUT ? &op->in[0]
                                                                    : &op->in[1];
    return w->shape.dim[0] <= INT32_MAX && sdlf_shape_span(w->shape, 1, 4) <= INT32_MAX &&
           sdlf_shape_span(y->shape, 2, 4) <= INT32_MAX && y->shape.dim[0] <= INT32_MAX;
}

static bool is_two_step(const sdlf_operation *op)
{
    const sdlf_tensor *w = op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS ? &op->out[0] : &op->in[1];
    if (!fits_products(op, w)) return false;
    if (op->algorithm != AUTO) return op->algorithm == TWO_STEP;
    int64_t filters = w->shape.dim[0] / op->conv2d.groups;
    int64_t window = w->shape.dim[1] * w->shape.dim[2] * w->shape.dim[3];
    return filters >= 8 && window >= 8;
}

int64_t conv2d_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return is_two_step(op) ? conv2d_two_step_workspace_cuda(calculator, op) : 0;
}

sdlf_status conv2d_forward_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return is_two_step(op) ? conv2d_forward_two_step_cuda(calculator, op) : conv2d_forward_direct_cuda(calculator, op);
}

sdlf_status conv2d_backward_input_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return is_two_step(op) ? conv2d_backward_input_two_step_cuda(calculator, op)
                           : conv2d_backward_input_direct_cuda(calculator, op);
}

sdlf_status conv2d_backward_weights_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return is_two_step(op) ? conv2d_backward_weights_two_step_cuda(calculator, op)
                           : conv2d_backward_weights_direct_cuda(calculator, op);
}
