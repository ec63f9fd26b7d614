/* The convolution that "auto" takes, and whether it likes channels last. docs/cuda.md has the rule for users. */
#include "calculators/cuda/conv2d/automatic.h"

#include "calculators/cuda/conv2d/boxes.h"
#include "calculators/cuda/conv2d/few.h"
#include "calculators/cuda/conv2d/implicit.h"
#include "calculators/cuda/conv2d/patch.h"
#include "calculators/cuda/conv2d/pointwise.h"
#include "calculators/cuda/conv2d/winograd.h"
#include "calculators/cuda/gemm/factors.h"

/* Numbers of a sum up to which few-channels is taken, and pixels of one channel up to which strips of them are faster. */
enum { FEW_DEPTH = 160, SINGLE_CHANNEL_PIXELS = 8192 };

/* In fp32, with bias or activation: pixels up to which one kernel for three is what counts in a network, if not in a loop of the same
 * convolution, but for long sums. */
enum { LEAN_PIXELS = 1024, LEAN_DEPTH = 4096 };

/* FLOPs up to which tensor cores save nothing of thin images, and numbers of a thin image's sum below which these are bound by memory whatever
 * computes them. */
enum { SMALL_THIN = 100000000, THIN_DEPTH = 32 };

/* 1x1 convolutions of few channels: FLOPs from which, in tf32, those into four times as many are faster as patches. Other convolutions so
 * large are patches anyway. */
enum { LARGE_EXPANSION = 60000000, EXPANSION = 4 };

cuda_conv2d_asked cuda_conv2d_ask(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    const sdlf_math math = ((const cuda_calculator *)calculator)->math;
    cuda_conv2d_asked a = {.calculator = calculator, .op = op, .g = cuda_conv2d_geometry(op)};
    const cuda_conv2d *g = &a.g;
    a.area = g->out_height * g->out_width;
    a.pixels = g->batch * a.area;
    a.depth = g->group_channels * g->window.size[0] * g->window.size[1];
    a.results = a.pixels * g->filters;
    a.flops = 2 * a.results * a.depth;
    a.wide = op->out[0].dtype == SDLF_FLOAT64;
    a.exact = a.wide || math == SDLF_MATH_FP32;
    a.half = !a.wide && cuda_has_half_factors(math);
    a.finishes =
        op->kind == SDLF_CONV2D_FORWARD && (sdlf_tensor_present(&op->in[2]) || sdlf_tensor_present(&op->in[3]) ||
                                            op->conv2d.activation.function != SDLF_IDENTITY);
    a.quads = a.area % 4 == 0;
    return a;
}

static bool takes(const cuda_conv2d_asked *a, int algorithm)
{
    return cuda_conv2d_takes(a->calculator, a->op, algorithm);
}

/* ---- row-major ---- */

/* In modes with tensor cores: are the kernels without them as fast? */
static bool is_small(const cuda_conv2d_asked *a)
{
    if (a->g.channels <= PATCH_THIN && cuda_few_takes(a->calculator, a->op))
        return a->flops <= SMALL_THIN || a->depth < THIN_DEPTH || a->g.filters <= FEW_FILTERS;
    return cuda_pointwise_takes(a->calculator, a->op) && cuda_pointwise_is_small(a->g.channels, a->flops);
}

/* Up to 3 filters; short sums, where these are exact anyway or tensor cores would save nothing. */
static bool suits_few(const cuda_conv2d_asked *a)
{
    if (!cuda_few_takes(a->calculator, a->op)) return false;
    return a->g.filters <= FEW_FILTERS || ((a->exact || is_small(a)) && a->depth <= FEW_DEPTH);
}

static bool suits_winograd(const cuda_conv2d_asked *a)
{
    return a->exact && cuda_winograd_2_takes(a->calculator, a->op) && a->g.channels >= 16 && a->g.filters >= 16;
}

bool cuda_prefers_two_step(const cuda_conv2d_asked *a)
{
    const cuda_calculator *calculator = (const cuda_calculator *)a->calculator;
    if (a->g.groups != 1 || !takes(a, TWO_STEP)) return false;
    return !takes(a, IMPLICIT) || cuda_two_step_clocks(calculator, a->op) < cuda_implicit_clocks(calculator, a->op);
}

