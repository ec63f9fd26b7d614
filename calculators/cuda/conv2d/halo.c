/* SPDX-License-Identifier: MIT */
/* Implicit GEMM with halo reuse (conv2d/halo.h): what is supported, prepacked weights, running. */
#include "calculators/cuda/conv2d/halo.h"

#include "calculators/cuda/conv2d/algorithms.h"
#include "calculators/cuda/conv2d/implicit.h"

#include <string.h>

static sdlf_math math_of(const sdlf_calculator *calculator)
{
    return ((const cuda_calculator *)calculator)->math;
}

static bool is_thin(const sdlf_operation *op)
{
    return op->in[0].shape.dim[1] <= HALO_THIN;
}

static bool is_nhwc(const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || sdlf_tensor_is_channels_last(tensor);
}

/* ---- the problem ---- */

/* All but addresses and tile. A 1x1 convolution without stride or padding treats all pixels of all images as one row. */
cuda_halo cuda_halo_problem(const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_of(op, &op->in[0], &op->in[1], &op->out[0]);
    cuda_halo p;
    memset(&p, 0, sizeof p);
    bool row = cuda_is_pointwise(&g);
    p.activation = op->conv2d.activation;
    p.images = row ? 1 : (int)g.batch;
    p.height = row ? 1 : (int)g.height;
    p.width = (int)(row ? g.batch * g.height * g.width : g.width);
    p.channels = (int)g.channels;
    p.filters = (int)g.filters;
    p.filters_padded = cuda_ceil_div(g.filters, HALO_FILTERS) * HALO_FILTERS;
    p.out_height = row ? 1 : (int)g.out_height;
    p.out_width = row ? p.width : (int)g.out_width;
    p.taps_across = g.window.size[1];
    p.taps = g.window.size[0] * g.window.size[1];
    for (int i = 0; i < 2; i++) {
        bool one = g.window.size[i] == 1; /* then the patch has only every stride-th pixel */
        p.padding[i] = g.window.padding_before[i];
        p.stride[i] = g.window.stride[i];
        p.source_step[i] = one ? p.stride[i] : 1;
        p.pixel_step[i] = one ? 1 : p.stride[i];
        p.tap_step[i] = g.window.dilation[i];
        p.tap_sides[i] = g.window.size[i];
    }
    p.steps = is_thin(op) ? cuda_ceil_div(p.taps, 8) : cuda_ceil_div(g.channels, HALO_CHANNELS) * p.taps;
    p.chunks = p.steps / p.taps;
    p.splits = 1;
    p.quads = p.channels % 4 == 0; /* unless x is not aligned */
    p.fours = p.filters % 4 == 0;  /* unless y, bias or residual is not */
    return p;
}

/* ---- what it takes ---- */

static bool takes(const sdlf_calculator *base, const sdlf_operation *op, bool pools)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    if (op->kind != SDLF_CONV2D_FORWARD || op->out[0].dtype != SDLF_FLOAT32 || op->conv2d.groups != 1) return false;
    if (calculator->math == SDLF_MATH_FP32) return false;
    if (calculator->math != SDLF_MATH_FP16 && !cuda_has_tensor_cores(calculator)) return false;
    if (!is_nhwc(&op->in[0]) || !is_nhwc(&op->in[3]) || !is_nhwc(&op->out[0])) return false;
    int64_t taps = sdlf_shape_span(op->in[1].shape, 2, 4), depth = op->in[0].shape.dim[1] * taps;
    if (!cuda_implicit_counts(op) || taps > HALO_TAPS - 8 || depth > INT32_MAX / 4 ||
        op->in[1].shape.dim[0] > INT32_MAX / 4 || sdlf_tensor_count(&op->in[0]) > INT32_MAX ||
        sdlf_tensor_count(&op->out[0]) > INT32_MAX)
        return false;
    cuda_halo p = cuda_halo_problem(op);
    p.pools = pools;
    return cuda_halo_choose(calculator, &p, is_thin(op)) >= 0;
}

bool cuda_halo_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    return takes(base, op, false);
}

