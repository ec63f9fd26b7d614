/* SPDX-License-Identifier: MIT */
/* A 1x1 convolution and the depthwise one behind it: what is taken, and into which blocks it is cut. */
#include "calculators/cuda/conv2d/pair.h"

#include "calculators/cuda/conv2d/algorithms.h"

#include <math.h>
#include <string.h>

/* Numbers between the convolutions, and FLOPs of the first one: beyond these it is a product worth larger tiles than blocks have here. */
enum { MOST_BETWEEN = 1 << 21, MOST_FLOPS = 50000000 };

/* Of a grid in two of its directions. */
enum { MOST_BLOCKS = 65535 };

static int divide_up(int64_t a, int64_t b)
{
    return (int)((a + b - 1) / b);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static cuda_pair problem_of(const sdlf_operation *op)
{
    const int64_t *x = op->in[0].shape.dim, *y = op->out[0].shape.dim;
    const sdlf_window2d *window = &op->conv2d_pair.window;
    cuda_pair p;
    memset(&p, 0, sizeof p);
    p.between = op->conv2d_pair.between;
    p.activation = op->conv2d_pair.activation;
    p.images = (int)x[0];
    p.channels = (int)x[1];
    p.height = (int)x[2];
    p.width = (int)x[3];
    p.filters = (int)y[1];
    p.out_height = (int)y[2];
    p.out_width = (int)y[3];
    p.side = window->size[0];
    for (int i = 0; i < 2; i++) {
        p.stride[i] = window->stride[i];
        p.padding[i] = window->padding_before[i];
    }
    return p;
}

/* ---- blocks ---- */

/* Pixels of a channel that a block holds at most. */
static int pixels_of(const cuda_pair *p)
{
    return least(p->held_rows, p->height) * p->width;
}

static int round_up(int64_t count, int unit)
{
    return divide_up(count, unit) * unit;
}

/* Groups of so many filters, so many bands of rows, sums shared by so many warps: all that follows. False: not with so many warps. */
static bool cut(cuda_pair *p, int group, int bands, int slices)
{
    p->group = group;
    p->groups = divide_up(p->filters, group);
    p->rows = divide_up(p->out_height, bands);
    p->bands = divide_up(p->out_height, p->rows);
    p->held_rows = (p->rows - 1) * p->stride[0] + p->side;
    int across = (p->out_width - 1) * p->stride[1] + p->side, padded = p->width + p->padding[1];
    p->pitch = across > padded ? across : padded;
    p->chunk = (p->channels + 2 + p->side * p->side) * group;
    p->slices = slices;
    int pixels = pixels_of(p), tasks = divide_up(pixels, PAIR_ACROSS), most = PAIR_WARPS * PAIR_DOWN / (group * slices);
    int rounds = divide_up(tasks, most);
    p->warps = divide_up(tasks, rounds) * slices * (group / PAIR_DOWN);
    int64_t numbers = (int64_t)p->channels * pixels + PAIR_ACROSS,
            parts = (int64_t)slices * group * tasks * PAIR_ACROSS;
    p->room = round_up(slices > 1 && parts > numbers ? parts : numbers, 4);
    int beyond = PAIR_STRIP * p->stride[0] * p->pitch; /* that a strip may reach into */
    p->shared = 4 * ((int64_t)p->chunk + p->room + round_up((int64_t)group * p->held_rows * p->pitch + beyond, 4));
    return slices == 1 || rounds == 1;
}

/* Nanoseconds, roughly: a sum of what it waits for and of what it does, whose factors were fitted to the times that cuts of the blocks of
 * MobileNetV2 took on an H200: each warp's products, sums shared and windows, four warps at a time; numbers brought to a
 * multiprocessor and to all of them. */
static double estimate(const cuda_calculator *calculator, const cuda_pair *p)
{
    int pixels = pixels_of(p), threads = 32 * p->warps, tasks = divide_up(pixels, PAIR_ACROSS);
    int64_t blocks = (int64_t)p->images * p->bands * p->groups;
    double each = divide_up(blocks, calculator->multiprocessors),
           resident = 2 * p->shared <= calculator->shared_most ? 2 : 1;
    double busy = p->warps < 4 ? p->warps : 4, turns = each * p->warps / busy;
    double products = (double)divide_up(p->channels, p->slices);
    if (p->slices == 1) products *= divide_up(tasks * (p->group / PAIR_DOWN), p->warps);
    double parts = p->slices > 1 ? divide_up(p->group * tasks * (PAIR_ACROSS / 4), threads) : 0;
    double windows = divide_up((int64_t)p->group * p->out_width * divide_up(p->rows, PAIR_STRIP), threads);
    windows *= ((p->stride[0] + 3) * p->side * p->side + 40) / 40.0;
    double brought = 4.0 * ((double)p->channels * pixels + p->chunk);
    return 2600 + turns * (7.4 * products + 95 * parts + 55 * windows) + 10 * products * ceil(each / resident) +
           brought * (2e-3 * each + 2.8e-4 * (double)blocks);
}

/* The cut that seems fastest, of those whose bands are a strip or more; of all, where none of these fits. False: none does. */
static bool choose(const cuda_calculator *calculator, cuda_pair *p)
{
    double best = -1;
    cuda_pair tried = *p;
    for (int least_rows = least(PAIR_STRIP, p->out_height); least_rows >= 1 && best < 0; least_rows--) {
        for (int kind = 0; kind < 4; kind++) {
            int group = kind % 2 == 0 ? PAIR_DOWN : PAIR_GROUP, slices = kind < 2 ? 1 : PAIR_SLICES;
            for (int bands = 1; bands <= divide_up(p->out_height, least_rows); bands++) {
                bool fits = cut(&tried, group, bands, slices);
                if (!fits || tried.bands != bands || tried.shared > calculator->shared_most) continue;
                double taken = estimate(calculator, &tried);
                if (best >= 0 && taken >= best) continue;
                best = taken;
                *p = tried;
            }
        }
    }
    return best >= 0;
}

/* ---- what is taken ---- */

/* A window of 3x3 or 5x5, not dilated, that holds a number of the image wherever it stands. */
static bool takes_window(const sdlf_window2d *window)
{
    int side = window->size[0];
    if (side != window->size[1] || (side != 3 && side != 5)) return false;
    for (int i = 0; i < 2; i++) {
        if (window->dilation[i] != 1 || window->stride[i] > 2 || window->stride[i] != window->stride[0]) return false;
        if (window->padding_before[i] >= side || window->padding_after[i] >= side) return false;
    }
    return true;
}

/* In float32, and computed as such in every mode: so only where tensor cores would save nothing. */
bool conv2d_pair_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    if (op->out[0].dtype != SDLF_FLOAT32 || !takes_window(&op->conv2d_pair.window)) return false;
    const int64_t *x = op->in[0].shape.dim;
    int64_t area = sdlf_shape_span(op->in[0].shape, 2, 4), filters = op->in[1].shape.dim[0];
    if (x[0] == 0 || area == 0 || x[1] == 0 || filters == 0 || sdlf_tensor_count(&op->out[0]) == 0) return false;
    if (x[0] > MOST_BLOCKS || op->out[0].shape.dim[2] > MOST_BLOCKS || area > MOST_BETWEEN || filters > MOST_BETWEEN ||
        x[1] > MOST_FLOPS)
        return false;
    if (x[0] * area > MOST_BETWEEN / filters || sdlf_tensor_count(&op->out[0]) > MOST_BETWEEN) return false;
    int64_t flops = 2 * x[0] * area * filters * x[1];
    if (flops > MOST_FLOPS || x[1] * area > INT32_MAX / 16) return false;
    if (calculator->math != SDLF_MATH_FP32 && !cuda_pointwise_is_small(x[1], flops)) return false;
    cuda_pair p = problem_of(op);
    return choose(calculator, &p);
}

