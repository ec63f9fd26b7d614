/* SPDX-License-Identifier: MIT */
/* Stem convolutions: what is supported, and by which kernel. */
#include "calculators/cuda/conv2d/stem.h"
#include "calculators/cuda/conv2d/implicit.h"

static bool has_few_filters(const cuda_conv2d *g)
{
    return g->filters <= STEM_FILTERS && g->window.size[0] < 7 && g->window.stride[0] <= 3;
}

bool cuda_stem_takes(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    if (op->kind != SDLF_CONV2D_FORWARD || op->conv2d.groups != 1) return false;
    if (sdlf_operation_is_channels_last(op) || !cuda_implicit_counts(op)) return false;
    cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_window2d *window = &g.window;
    bool square = window->size[0] == window->size[1] && window->stride[0] == window->stride[1] &&
                  window->dilation[0] == 1 && window->dilation[1] == 1;
    if (!square || g.channels > STEM_CHANNELS) return false;
    if (has_few_filters(&g)) return (window->size[0] == 3 || window->size[0] == 5) && g.batch <= 65535;
    return cuda_stem_channels_fit(calculator, &g, op->out[0].dtype);
}

sdlf_status conv2d_stem_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    if (cuda_stem_warps_takes(calculator, op)) return conv2d_stem_warps_cuda(calculator, op);
    return has_few_filters(&g) ? conv2d_stem_filters_cuda(calculator, op) : conv2d_stem_channels_cuda(calculator, op);
}

/* ---- channels last ---- */

static bool is_nhwc(const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || sdlf_tensor_is_channels_last(tensor);
}

/* Blocks of filters are a grid's second dimension, and an image's elements are counted in 31 bits. */
bool cuda_stem_tensor_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const sdlf_window2d *window = &op->conv2d.window;
    if (calculator->math == SDLF_MATH_FP32 || !cuda_has_tensor_cores(calculator)) return false;
    if (op->kind != SDLF_CONV2D_FORWARD || op->out[0].dtype != SDLF_FLOAT32 || op->conv2d.groups != 1) return false;
    if (!is_nhwc(&op->in[3]) || !is_nhwc(&op->out[0]) || !cuda_implicit_counts(op)) return false;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != STEM_LAST_SIDE || window->dilation[i] != 1 || window->stride[i] > 2) return false;
    }
    cuda_conv2d g = cuda_conv2d_geometry(op);
    return window->stride[0] == window->stride[1] && (is_nhwc(&op->in[0]) || sdlf_tensor_is_contiguous(&op->in[0])) &&
           g.filters % 4 == 0 && g.channels <= STEM_TENSOR_CHANNELS && g.filters <= 65535 * INT64_C(32) &&
           g.channels * g.height * g.width <= INT32_MAX;
}
