/* SPDX-License-Identifier: MIT */
/* TMA-tiled implicit GEMM in 16 bits: the choice of a tile, what is supported, running; and the same with ReLU and 2x2
 * max-pool fused into the epilogue. */
#include <math.h>

#include "calculators/cuda/conv2d/halo16.h"
#include "calculators/cuda/conv2d_pool/conv2d_pool.h"
#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/fusions/conv2d_pool.h"

/* In the order of the launcher's cases (conv2d/halo16.cu). */
static const cuda_halo16_tile tiles[HALO16_TILES] = {
    {256, 64, 2, 2, 2},  {256, 128, 3, 3, 1}, {128, 64, 4, 2, 2},
    {128, 128, 4, 4, 1}, {128, 128, 2, 2, 2}, {128, 64, 8, 4, 1},
};

/* A tile is 8 pixels across; for images of one line the whole tile is one line. */
void cuda_halo16_cut(cuda_halo *p, int number)
{
    const cuda_halo16_tile *tile = &tiles[number];
    int chunks = p->steps / p->taps, across = p->out_height == 1 ? tile->pixels : 8, down = tile->pixels / across;
    p->tile_log = 3;
    while (1 << p->tile_log < across) p->tile_log++;
    p->tiles_down = cuda_ceil_div(p->out_height, down);
    p->tiles_across = cuda_ceil_div(p->out_width, across);
    p->patch_across = across + p->tap_sides[1] - 1;
    p->patch_pixels = p->patch_across * (down + p->tap_sides[0] - 1);
    p->tiles_filters = cuda_ceil_div(p->filters, tile->filters);
    p->patches = tile->boxes < chunks ? tile->boxes : chunks;
    p->patch_bytes = cuda_ceil_div((int64_t)p->patch_pixels * 4 * HALO_CHANNELS, 1024) * 1024;
}

int64_t cuda_halo16_shared(const cuda_halo *p, int number)
{
    const cuda_halo16_tile *tile = &tiles[number];
    int64_t weights = (int64_t)tile->filters * HALO16_TAPS * HALO_CHANNELS * 2;
    int64_t product = (int64_t)p->patches * p->patch_bytes + tile->stages * weights;
    int64_t results = (int64_t)tile->pixels * (tile->filters + 4) * 4;
    return (product > results ? product : results) + 8 * (2 * tile->stages + 3 * HALO16_MOST) + 1024;
}

/* ---- the choice ---- */

/* Cycles of a k-step of a block alone on a multiprocessor, and of each of two that share it; and after a block's k-steps. */
typedef struct halo16_time {
    double alone, two, behind;
} halo16_time;

static const halo16_time times[HALO16_TILES] = {
    {1563, 1624, 6500}, {1700, 1700, 5000}, {584, 880, 3000}, {840, 840, 3500}, {1300, 2300, 4500}, {430, 430, 3000},
};

/* Cycles more for split-K, and for each split; and before the k-steps of each wave of blocks. */
enum { SHARED = 2200, EACH = 400, BEFORE = 2000 };

static bool fits(const cuda_calculator *calculator, const cuda_halo *p, int number)
{
    return cuda_halo16_shared(p, number) <= calculator->shared_most && cuda_halo_blocks(p) <= 65535 &&
           p->patch_across <= HALO_BOX;
}

/* Clusters expected to run at a time, as cuda_clusters_expected, but rounded up, so that 16 of 17 are: the blocks of
 * most networks' last convolutions (512 filters, 64 a block, in two rows of tiles). */
static int clusters_expected(const cuda_calculator *calculator, int size, int fit)
{
    int most = cuda_clusters_at_once(calculator, size, fit);
    return size > 2 && most > 15 ? cuda_ceil_div(most * 15, 16) : most;
}

/* Estimated cycles of the busiest multiprocessor. */
static double cycles_of(const cuda_calculator *calculator, const cuda_halo *p, int number)
{
    const cuda_halo16_tile *tile = &tiles[number];
    const halo16_time *time = &times[number];
    int64_t room = (calculator->shared_most + 1024) / (cuda_halo16_shared(p, number) + 1024);
    int fit = room < tile->blocks ? (int)room : tile->blocks;
    double places = (double)clusters_expected(calculator, p->splits, fit) * p->splits / fit; /* clusters leave gaps */
    int load = (int)ceil((double)cuda_halo_blocks(p) / places);
    int at_once = load < fit ? load : fit, turns = cuda_ceil_div(load, at_once);
    double steps = cuda_ceil_div(p->steps / HALO16_TAPS, p->splits) * (at_once > 1 ? time->two : time->alone);
    return turns * (steps + time->behind + BEFORE) + (p->splits > 1 ? SHARED + EACH * p->splits : 0);
}