/* ---- weights made ready ---- */

int64_t conv2d_pair_prepared_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_pair p = problem_of(op);
    choose((const cuda_calculator *)calculator, &p);
    return 4 * (int64_t)p.groups * p.chunk;
}

int64_t conv2d_pair_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->prepared) ? 0 : conv2d_pair_prepared_cuda(calculator, op);
}

/* Waits until they are: the kernel that reads them does not. */
sdlf_status conv2d_pair_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_pair p = problem_of(op);
    choose(cuda_calculator_from(base), &p);
    sdlf_status status = cuda_pair_prepare(base, &p, op, op->prepared.data);
    if (status != SDLF_OK) return status;
    return cuda_check(cudaStreamSynchronize(cuda_stream(base)), "conv2d, pointwise and depthwise, weights made ready");
}

/* ---- running ---- */

sdlf_status conv2d_pair_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    bool ready = sdlf_tensor_present(&op->prepared);
    cuda_pair p = problem_of(op);
    choose(cuda_calculator_from(base), &p);
    p.x = op->in[0].data;
    p.w = ready ? op->prepared.data : op->workspace.data;
    p.y = op->out[0].data;
    p.fresh = !ready;
    sdlf_status status = ready ? SDLF_OK : cuda_pair_prepare(base, &p, op, op->workspace.data);
    return status == SDLF_OK ? cuda_pair_run(base, &p) : status;
}
