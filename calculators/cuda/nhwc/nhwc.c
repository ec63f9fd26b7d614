/* SPDX-License-Identifier: MIT */
/* 16-bit storage and channels-last images in the cuda calculator: which operations have kernels, and convolutions in the form that the
 * engine expects. */
#include "calculators/cuda/nhwc/nhwc.h"

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/engine/conv2d.h"
#include "calculators/cuda/engine/groups.h"

static bool is_forward(const sdlf_operation *op)
{
    return op->kind == SDLF_CONV2D_FORWARD || op->kind == SDLF_MAX_POOL2D_FORWARD ||
           op->kind == SDLF_AVG_POOL2D_FORWARD || op->kind == SDLF_GLOBAL_AVG_POOL2D_FORWARD;
}

bool cuda_is_nhwc(const sdlf_operation *op)
{
    if (sdlf_operation_storage(op) != SDLF_NONE) return true;
    return op->in[0].dtype == SDLF_FLOAT32 && !is_forward(op) && sdlf_operation_is_channels_last(op);
}

/* ---- convolution ---- */

static engine_conv2d convolution(const sdlf_operation *op)
{
    const cuda_conv2d g = cuda_conv2d_geometry(op);
    const sdlf_tensor *x, *w, *y;
    cuda_conv2d_operands(op, &x, &w, &y);
    engine_conv2d conv = {
        .dtype = x->dtype,
        .n = g.batch,
        .h = g.height,
        .w = g.width,
        .c = g.channels,
        .k = g.filters,
        .groups = op->conv2d.groups,
        .p = g.out_height,
        .q = g.out_width,
        .r = g.window.size[0],
        .s = g.window.size[1],
        .x = x->data,
        .weights = w->data,
        .y = y->data,
        .workspace = op->workspace.data,
    };
    for (int i = 0; i < 2; i++) {
        conv.stride[i] = g.window.stride[i];
        conv.padding[i] = g.window.padding_before[i];
        conv.dilation[i] = g.window.dilation[i];
    }
    if (op->kind == SDLF_CONV2D_FORWARD) {
        conv.bias = op->in[2].data;
        conv.residual = op->in[3].data;
        conv.activation = op->conv2d.activation;
    } else if (op->kind == SDLF_CONV2D_BACKWARD_INPUT) {
        conv.residual = op->in[2].data;
        conv.row_major = !sdlf_tensor_is_channels_last(w);
    } else {
        conv.weights = NULL;
        conv.dw = w->data;
    }
    return conv;
}

/* True if weights are float32 beside 16-bit images, or row-major: they must be prepacked, by the operation itself if they have not been. */
static bool converts_weights(const sdlf_operation *op)
{
    const sdlf_tensor *w = &op->in[1];
    if (op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS) return false;
    return w->dtype != op->in[0].dtype || (op->kind == SDLF_CONV2D_FORWARD && !sdlf_tensor_is_channels_last(w));
}

static bool is_depthwise(const sdlf_operation *op)
{
    return op->conv2d.groups != 1 && depthwise_supports_nhwc(op);
}

/* Inference in tf32: convolutions that the engine computes faster than the halo-tile kernels (conv2d/halo.h): with several groups, which those do not
 * support, with an activation that is not piecewise linear, and with a stride over many images (measured on an H200). */
static bool suits_tf32(const sdlf_operation *op)
{
    enum { LEAST_STRIDED_IMAGES = 16 };
    const sdlf_activation_function f = op->conv2d.activation.function;
    const bool is_line = f == SDLF_IDENTITY || f == SDLF_RELU || f == SDLF_CLIP || f == SDLF_LEAKY_RELU;
    const bool strides = op->conv2d.window.stride[0] > 1 || op->conv2d.window.stride[1] > 1;
    return op->conv2d.groups > 1 || !is_line || (strides && op->in[0].shape.dim[0] >= LEAST_STRIDED_IMAGES);
}

bool conv2d_is_nhwc(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (cuda_is_nhwc(op)) return true;
    if (op->kind != SDLF_CONV2D_FORWARD || !sdlf_operation_is_channels_last(op) || sdlf_operation_is_mixed(op))
        return false;
    return op->in[0].dtype == SDLF_FLOAT32 && !is_depthwise(op) && op->in[0].shape.dim[1] >= 8 && suits_tf32(op) &&
           conv2d_supports_nhwc(base, op);
}

