/* SPDX-License-Identifier: MIT */
/* conv2d, ReLU and 2x2 max-pool over boxes, channels last: as a convolution whose blocks pool what they have made, in halves that of
 * conv2d/boxes.h, in tf32 that of conv2d/patch.h. */
#include "calculators/cuda/conv2d/boxes.h"
#include "calculators/cuda/gemm/factors.h"

/* The convolution; its results are nowhere. */
static sdlf_operation convolution_of(const sdlf_operation *op)
{
    const sdlf_window2d *window = &op->conv2d_pool.window;
    const int64_t *x = op->in[0].shape.dim;
    sdlf_shape shape = sdlf_shape(x[0], op->in[1].shape.dim[0], sdlf_window2d_output(window, 0, x[2]),
                                  sdlf_window2d_output(window, 1, x[3]));
    return (sdlf_operation){
        .kind = SDLF_CONV2D_FORWARD,
        .in = {op->in[0], op->in[1], op->in[2]},
        .out = {sdlf_tensor_channels_last(sdlf_tensor_view(op->out[0].dtype, shape, NULL))},
        .prepared = op->prepared,
        .workspace = op->workspace,
        .ahead = op->ahead,
        .conv2d = {.window = *window, .groups = op->conv2d_pool.groups, .activation = {.function = SDLF_RELU}},
    };
}

/* Tiles are whole windows of the pooling where they have several lines. */
bool cuda_boxes_pool_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const sdlf_window2d *pool = &op->conv2d_pool.pool;
    if (sdlf_tensor_present(&op->out[1])) return false;
    if (op->out[0].dtype != SDLF_FLOAT32) return false;
    for (int i = 0; i < 2; i++) {
        if (pool->size[i] != 2 || pool->stride[i] != 2) return false;
    }
    sdlf_operation convolution = convolution_of(op);
    if (convolution.out[0].shape.dim[2] == 1) return false;
    return cuda_has_half_factors(calculator->math) ? cuda_boxes_takes(base, &convolution)
                                                   : cuda_patch_pools(base, &convolution);
}

int64_t cuda_boxes_pool_prepared(const sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = convolution_of(op);
    return cuda_patch_prepared(base, &convolution);
}

int64_t cuda_boxes_pool_workspace(const sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = convolution_of(op);
    return conv2d_patch_workspace_cuda(base, &convolution);
}

sdlf_status conv2d_boxes_pool_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = convolution_of(op);
    return conv2d_patch_prepare_cuda(base, &convolution);
}

sdlf_status conv2d_boxes_pool_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = convolution_of(op);
    convolution.out[0].data = op->out[0].data;
    bool halves = cuda_has_half_factors(cuda_calculator_from(base)->math);
    bool last = sdlf_tensor_is_channels_last(&op->out[0]);
    int plane = last ? 0 : (int)sdlf_shape_span(op->out[0].shape, 2, 4);
    return halves ? cuda_boxes_run(base, &convolution, true, plane) : cuda_patch_pool(base, &convolution, plane);
}
