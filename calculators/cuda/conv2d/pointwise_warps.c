/* SPDX-License-Identifier: MIT */
/* 1x1 convolutions by warps that each load what they multiply: what is supported, and the choice of tile and blocks. */
#include "calculators/cuda/conv2d/pointwise_warps.h"

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/conv2d/pointwise.h"

#include <assert.h>
#include <string.h>

/* In the order of conv2d/pointwise_warps.cu. Cycles were fitted to 1,500 times measured on an H200, of MobileNetV2's
 * 1x1 convolutions at batch 1, 8 and 32 and ResNet-50's at 32. */
const cuda_pointwise_warps_tile cuda_pointwise_warps_tiles[WARPS_TILES] = {
    {1, 32, 64, 12, 1, 668, 851},  {1, 32, 128, 8, 1, 1366, 1048}, {4, 24, 128, 4, 3, 1386, 1172},
    {4, 16, 128, 8, 2, 556, 1824}, {4, 32, 128, 8, 1, 1823, 1067}, {4, 48, 64, 4, 3, 1382, 1249},
};

/* Limits: blocks along the second dimension of a grid, and tiles of a block that does not split K. */
enum { MOST_GROUPS = 65535, MOST_TILES = 4 };

static cuda_pointwise_warps problem_of(const sdlf_operation *op)
{
    cuda_conv2d g = cuda_conv2d_geometry(op);
    cuda_pointwise_warps p;
    memset(&p, 0, sizeof p);
    activation_range(&op->conv2d.activation, &p.low, &p.high);
    p.channels = (int)g.channels;
    p.filters = (int)g.filters;
    p.area = (int)(g.height * g.width);
    p.pixels = (int)(g.batch * p.area);
    p.steps = p.channels / WARPS_CHANNELS;
    return p;
}

/* ---- blocks ---- */

/* Partial sums are as many elements as the warps' tiles have. */
static int64_t shared_of(const cuda_pointwise_warps *p, const cuda_pointwise_warps_tile *tile)
{
    int64_t weights = (int64_t)p->steps * WARPS_CHANNELS * tile->filters * 4;
    int64_t parts = p->slices > 1 ? (int64_t)p->slices * p->tiles * tile->filters * tile->pixels * 4 : 0;
    return WARPS_BARRIERS + (weights > parts ? weights : parts);
}

/* Resident warps of a multiprocessor, in blocks of so many, each with so much shared memory. */
static int resident(const cuda_calculator *calculator, const cuda_pointwise_warps_tile *tile, int warps, int64_t shared)
{
    int blocks = tile->most * tile->most_blocks / warps;
    int64_t room = (calculator->shared_most + 1024) / (shared + 1024);
    return (int)(room < blocks ? room : blocks) * warps;
}

/* Estimated cycles: rounds of the resident warps, which multiply, four at a time, or wait for loads, and then add
 * partial sums; or the traffic through the L2 cache, if that takes longer. */
static double estimate(const cuda_calculator *calculator, const cuda_pointwise_warps *p, int number)
{
    const double block = 281, cached = 2835, parted = 20;
    const cuda_pointwise_warps_tile *tile = &cuda_pointwise_warps_tiles[number];
    int warps = p->slices * p->tiles;
    double blocks = (double)cuda_ceil_div(cuda_ceil_div(p->pixels, tile->pixels), p->tiles) * p->groups;
    int load = cuda_ceil_div((int64_t)blocks, calculator->multiprocessors) * warps;
    double turns = cuda_ceil_div(load, resident(calculator, tile, warps, p->shared)), at_once = load / turns;
    double products = (double)tile->step * cuda_ceil_div((int64_t)at_once, 4);
    double wait = (double)tile->away * WARPS_CHANNELS / WARPS_AHEAD;
    double steps = cuda_ceil_div(p->steps, p->slices) * (products > wait ? products : wait) + tile->away;
    double parts = p->slices > 1 ? at_once * tile->filters * tile->pixels / parted : 0;
    double work = turns * (steps + parts) + block * blocks / calculator->multiprocessors;
    double numbers = blocks * p->channels * (p->tiles * tile->pixels + tile->filters) + (double)p->pixels * p->filters;
    double traffic = 4 * numbers / cached;
    return (work > traffic ? work : traffic) + work / 20; /* of equal times, prefer the one with less work */
}

static bool suits(const cuda_pointwise_warps_tile *tile, const cuda_pointwise_warps *p)
{
    return tile->wide == 1 ? p->area == WARPS_AREA : p->area % 4 == 0;
}