/* Weights of a depthwise convolution keep their order: treated as one long line. */
static engine_conv2d weights_of(const sdlf_operation *op)
{
    engine_conv2d conv = convolution(op);
    if (!is_depthwise(op)) return conv;
    conv.c = conv.k * conv.r * conv.s;
    conv.k = conv.r = conv.s = conv.groups = 1;
    return conv;
}

int64_t conv2d_prepared_nhwc(const sdlf_operation *op)
{
    const engine_conv2d conv = weights_of(op);
    if (!converts_weights(op)) return 0;
    return engine_is_grouped(&conv) ? engine_block_weights_bytes(&conv, op->kind == SDLF_CONV2D_BACKWARD_INPUT)
                                    : engine_prepared(&conv);
}

static int64_t space_for_weights(const sdlf_operation *op)
{
    return (conv2d_prepared_nhwc(op) + 63) / 64 * 64;
}

static sdlf_status prepare(sdlf_calculator *base, const sdlf_operation *op, void *to)
{
    const engine_conv2d conv = weights_of(op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const bool backward = op->kind == SDLF_CONV2D_BACKWARD_INPUT;
    return engine_is_grouped(&conv) ? engine_make_block_weights(calculator, &conv, backward, false, op->in[1].data, to)
                                    : engine_prepare(calculator, &conv, op->in[1].data, to);
}

sdlf_status conv2d_prepare_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    return prepare(base, op, op->prepared.data);
}

bool conv2d_supports_nhwc(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const bool single = op->in[0].dtype == SDLF_FLOAT32;
    const bool backward_input = op->kind == SDLF_CONV2D_BACKWARD_INPUT; /* in 16-bit modes, too, in tf32 */
    if (op->algorithm != 0 || (single && calculator->math == SDLF_MATH_FP32)) return false;
    if (single && !backward_input && calculator->math != SDLF_MATH_TF32) return false;
    if (is_depthwise(op)) return engine_is_there(calculator);
    const engine_conv2d conv = convolution(op);
    switch (op->kind) {
    case SDLF_CONV2D_FORWARD: return engine_takes_forward(calculator, &conv);
    case SDLF_CONV2D_BACKWARD_INPUT: return engine_takes_backward_input(calculator, &conv);
    default: return engine_takes_backward_weights(calculator, &conv);
    }
}

int64_t conv2d_workspace_nhwc(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    engine_conv2d conv = convolution(op);
    const bool depthwise = is_depthwise(op), here = converts_weights(op) && !sdlf_tensor_present(&op->prepared);
    if (converts_weights(op)) conv.prepared = op; /* any non-NULL value: prepacked weights need no space for packing */
    switch (op->kind) {
    case SDLF_CONV2D_FORWARD:
        return (depthwise ? 0 : engine_forward_workspace(&conv)) + (here ? space_for_weights(op) : 0);
    case SDLF_CONV2D_BACKWARD_INPUT:
        return (depthwise ? 0 : engine_backward_input_workspace(&conv)) + (here ? space_for_weights(op) : 0);
    default: break;
    }
    const int64_t weights =
        depthwise ? depthwise_workspace_nhwc(op) : engine_backward_weights_workspace(calculator, &conv);
    const int64_t bias = sdlf_tensor_present(&op->out[1]) ? bias_gradient_workspace_nhwc(op) : 0;
    return weights > bias ? weights : bias;
}

/* What is fused with a forward convolution; all zero: nothing. */
typedef struct fused_with {
    engine_bn_partials *moments; /* of its output */
    void *maxima;                /* the max-pooled output, instead of its own */
} fused_with;

static sdlf_status run_convolution(sdlf_calculator *base, const sdlf_operation *op, fused_with fused)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    engine_conv2d conv = convolution(op);
    const void *weights = op->prepared.data;
    conv.moments = fused.moments;
    conv.pools = fused.maxima != NULL;
    if (conv.pools) conv.y = fused.maxima;
    if (converts_weights(op) && !sdlf_tensor_present(&op->prepared)) {
        char *space = op->workspace.data;
        sdlf_status status = prepare(base, op, space);
        if (status != SDLF_OK) return status;
        weights = space;
        conv.workspace = space + space_for_weights(op);
    }
    if (is_depthwise(op)) return depthwise_nhwc(base, op, converts_weights(op) ? weights : NULL);
    if (converts_weights(op)) conv.prepared = conv.weights = (void *)weights;
    switch (op->kind) {
    case SDLF_CONV2D_FORWARD: return engine_forward(calculator, &conv);
    case SDLF_CONV2D_BACKWARD_INPUT: return engine_backward_input(calculator, &conv);
    default: return engine_backward_weights(calculator, &conv);
    }
}