/* "auto": the least estimated time, by parameters measured on an H200. It depends only on shapes, math mode and device. */
bool cuda_halo16_choose(const cuda_calculator *calculator, cuda_halo *p, cuda_halo16_launch *how)
{
    int best = -1, splits = 1, steps = p->steps / HALO16_TAPS;
    double least = 0;
    for (int i = 0; i < HALO16_TILES; i++) {
        cuda_halo16_cut(p, i);
        for (p->splits = 1; p->splits <= HALO_SPLITS && (p->splits == 1 || steps >= p->splits); p->splits++) {
            if (!fits(calculator, p, i)) continue;
            double cycles = cycles_of(calculator, p, i);
            if (best >= 0 && cycles >= least) continue;
            least = cycles;
            best = i;
            splits = p->splits;
        }
    }
    if (best < 0) return false;
    cuda_halo16_cut(p, best);
    p->splits = splits;
    const sdlf_activation_function function = p->activation.function;
    p->quick = function == SDLF_IDENTITY || function == SDLF_RELU || function == SDLF_CLIP;
    *how = (cuda_halo16_launch){.tile = best, .shared = cuda_halo16_shared(p, best)};
    return true;
}

bool cuda_halo16_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
#ifdef SDLF_HAVE_WGMMA
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    if (calculator->capability != 90 || !cuda_halo_takes(base, op)) return false;
    const sdlf_window2d *window = &op->conv2d.window;
    for (int i = 0; i < 2; i++) {
        if (window->stride[i] != 1 || window->dilation[i] != 1) return false;
    }
    int64_t channels = op->in[0].shape.dim[1];
    if (window->size[1] != HALO16_TAPS || channels <= HALO_THIN || channels % 4 != 0) return false;
    if (!cuda_has_operands16(calculator->math)) return false;
    cuda_halo p = cuda_halo_problem(op);
    cuda_halo16_launch how;
    return cuda_halo16_choose(calculator, &p, &how);
#else
    (void)base;
    (void)op;
    return false;
#endif
}

sdlf_status cuda_halo16_run(sdlf_calculator *base, const sdlf_operation *op, bool pools, int plane)
{
#ifdef SDLF_HAVE_WGMMA
    cuda_halo p = cuda_halo_operands(op);
    p.plane = plane;
    cuda_halo16_launch how;
    if (!cuda_halo16_choose(cuda_calculator_from(base), &p, &how))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d over boxes: no tile fits");
    how.pools = pools;
    sdlf_status status = SDLF_OK;
    if (p.fresh) status = cuda_halo_prepare(base, &p, op->in[1].data, op->workspace.data, false);
    return status == SDLF_OK ? cuda_halo16_multiply(base, &p, &how) : status;
#else
    (void)base;
    (void)op;
    (void)pools;
    (void)plane;
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "conv2d over boxes: not in this build");
#endif
}

sdlf_status conv2d_halo16_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return cuda_halo16_run(base, op, false, 0);
}

/* Tiles consist of whole pooling windows where they have several lines. */
bool cuda_halo16_pool_takes(const sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = (const cuda_calculator *)base;
    const sdlf_window2d *pool = &conv2d_pool_options_of(op)->pool;
    if (sdlf_tensor_present(&op->out[1])) return false;
    if (op->out[0].dtype != SDLF_FLOAT32) return false;
    for (int i = 0; i < 2; i++) {
        if (pool->size[i] != 2 || pool->stride[i] != 2) return false;
    }
    sdlf_operation convolution = cuda_conv2d_of_pool(op);
    if (convolution.out[0].shape.dim[2] == 1) return false;
    return cuda_has_operands16(calculator->math) ? cuda_halo16_takes(base, &convolution)
                                                 : cuda_halo_pools(base, &convolution);
}

int64_t cuda_halo16_pool_prepared(const sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = cuda_conv2d_of_pool(op);
    return cuda_halo_prepared(base, &convolution);
}

int64_t cuda_halo16_pool_workspace(const sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = cuda_conv2d_of_pool(op);
    return conv2d_halo_workspace_cuda(base, &convolution);
}

sdlf_status conv2d_halo16_pool_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = cuda_conv2d_of_pool(op);
    return conv2d_halo_prepare_cuda(base, &convolution);
}

sdlf_status conv2d_halo16_pool_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation convolution = cuda_conv2d_of_pool(op);
    convolution.out[0].data = op->out[0].data;
    bool operands16 = cuda_has_operands16(cuda_calculator_from(base)->math);
    bool last = sdlf_tensor_is_channels_last(&op->out[0]);
    int plane = last ? 0 : (int)sdlf_shape_span(op->out[0].shape, 2, 4);
    return operands16 ? cuda_halo16_run(base, &convolution, true, plane) : cuda_halo_pool(base, &convolution, plane);
}