/* Choose the tile and cut with the least estimated time; -1: none fits. A block has splits of K, or up to 4 tiles, not both. */
static int choose(const cuda_calculator *calculator, cuda_pointwise_warps *p)
{
    int best_tile = -1;
    double best = 0;
    cuda_pointwise_warps tried = *p;
    for (int i = 0; i < WARPS_TILES; i++) {
        const cuda_pointwise_warps_tile *tile = &cuda_pointwise_warps_tiles[i];
        if (!suits(tile, p)) continue;
        tried.groups = cuda_ceil_div(p->filters, tile->filters);
        for (int warps = 2; warps <= tile->most && tried.groups <= MOST_GROUPS; warps++) {
            for (int split = 0; split < 2; split++) {
                if (!split && (warps > MOST_TILES || (warps & (warps - 1)) != 0)) continue;
                tried.slices = split ? warps : 1;
                tried.tiles = split ? 1 : warps;
                tried.shared = shared_of(&tried, tile);
                if (tried.slices > tried.steps || tried.shared > calculator->shared_most) continue;
                double time = estimate(calculator, &tried, i);
                if (best_tile >= 0 && time >= best) continue;
                best = time;
                best_tile = i;
                *p = tried;
            }
        }
    }
    return best_tile;
}

/* ---- what is taken ---- */

static bool is_aligned(const void *address)
{
    return ((uintptr_t)address & 15) == 0;
}

bool cuda_pointwise_warps_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    if (op->kind != SDLF_CONV2D_FORWARD || op->out[0].dtype != SDLF_FLOAT32 || op->conv2d.groups != 1) return false;
    if (!cuda_is_built_for(calculator, 90) || sdlf_operation_is_channels_last(op) || sdlf_operation_is_mixed(op))
        return false;
    if (calculator->math != SDLF_MATH_FP32) return false;
    cuda_conv2d g = cuda_conv2d_geometry(op);
    float low, high;
    if (!cuda_is_pointwise(&g) || !activation_range(&op->conv2d.activation, &low, &high)) return false;
    if (sdlf_tensor_count(&op->in[0]) == 0 || sdlf_tensor_count(&op->out[0]) == 0) return false;
    if (g.channels % WARPS_CHANNELS != 0 || g.channels > INT32_MAX / 4096 || g.filters > INT32_MAX / 4096) return false;
    if (sdlf_tensor_count(&op->in[0]) > INT32_MAX / 4 || sdlf_tensor_count(&op->out[0]) > INT32_MAX / 4) return false;
    cuda_pointwise_warps p = problem_of(op);
    return cuda_pointwise_takes(base, op) && choose(calculator, &p) >= 0;
}

/* ---- prepacked weights ---- */

int64_t cuda_pointwise_warps_prepared(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    cuda_pointwise_warps p = problem_of(op);
    int tile = choose((const cuda_calculator *)calculator, &p);
    assert(tile >= 0); /* called only for supported operations */
    return (int64_t)p.groups * p.steps * WARPS_CHANNELS * cuda_pointwise_warps_tiles[tile].filters * 4;
}

int64_t conv2d_pointwise_warps_workspace_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->prepared) ? 0 : cuda_pointwise_warps_prepared(calculator, op);
}

/* Waits for its kernel, since the one that reads the weights does not wait. */
sdlf_status conv2d_pointwise_warps_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_pointwise_warps p = problem_of(op);
    int tile = choose(cuda_calculator_from(base), &p);
    assert(tile >= 0);
    sdlf_status status = cuda_pointwise_warps_prepare(base, &p, tile, op->in[1].data, op->prepared.data);
    return status == SDLF_OK ? base->type->synchronize(base) : status;
}

/* Operands that are not aligned to 16 bytes are left to the pointwise kernel. */
sdlf_status conv2d_pointwise_warps_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_pointwise_warps p = problem_of(op);
    int tile = choose(cuda_calculator_from(base), &p);
    assert(tile >= 0);
    p.fresh = !sdlf_tensor_present(&op->prepared);
    p.w = p.fresh ? op->workspace.data : op->prepared.data;
    p.x = op->in[0].data;
    p.bias = sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL;
    p.residual = sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL;
    p.y = op->out[0].data;
    bool aligned = is_aligned(p.x) && is_aligned(p.w) && is_aligned(p.residual) && is_aligned(p.y);
    if (!aligned) return conv2d_pointwise_cuda(base, op);
    sdlf_status status = SDLF_OK;
    if (p.fresh) status = cuda_pointwise_warps_prepare(base, &p, tile, op->in[1].data, op->workspace.data);
    return status == SDLF_OK ? cuda_pointwise_warps_run(base, &p, tile) : status;
}