sdlf_status conv2d_nhwc(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_status status = run_convolution(base, op, (fused_with){0});
    bool bias = op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS && sdlf_tensor_present(&op->out[1]);
    return status == SDLF_OK && bias ? bias_gradient_nhwc(base, op) : status;
}

bool conv2d_batch_norm2d_is_nhwc(const sdlf_operation *conv, const sdlf_operation *norm)
{
    if (conv->kind != SDLF_CONV2D_FORWARD || norm->kind != SDLF_BATCH_NORM2D_FORWARD) return false;
    if (is_depthwise(conv) || !cuda_is_nhwc(conv) || !batch_norm2d_is_nhwc(norm)) return false;
    const sdlf_tensor *y = &conv->out[0], *x = &norm->in[0];
    return y->data == x->data && y->dtype == x->dtype && sdlf_tensor_count(y) == sdlf_tensor_count(x) &&
           y->shape.dim[1] == x->shape.dim[1] && sdlf_operation_is_channels_last(conv) &&
           !sdlf_tensor_present(&conv->in[3]) && conv->conv2d.activation.function == SDLF_IDENTITY;
}

sdlf_status conv2d_batch_norm2d_nhwc(sdlf_calculator *base, const sdlf_operation *conv, const sdlf_operation *norm)
{
    engine_bn_partials moments = batch_norm2d_moments_nhwc(base, norm);
    sdlf_status status = run_convolution(base, conv, (fused_with){.moments = &moments});
    return status == SDLF_OK ? batch_norm2d_forward_of_nhwc(base, norm, &moments) : status;
}

bool conv2d_max_pool_supports_nhwc(const sdlf_calculator *base, const sdlf_operation *op, const sdlf_window2d *pool,
                                   const sdlf_tensor *y)
{
    const engine_conv2d conv = convolution(op);
    const int64_t out[2] = {conv.p, conv.q};
    for (int i = 0; i < 2; i++) {
        if (pool->size[i] != 2 || pool->stride[i] != 2 || pool->dilation[i] != 1) return false;
        if (pool->padding_before[i] != 0 || y->shape.dim[2 + i] != out[i] / 2) return false; /* whole windows */
    }
    return !is_depthwise(op) && conv2d_supports_nhwc(base, op) && engine_pools((const cuda_calculator *)base, &conv);
}

sdlf_status conv2d_max_pool_nhwc(sdlf_calculator *base, const sdlf_operation *op, const sdlf_tensor *y)
{
    return run_convolution(base, op, (fused_with){.maxima = y->data});
}

/* ---- the others: eight adjacent elements per thread ---- */

static bool is_multiple(int64_t count)
{
    return count > 0 && count % 8 == 0;
}

bool elements_support_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    (void)calculator;
    return sdlf_operation_storage(op) == SDLF_NONE || is_multiple(sdlf_tensor_count(&op->out[0]));
}

bool elements_are_vectors(const sdlf_operation *op)
{
    if (sdlf_operation_storage(op) != SDLF_NONE) return true;
    const uintptr_t addresses = (uintptr_t)op->in[0].data | (uintptr_t)op->in[1].data | (uintptr_t)op->out[0].data;
    return op->out[0].dtype == SDLF_FLOAT32 && addresses % 16 == 0 && is_multiple(sdlf_tensor_count(&op->out[0]));
}

/* A mask or an activation is supported only when fused with the adjacent convolution. */
bool pool2d_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_tensor *mask = is_forward(op) ? &op->out[1] : &op->in[3];
    (void)calculator;
    if (sdlf_tensor_present(mask) || op->pool2d.activation.function != SDLF_IDENTITY) return false;
    if (!cuda_is_nhwc(op)) return is_forward(op) || !sdlf_operation_is_channels_last(op);
    return is_multiple(op->out[0].shape.dim[1]) && sdlf_tensor_count(&op->in[0]) > 0 &&
           sdlf_tensor_count(&op->out[0]) > 0;
}
