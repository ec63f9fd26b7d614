/* Which convolutions of few channels there is a kernel for, and which of them. */
#include "calculators/cuda/conv2d/few.h"
#include "calculators/cuda/conv2d/implicit.h"

static bool has_few_filters(const cuda_conv2d *g)
{
    return g->filters <= FEW_FILTERS && g->window.size[0] < 7 && g->window.stride[0] <= 3;
}

bool cuda_few_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_FORWARD || op->conv2d.groups != 1) return false;
    if (sdlf_operation_is_channels_last(op) || !cuda_implicit_counts(op)) return false;
    cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_window2d *window = &g.window;
    bool square = window->size[0] == window->size[1] && window->stride[0] == window->stride[1] &&
                  window->dilation[0] == 1 && window->dilation[1] == 1;
    if (!square || g.channels > FEW_CHANNELS) return false;
    if (has_few_filters(&g)) return (window->size[0] == 3 || window->size[0] == 5) && g.batch <= 65535;
    return cuda_few_channels_fit(calculator, &g, op->out[0].dtype);
}

sdlf_status conv2d_few_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    return has_few_filters(&g) ? conv2d_few_filters_cuda(calculator, op) : conv2d_few_channels_cuda(calculator, op);
}

/* ---- channels last ---- */

bool cuda_few_last_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_few_tensor_takes(calculator, op) || cuda_few_exact_takes(calculator, op);
}

int64_t cuda_few_last_prepared(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_few_tensor_takes(calculator, op) ? cuda_few_tensor_prepared(op) : cuda_few_exact_prepared(op);
}

sdlf_status conv2d_few_last_prepare_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_few_tensor_takes(calculator, op) ? conv2d_few_tensor_prepare_cuda(calculator, op)
                                                 : conv2d_few_exact_prepare_cuda(calculator, op);
}

sdlf_status conv2d_few_last_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_few_tensor_takes(calculator, op) ? conv2d_few_tensor_cuda(calculator, op)
                                                 : conv2d_few_exact_cuda(calculator, op);
}
