/* SPDX-License-Identifier: MIT */
/* Fused MBConv (inverted residual blocks): what is supported, and the choice of its tiles. */
#include "calculators/cuda/conv2d/mbconv.h"

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/fusions/inverted_residual.h"

#include <string.h>

/* Limits: elements of x, y and the expanded activation, which are counted in 32 bits; channels and filters; FLOPs, and
 * blocks for each multiprocessor: with more images, larger tiles of separate kernels are worth their memory traffic. */
enum { MOST_NUMBERS = 1 << 28, MOST_CHANNELS = 1 << 14, MOST_FLOPS = 100000000, MOST_WAVES = 4 };

/* Instructions of a strip, roughly. */
enum { STRIP_OF_2 = 80, STRIP_OF_4 = 140 };

static int round_up(int64_t count, int unit)
{
    return cuda_ceil_div(count, unit) * unit;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* False: an activation does more than clamp. */
static bool problem_of(const sdlf_operation *op, cuda_mbconv *p)
{
    const int64_t *x = op->in[0].shape.dim, *y = op->out[0].shape.dim;
    const inverted_residual_options *options = inverted_residual_options_of(op);
    const sdlf_window2d *window = &options->window;
    memset(p, 0, sizeof *p);
    p->images = (int)x[0];
    p->channels = (int)x[1];
    p->height = (int)x[2];
    p->width = (int)x[3];
    p->middle = (int)op->in[1].shape.dim[0];
    p->filters = (int)y[1];
    p->out_height = (int)y[2];
    p->out_width = (int)y[3];
    p->stride = window->stride[0];
    p->expands = sdlf_tensor_present(&op->in[3]);
    for (int i = 0; i < 2; i++) p->padding[i] = window->padding_before[i];
    return activation_range(&options->expanded, &p->low[0], &p->high[0]) &&
           activation_range(&options->filtered, &p->low[1], &p->high[1]) &&
           activation_range(&options->activation, &p->low[2], &p->high[2]);
}

/* ---- blocks ---- */

/* Strips of so many pixels, by two channels each, that a block computes. */
static int64_t strips_of(const cuda_mbconv *p, int strip)
{
    return (int64_t)p->slice / 2 * cuda_ceil_div(p->out_width, strip) * p->rows;
}

/* Divide the problem into clusters of so many blocks and rows of y. False: impossible, or too much shared memory. */
static bool cut(const cuda_calculator *calculator, cuda_mbconv *p, int blocks, int rows)
{
    const int deep = calculator->math == SDLF_MATH_TF32 ? 8 : 16;
    p->blocks = blocks;
    p->slice = round_up(cuda_ceil_div(p->middle, blocks), MBCONV_SLICE);
    p->rows = rows;
    p->bands = cuda_ceil_div(p->out_height, rows);
    if (cuda_ceil_div(p->middle, p->slice) != blocks || cuda_ceil_div(p->out_height, p->bands) != rows) return false;
    p->held_rows = (rows - 1) * p->stride + MBCONV_SIDE;
    p->pitch = most((p->out_width - 1) * p->stride + MBCONV_SIDE, p->width + p->padding[1]);
    p->tiles_in = cuda_ceil_div((int64_t)(p->held_rows < p->height ? p->held_rows : p->height) * p->width, 8);
    p->tiles_out = cuda_ceil_div((int64_t)rows * p->out_width, 8);
    p->deep_in = p->expands ? cuda_ceil_div(p->channels, deep) : 0;
    p->deep_out = p->slice / deep;
    p->filter_tiles = cuda_ceil_div(p->filters, 16);
    p->line = p->tiles_out * 8 + (p->tiles_out % 2 == 0 ? 8 : 0); /* lanes write neighbouring lines at once */
    p->chunk = p->slice / 16 * p->deep_in * 512 + 11 * p->slice * 4 + p->filter_tiles * p->deep_out * 512 +
               round_up(p->filters, 4) * 4;
    p->threads = MBCONV_THREADS;
    int short_rounds = cuda_ceil_div(strips_of(p, 2), p->threads),
        rounds = cuda_ceil_div(strips_of(p, MBCONV_STRIP), p->threads);
    p->strip = short_rounds * STRIP_OF_2 < rounds * STRIP_OF_4 ? 2 : MBCONV_STRIP;
    if ((int64_t)p->bands * p->images * blocks > (int64_t)MOST_WAVES * calculator->multiprocessors) return false;
    int64_t beyond = (int64_t)MBCONV_STRIP * p->stride; /* pixels that a strip may reach past the end */
    int64_t middle = (p->held_rows * (int64_t)p->pitch + beyond) * (p->slice + MBCONV_PAD) * 4;
    int64_t parts = (int64_t)p->filter_tiles * 16 * p->line * 4;
    int64_t at_x = round_up(p->chunk, 128), at_middle = at_x + (int64_t)p->tiles_in * p->deep_in * 256;
    int64_t at_own = at_middle + round_up(middle > parts ? middle : parts, 128);
    int64_t at_places = at_own + (int64_t)p->tiles_out * p->deep_out * 256;
    int64_t shared = at_places + (int64_t)p->tiles_in * 32;
    if (shared + 1024 > calculator->shared_most) return false;
    p->at_x = (int)at_x;
    p->at_middle = (int)at_middle;
    p->at_own = (int)at_own;
    p->at_places = (int)at_places;
    p->shared = (int)shared;
    return true;
}

/* Rounds of `at_once` parallel tasks that a block needs. A partly filled last round counts for half as a whole one,
 * since threads wait for each other, and for half as what it holds, since warps share the multiprocessor. */
static double rounds(int64_t tasks, int at_once)
{
    return 0.5 * (cuda_ceil_div(tasks, at_once) + (double)tasks / at_once);
}

/* Nanoseconds, roughly, of a block's phases. Factors were fitted to the times of MobileNetV2's blocks, run one after
 * the other on an H200, under various cuts. Clusters beyond CUDA_CLUSTER_PORTABLE leave gaps. */
static double estimate(const cuda_calculator *calculator, const cuda_mbconv *p)
{
    const int warps = p->threads / 32, slot = calculator->math == SDLF_MATH_TF32 ? 2 : 4;
    double loaded = rounds((int64_t)p->tiles_in * p->deep_in, warps) * slot;
    double expanded = rounds((int64_t)p->slice / 16 * cuda_ceil_div(p->tiles_in, 2), warps);
    if (!p->expands) loaded = rounds((int64_t)p->tiles_in * 8 * p->slice, p->threads), expanded = 0;
    double windows = rounds(strips_of(p, p->strip), p->threads) * (p->strip == 2 ? 600 : 1000);
    double projected = rounds((int64_t)p->filter_tiles * cuda_ceil_div(p->tiles_out, 2), warps);
    double finished =
        rounds((int64_t)cuda_ceil_div(p->filters, p->blocks) * cuda_ceil_div(p->rows * p->out_width, 4), p->threads);
    double share = (double)p->images * p->bands * p->blocks / calculator->multiprocessors;
    double waves = cuda_ceil_div((int64_t)p->images * p->bands, cuda_clusters_at_once(calculator, p->blocks, 1));
    double steps = 140 * loaded + expanded * (40 * p->deep_in + 220) + windows + projected * (130 * p->deep_out + 250) +
                   finished * (500 + 40 * p->blocks);
    return 1000 + waves * steps + 500 * share + (p->blocks > CUDA_CLUSTER_PORTABLE ? 500 : 0);
}

/* Choose the cut with the least estimated time. False: there is none. */
static bool choose(const cuda_calculator *calculator, cuda_mbconv *p)
{
    double best = -1;
    cuda_mbconv tried = *p;
    for (int blocks = 1; blocks <= MBCONV_BLOCKS; blocks++) {
        if (cuda_clusters_at_once(calculator, blocks, 1) == 0) continue;
        for (int bands = 1; bands <= p->out_height; bands++) {
            if (!cut(calculator, &tried, blocks, cuda_ceil_div(p->out_height, bands))) continue;
            double taken = estimate(calculator, &tried);
            if (best >= 0 && taken >= best) continue;
            best = taken;
            *p = tried;
        }
    }
    return best >= 0;
}

/* ---- what is taken ---- */

/* True for an undilated 3x3 window which always overlaps the image. */
static bool takes_window(const sdlf_window2d *window)
{
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != MBCONV_SIDE || window->dilation[i] != 1) return false;
        if (window->stride[i] > 2 || window->stride[i] != window->stride[0]) return false;
        if (window->padding_before[i] >= MBCONV_SIDE || window->padding_after[i] >= MBCONV_SIDE) return false;
    }
    return true;
}