/* TMA tiles have an even number of lines, unless they are a single row. */
bool cuda_halo_pools(const sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_window2d *window = &op->conv2d.window;
    if (math_of(base) != SDLF_MATH_TF32 || is_thin(op) || op->in[0].shape.dim[1] % 4 != 0) return false;
    if (window->size[0] * window->size[1] == 1 || window->stride[0] != 1 || window->stride[1] != 1) return false;
    return takes(base, op, true);
}

/* ---- prepacked weights ---- */

int64_t cuda_halo_prepared(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_halo p = cuda_halo_problem(op);
    return (int64_t)p.steps * p.filters_padded * HALO_CHANNELS * cuda_halo_weight_bytes(math_of(calculator));
}

int64_t conv2d_halo_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->prepared) ? 0 : cuda_halo_prepared(calculator, op);
}

/* Waits for its kernel, since those that read the weights do not wait. */
sdlf_status conv2d_halo_prepare_cuda(sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_halo p = cuda_halo_problem(op);
    sdlf_status status = cuda_halo_prepare(calculator, &p, op->in[1].data, op->prepared.data, is_thin(op));
    if (status != SDLF_OK) return status;
    return cuda_check(cudaStreamSynchronize(cuda_stream(calculator)), "conv2d over a patch, prepacked weights");
}

/* ---- running ---- */

static bool is_aligned(const void *address, size_t bytes)
{
    return (uintptr_t)address % bytes == 0;
}

static sdlf_status multiply(sdlf_calculator *base, const cuda_halo *p, const cuda_halo_launch *how)
{
#ifdef SDLF_HAVE_WGMMA
    if (cuda_halo_tile_of(how->tile)->stored) return cuda_halo_box_store(base, p, how);
    if (cuda_halo_tile_of(how->tile)->across > 0) return cuda_halo_box(base, p, how);
#endif
    return cuda_halo_warps(base, p, how);
}

cuda_halo cuda_halo_operands(const sdlf_operation *op)
{
    bool ready = sdlf_tensor_present(&op->prepared);
    const sdlf_tensor *x = &op->in[0], *y = &op->out[0];
    cuda_halo p = cuda_halo_problem(op);
    p.x = x->data;
    p.w = ready ? op->prepared.data : op->workspace.data;
    p.y = y->data;
    p.bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL;
    p.residual = sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL;
    p.fresh = !ready;
    int64_t ahead = sdlf_tensor_present(&op->ahead) ? sdlf_tensor_bytes(&op->ahead) : 0;
    if (ahead >= HALO_AHEAD_LEAST && is_aligned(op->ahead.data, 16)) {
        p.ahead = op->ahead.data;
        p.ahead_bytes = ahead < HALO_AHEAD ? ahead / 16 * 16 : HALO_AHEAD;
    }
    p.quads = p.channels % 4 == 0 && is_aligned(x->data, 16);
    p.pairs = p.filters % 2 == 0 && is_aligned(y->data, 8);
    p.fours = p.filters % 4 == 0 && is_aligned(y->data, 16) && is_aligned(p.bias, 16) && is_aligned(p.residual, 16);
    return p;
}

static sdlf_status run(sdlf_calculator *base, const sdlf_operation *op, bool pools, int plane)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    bool thin = is_thin(op), ready = sdlf_tensor_present(&op->prepared);
    cuda_halo p = cuda_halo_operands(op);
    p.pools = pools;
    p.plane = plane;
    p.early = ready && calculator->overlaps && op->before != NULL && cuda_conv2d_starts_others_late(base, op->before);
    int tile = cuda_halo_choose(calculator, &p, thin);
    if (tile < 0) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d over a patch: no tile fits");
    cuda_halo_launch how = {
        .tile = tile,
        .blocks = (unsigned)cuda_halo_blocks(&p),
        .shared = cuda_halo_shared(&p, tile, cuda_halo_weight_bytes(calculator->math)),
        .thin = thin,
    };
    sdlf_status status = SDLF_OK;
    if (!ready) status = cuda_halo_prepare(base, &p, op->in[1].data, op->workspace.data, thin);
    return status == SDLF_OK ? multiply(base, &p, &how) : status;
}

sdlf_status conv2d_halo_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return run(base, op, false, 0);
}

sdlf_status cuda_halo_pool(sdlf_calculator *base, const sdlf_operation *op, int plane)
{
    return run(base, op, true, plane);
}
