/* SPDX-License-Identifier: MIT */
/* Convolution over boxes: the tiles that a problem is cut into. */
#include "calculators/cuda/conv2d/boxes.h"

#include <math.h>

/* In the order in which the launcher has them (conv2d/boxes.cu). */
static const cuda_boxes_tile tiles[BOXES_TILES] = {
    {256, 64, 2, 2, 2},  {256, 128, 3, 3, 1}, {128, 64, 4, 2, 2},
    {128, 128, 4, 4, 1}, {128, 128, 2, 2, 2}, {128, 64, 8, 4, 1},
};

const cuda_boxes_tile *cuda_boxes_tile_of(int number)
{
    return &tiles[number];
}

/* A tile is 8 pixels across, or, of images of one line, all of it. */
void cuda_boxes_cut(cuda_patch *p, int number)
{
    const cuda_boxes_tile *tile = &tiles[number];
    int chunks = p->steps / p->taps, across = p->out_height == 1 ? tile->pixels : 8, down = tile->pixels / across;
    p->tile_log = 3;
    while (1 << p->tile_log < across) p->tile_log++;
    p->tiles_down = cuda_ceil_div(p->out_height, down);
    p->tiles_across = cuda_ceil_div(p->out_width, across);
    p->patch_across = across + p->tap_sides[1] - 1;
    p->patch_pixels = p->patch_across * (down + p->tap_sides[0] - 1);
    p->tiles_filters = cuda_ceil_div(p->filters, tile->filters);
    p->patches = tile->boxes < chunks ? tile->boxes : chunks;
    p->patch_bytes = cuda_ceil_div((int64_t)p->patch_pixels * 4 * PATCH_CHANNELS, 1024) * 1024;
}

int64_t cuda_boxes_shared(const cuda_patch *p, int number)
{
    const cuda_boxes_tile *tile = &tiles[number];
    int64_t weights = (int64_t)tile->filters * BOXES_TAPS * PATCH_CHANNELS * 2;
    int64_t product = (int64_t)p->patches * p->patch_bytes + tile->stages * weights;
    int64_t results = (int64_t)tile->pixels * (tile->filters + 4) * 4;
    return (product > results ? product : results) + 8 * (2 * tile->stages + 3 * BOXES_MOST) + 1024;
}

/* ---- the choice ---- */

/* Cycles of a step of a block that is alone on a multiprocessor, and of two that share it; and behind a block's steps. */
typedef struct boxes_time {
    double alone, two, behind;
} boxes_time;

static const boxes_time times[BOXES_TILES] = {
    {1563, 1624, 6500}, {1700, 1700, 5000}, {584, 880, 3000}, {840, 840, 3500}, {1300, 2300, 4500}, {430, 430, 3000},
};

/* More of those for sums that blocks share, and for each of these blocks; before the steps of every turn of blocks but the first. */
enum { SHARED = 2200, EACH = 400, BEFORE = 2000 };

static bool fits(const cuda_calculator *calculator, const cuda_patch *p, int number)
{
    return cuda_boxes_shared(p, number) <= calculator->shared_most && cuda_patch_blocks(p) <= 65535 &&
           p->patch_across <= PATCH_BOX;
}

/* Clusters that may be counted on to run at a time, as of other kernels (cuda_clusters_expected), but 16 of 17: blocks of most networks'
 * last convolutions, 512 filters of 64 a block in two rows of tiles. */
static int clusters_expected(const cuda_calculator *calculator, int size, int fit)
{
    int most = cuda_clusters_at_once(calculator, size, fit);
    return size > 2 && most > 15 ? cuda_ceil_div(most * 15, 16) : most;
}

/* Cycles of the busiest multiprocessor. */
static double cycles_of(const cuda_calculator *calculator, const cuda_patch *p, int number)
{
    const cuda_boxes_tile *tile = &tiles[number];
    const boxes_time *time = &times[number];
    int64_t room = (calculator->shared_most + 1024) / (cuda_boxes_shared(p, number) + 1024);
    int fit = room < tile->blocks ? (int)room : tile->blocks;
    double places = (double)clusters_expected(calculator, p->splits, fit) * p->splits / fit; /* clusters leave gaps */
    int load = (int)ceil((double)cuda_patch_blocks(p) / places);
    int at_once = load < fit ? load : fit, turns = cuda_ceil_div(load, at_once);
    double steps = cuda_ceil_div(p->steps / BOXES_TAPS, p->splits) * (at_once > 1 ? time->two : time->alone);
    return turns * (steps + time->behind + BEFORE) + (p->splits > 1 ? SHARED + EACH * p->splits : 0);
}

/* "auto": the least by an estimate, whose numbers were measured on an H200. It depends on shapes, mode and the device alone. */
bool cuda_boxes_choose(const cuda_calculator *calculator, cuda_patch *p, cuda_boxes_launch *how)
{
    int best = -1, splits = 1, steps = p->steps / BOXES_TAPS;
    double least = 0;
    for (int i = 0; i < BOXES_TILES; i++) {
        cuda_boxes_cut(p, i);
        for (p->splits = 1; p->splits <= PATCH_SPLITS && (p->splits == 1 || steps >= p->splits); p->splits++) {
            if (!fits(calculator, p, i)) continue;
            double cycles = cycles_of(calculator, p, i);
            if (best >= 0 && cycles >= least) continue;
            least = cycles;
            best = i;
            splits = p->splits;
        }
    }
    if (best < 0) return false;
    cuda_boxes_cut(p, best);
    p->splits = splits;
    const sdlf_activation_function function = p->activation.function;
    p->quick = function == SDLF_IDENTITY || function == SDLF_RELU || function == SDLF_CLIP;
    *how = (cuda_boxes_launch){.tile = best, .shared = cuda_boxes_shared(p, best)};
    return true;
}