/* True in float32, in a math mode with tensor cores, on devices with clusters. */
bool conv2d_mbconv_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    if (op->out[0].dtype != SDLF_FLOAT32 || calculator->math == SDLF_MATH_FP32) return false;
    if (!cuda_is_built_for(calculator, 90) || !takes_window(&inverted_residual_options_of(op)->window)) return false;
    if (sdlf_operation_is_channels_last(op)) return false;
    const int64_t *x = op->in[0].shape.dim, *y = op->out[0].shape.dim, middle = op->in[1].shape.dim[0];
    if (sdlf_tensor_count(&op->in[0]) == 0 || sdlf_tensor_count(&op->out[0]) == 0 || middle == 0) return false;
    if (x[1] > MOST_CHANNELS || y[1] > MOST_CHANNELS || middle > MOST_CHANNELS || x[0] > MOST_CHANNELS) return false;
    if (sdlf_tensor_count(&op->in[0]) > MOST_NUMBERS || sdlf_tensor_count(&op->out[0]) > MOST_NUMBERS ||
        sdlf_shape_span(op->in[0].shape, 2, 4) > MOST_NUMBERS / middle)
        return false;
    cuda_mbconv p;
    return sdlf_operation_cost(op).flops <= MOST_FLOPS && problem_of(op, &p) && choose(calculator, &p);
}