static int forward(const cuda_conv2d_asked *a)
{
    if (suits_few(a)) return a->g.channels == 1 && a->pixels <= SINGLE_CHANNEL_PIXELS ? DEPTHWISE : FEW;
    if (suits_winograd(a)) {
        bool fused = cuda_winograd_fused_takes(a->calculator, a->op) && !cuda_winograd_prefers_steps(a->op);
        return fused ? WINOGRAD_FUSED : WINOGRAD_2;
    }
    bool lean = a->exact && !a->wide && a->finishes && a->pixels <= LEAN_PIXELS && a->depth < LEAN_DEPTH;
    return !lean && cuda_prefers_two_step(a) ? TWO_STEP : AUTO;
}

static int backward(const cuda_conv2d_asked *a)
{
    bool weights = a->op->kind == SDLF_CONV2D_BACKWARD_WEIGHTS;
    bool single = weights && a->g.channels == 1 && (a->exact || a->pixels <= SINGLE_CHANNEL_PIXELS);
    if (single && takes(a, DEPTHWISE)) return DEPTHWISE;
    if (weights && !a->wide && a->g.channels <= PATCH_THIN) return AUTO; /* taps do not fill a tile of cuBLAS's */
    return cuda_prefers_two_step(a) ? TWO_STEP : AUTO;
}

/* ---- the rule ---- */

/* Channels last: depthwise where groups are channels, few-channels where 3x3 windows have up to 4, boxes where it takes
 * them, else patch. Liked for what is not small (below), and in tf32 for more than 60 MFLOP with four times as many filters as channels.
 *
 * Row-major, in this order:
 *   depthwise      several groups of one channel with up to 4 filters: each number is used R S times or little more, so
 *                  that memory decides, and products would be of matrices with that many rows
 *   1x1            conv2d/automatic_pointwise.c
 *   few-channels   forward, up to 3 filters, or, in fp32 and float64, sums of up to 160: there is next to no product, and
 *                  what counts is that the image comes once. In every mode where up to 4 channels are 100 MFLOP at most, or
 *                  sums are of less than 32 numbers. Of one channel, up to 8,192 pixels, depthwise; its gradient in fp32 and float64 too
 *   winograd-2x2   3x3 forward in fp32 with stride 1 and 16 channels and filters or more: 2.25 times fewer multiplications,
 *                  and about as exact as the others; in steps where cuda_winograd_prefers_steps
 *   two-step       where cuBLAS's products, which are faster in large tiles and with long sums, make up for columns, by the estimates of
 *                  conv2d/two_step_clocks.c and of conv2d/implicit.c
 *   implicit-gemm  everything else, down to the smallest: it has tiles for few filters, cuts long sums into parts, needs
 *                  no columns in memory, and adds bias, residual and activation on the way out
 *   tiled          windows of more than 31 rows and columns together, which implicit-gemm does not take
 *   direct         sizes that none of the others can count */
int conv2d_automatic_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    const cuda_conv2d_asked a = cuda_conv2d_ask(calculator, op);
    if (sdlf_operation_is_channels_last(op)) {
        if (a.g.group_channels == 1 && a.g.groups > 1) return DEPTHWISE;
        return cuda_few_last_takes(calculator, op) ? FEW : cuda_boxes_takes(calculator, op) ? BOXES : PATCH;
    }
    if (a.g.groups > 1 && a.g.group_filters <= 4 && takes(&a, DEPTHWISE)) return DEPTHWISE;
    int chosen = cuda_is_unpadded_pointwise(&a)    ? cuda_pointwise_automatic(&a)
                 : op->kind == SDLF_CONV2D_FORWARD ? forward(&a)
                                                   : backward(&a);
    if (chosen != AUTO) return chosen;
    if (takes(&a, IMPLICIT)) return IMPLICIT;
    return cuda_tiled_takes(calculator, op) ? TILED : DIRECT;
}

/* Where there is a kernel for tensor cores, and these save something. Depthwise convolutions, which are slower so, and small ones
 * follow what they find. */
bool conv2d_likes_channels_last_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    sdlf_operation turned = sdlf_operation_channels_last(op);
    bool wanted = op->algorithm == PATCH || op->algorithm == BOXES;
    if ((op->algorithm != AUTO && !wanted) || !cuda_patch_takes(calculator, &turned)) return false;
    if (wanted) return true;
    const cuda_conv2d_asked a = cuda_conv2d_ask(calculator, op);
    bool expands = cuda_is_pointwise(&a.g) && a.g.filters >= EXPANSION * a.g.channels && a.flops > LARGE_EXPANSION &&
                   !a.exact && !a.half;
    return !cuda_pointwise_prefers_warps(&a) && (expands || !is_small(&a));
}