/* ---- prepacked weights ---- */

int64_t conv2d_mbconv_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_mbconv p;
    problem_of(op, &p);
    choose((const cuda_calculator *)calculator, &p);
    return (int64_t)p.blocks * p.chunk;
}

int64_t conv2d_mbconv_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->prepared) ? 0 : conv2d_mbconv_prepared_cuda(calculator, op);
}

/* Waits for its kernel, since the one that reads the weights does not wait. */
sdlf_status conv2d_mbconv_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_mbconv p;
    problem_of(op, &p);
    choose(cuda_calculator_from(base), &p);
    sdlf_status status = cuda_mbconv_prepare(base, &p, op, op->prepared.data);
    if (status != SDLF_OK) return status;
    return cuda_check(cudaStreamSynchronize(cuda_stream(base)), "conv2d, inverted residual, prepacked weights");
}

/* ---- running ---- */

static bool is_aligned(const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || (uintptr_t)tensor->data % 16 == 0;
}

sdlf_status conv2d_mbconv_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    bool ready = sdlf_tensor_present(&op->prepared);
    cuda_mbconv p;
    problem_of(op, &p);
    choose(cuda_calculator_from(base), &p);
    p.x = op->in[0].data;
    p.residual = sdlf_tensor_present(&op->in[7]) ? op->in[7].data : NULL;
    p.w = ready ? op->prepared.data : op->workspace.data;
    p.y = op->out[0].data;
    p.aligned = is_aligned(&op->in[7]) && is_aligned(&op->out[0]);
    p.fresh = !ready;
    sdlf_status status = ready ? SDLF_OK : cuda_mbconv_prepare(base, &p, op, op->workspace.data);
    return status == SDLF_OK ? cuda_mbconv_run(base, &p) : status;
}
