/* SPDX-License-Identifier: MIT */
/* Implicit GEMM with halo reuse: the choice of a tile and of the number of splits of K.
 *
 * "auto" estimates the time of each tile with each number of splits, and takes the least. The estimate has eight parameters a tile,
 * fitted to 7,000 times measured on an H200, of layers of VGG16, ResNet-18 and MobileNetV2 at batch 1, 8 and 32, those of TMA tiles to
 * 5,000 others; its choices are within a tenth of the fastest, all layers together. It depends only on shapes, math mode and
 * device. */
#include "calculators/cuda/conv2d/halo.h"

/* Microseconds. With several resident blocks on a multiprocessor, a k-step takes `together` for each of them where they
 * compete for a unit, but never less than a block by itself takes, which is latency. */
typedef struct halo_time {
    double alone, pointwise; /* a k-step of a block by itself; and for 1x1 windows, whose patches are used once */
    double together;         /* a k-step of each block, where there are several */
    double block;            /* before and after a block's k-steps */
    double launch;           /* once */
    double split, part;      /* split-K: once, and for each split */
    double memory;           /* for each megabyte of x and y */
} halo_time;

typedef struct halo_tile {
    cuda_halo_tile tile;
    halo_time time[2]; /* in tf32, in 16 bits */
} halo_tile;

/* In the order of the launchers' cases (conv2d/halo_tma.cu, conv2d/halo_mma.cuh). The last one is for thin images. TMA
 * tiles are only for tf32. */
static const halo_tile tiles[HALO_TILES] = {
    {{256, 128, 6, 1, 2, 8, 4, false, 0}, {{0.571, 0.699, 0.571, 4.63, 0.11, 1.89, 0.14, 0.059}}},
    {{512, 64, 4, 1, 2, 16, 4, false, 0}, {{0.569, 0.891, 0.569, 4.98, 0.01, 2.82, 0.07, 0.046}}},
    {{224, 128, 6, 1, 2, 8, 4, false, 0}, {{0.490, 0.548, 0.490, 3.61, 0.51, 2.50, 0.09, 0.077}}},
    {{448, 64, 4, 1, 2, 16, 4, false, 0}, {{0.489, 0.829, 0.012, 4.83, 0.20, 2.54, 0.04, 0.048}}},
    {{224, 64, 3, 2, 2, 8, 2, false, 0}, {{0.247, 0.613, 0.247, 3.06, 0.24, 1.80, 0.01, 0.067}}},
    {{128, 128, 3, 2, 2, 8, 2, false, 0}, {{0.284, 0.487, 0.284, 2.96, 0.01, 2.25, 0.01, 0.079}}},
    {{128, 64, 4, 2, 2, 8, 2, false, 0}, {{0.167, 0.220, 0.143, 1.74, 1.28, 1.42, 0.01, 0.083}}},
    {{128, 128, 6, 1, 3, 8, 4, false, 0}, {{0.283, 0.283, 0.283, 2.19, 0.90, 1.94, 0.04, 0.086}}},
    {{112, 128, 3, 2, 2, 8, 2, false, 0}, {{0.253, 0.270, 0.253, 2.62, 0.19, 2.10, 0.02, 0.066}}},
    {{208, 128, 6, 1, 2, HALO_LINES, 2, false, 0}, {{0.461, 0.461, 0.461, 5.23, 0.01, 2.01, 0.01, 0.005}}},
    {{216, 128, 6, 1, 2, HALO_LINES, 3, false, 0}, {{0.481, 0.481, 0.481, 5.48, 0.01, 1.67, 0.01, 0.005}}},
    {{112, 64, 8, 2, 2, 8, 2, false, 2}, {{0.125, 0.125, 0.125, 2.59, 0.64, 1.06, 0.09, 0.120}}},
    {{224, 128, 5, 1, 2, 8, 0, true, 0}, {{0.490, 0.548, 0.490, 2.70, 4.20, 2.50, 0.09, 0.005}}},
    {{448, 64, 4, 1, 2, 16, 0, true, 0}, {{0.489, 0.829, 0.012, 3.00, 2.40, 2.54, 0.04, 0.070}}},
    {{208, 128, 6, 1, 2, HALO_LINES, 0, true, 0}, {{0.461, 0.461, 0.461, 1.90, 4.50, 2.01, 0.01, 0.020}}},
    {{216, 128, 6, 1, 2, HALO_LINES, 0, true, 0}, {{0.481, 0.481, 0.481, 1.20, 4.50, 1.67, 0.01, 0.050}}},
    {{128, 64, 4, 2, 0, 0, 0, false, 0},
     {{0.84, 1.10, 0.47, 1.97, 3.91, 0.01, 0.01, 0.29}, {0.55, 0.53, 0.11, 1.09, 4.00, 1.77, 0.01, 0.92}}},
    {{64, 64, 4, 3, 0, 0, 0, false, 0},
     {{0.59, 0.69, 0.41, 1.15, 3.15, 0.54, 0.01, 0.20}, {0.48, 0.39, 0.12, 0.93, 3.53, 1.09, 0.01, 0.35}}},
    {{64, 32, 4, 5, 0, 0, 0, false, 0},
     {{0.58, 0.67, 0.46, 0.69, 2.11, 0.96, 0.01, 0.07}, {0.53, 0.62, 0.39, 0.98, 1.77, 1.10, 0.01, 0.05}}},
    {{32, 64, 6, 4, 0, 0, 0, false, 0},
     {{0.50, 0.56, 0.31, 0.84, 1.78, 0.99, 0.01, 0.19}, {0.39, 0.43, 0.26, 1.07, 1.91, 1.15, 0.01, 0.05}}},
    {{32, 64, 4, 4, 0, 0, 0, false, 0},
     {{0.52, 0.50, 0.36, 0.62, 2.14, 1.05, 0.01, 0.05}, {0.40, 0.44, 0.27, 1.22, 1.53, 1.15, 0.01, 0.05}}},
    {{32, 32, 4, 6, 0, 0, 0, false, 0},
     {{0.48, 0.53, 0.32, 0.41, 1.57, 0.94, 0.10, 0.05}, {0.40, 0.48, 0.29, 0.53, 1.43, 1.14, 0.07, 0.05}}},
    {{16, 64, 6, 5, 0, 0, 0, false, 0},
     {{0.51, 0.49, 0.23, 0.79, 1.08, 0.89, 0.11, 0.14}, {0.36, 0.42, 0.24, 0.49, 1.46, 0.96, 0.09, 0.05}}},
    {.tile = {256, 64, 3, 1, 0, 0, 0, false, 0}},
};

/* `block` of TMA tiles in 1x1 convolutions, where all pixels are one row: their epilogue is shorter. */
static const double row_block[HALO_TILES] = {3.73, 3.69, 2.75, 3.07, 2.12, 2.27, 1.20, 1.72, 2.04};

const cuda_halo_tile *cuda_halo_tile_of(int number)
{
    return &tiles[number].tile;
}

int cuda_halo_weight_bytes(sdlf_math math)
{
    return math == SDLF_MATH_TF32 ? 4 : 2;
}

/* ---- the choice ---- */

/* True if wgmma may be used. */
static bool has_groups(const cuda_calculator *calculator)
{
#ifdef SDLF_HAVE_WGMMA
    return calculator->capability == 90;
#else
    (void)calculator;
    return false;
#endif
}

static const double RESIDUAL = 7; /* microseconds more for a TMA tile whose epilogue reads a residual from memory */

static double time_of(const cuda_calculator *calculator, const cuda_halo *p, int number, int64_t shared)
{
    const cuda_halo_tile *tile = &tiles[number].tile;
    const halo_time *time = &tiles[number].time[calculator->math != SDLF_MATH_TF32];
    int64_t blocks = cuda_halo_blocks(p), room = (calculator->shared_most + 1024) / (shared + 1024);
    int fit = room < tile->blocks ? (int)room : tile->blocks;
    int places = calculator->multiprocessors; /* multiprocessors that have a block each */
    if (tile->across > 0 && p->splits > 1) places = p->splits * cuda_clusters_at_once(calculator, p->splits, 1);
    int load = cuda_ceil_div(blocks, places); /* blocks of the busiest multiprocessor */
    double at_once = load < fit ? load : fit, turns = load / at_once;
    if (p->splits > 1) turns = cuda_ceil_div(blocks / p->splits, cuda_clusters_expected(calculator, p->splits, fit));
    double alone = p->taps > 1 ? time->alone : time->pointwise, step = time->together * at_once;
    bool row = p->taps == 1 && p->height == 1 && row_block[number] > 0;
    double block = row ? row_block[number] : time->block;
    if (p->residual != NULL && p->direct && tile->across > 0 && !tile->stored) block += RESIDUAL;
    double steps = cuda_ceil_div(p->steps, p->splits),
           megabytes = 4e-6 * ((double)p->images * p->height * p->width * p->channels +
                               (double)p->images * p->out_height * p->out_width * p->filters);
    double total = time->launch + time->memory * megabytes +
                   turns * (block * (0.5 + 0.5 * at_once) + steps * (step > alone ? step : alone));
    return p->splits > 1 ? total + time->split + time->part * p->splits : total;
}

static bool fits(const cuda_calculator *calculator, const cuda_halo *p, int number)
{
    return cuda_halo_blocks(p) <= INT32_MAX &&
           cuda_halo_shared(p, number, cuda_halo_weight_bytes(calculator->math)) <= calculator->shared_most;
}

/* True for activations that the kernels compute in registers: identity, ReLU, clip. */
static bool is_quick(const sdlf_activation *activation)
{
    return activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU ||
           activation->function == SDLF_CLIP;
}

/* Thin images are bound by writing y: large tiles where there are enough of them, tiles of few filters for few filters. */
static int choose_thin(const cuda_calculator *calculator, cuda_halo *p)
{
    enum { LARGE = HALO_TILES - 1, NARROW = HALO_WARP_TILE + 2, SMALL = HALO_WARP_TILE + 3 };
    cuda_halo_cut(p, LARGE, true);
    int wanted = p->filters <= 32                                                      ? NARROW
                 : cuda_halo_blocks(p) >= calculator->multiprocessors * INT64_C(3) / 2 ? LARGE
                                                                                       : SMALL;
    const int order[] = {wanted, NARROW, SMALL};
    for (int i = 0; i < 3; i++) {
        cuda_halo_cut(p, order[i], true);
        if (fits(calculator, p, order[i])) return order[i];
    }
    return -1;
}

/* True if this tile supports the problem, which is not thin. */
static bool suits(const cuda_calculator *calculator, const cuda_halo *p, int number)
{
    const cuda_halo_tile *tile = &tiles[number].tile;
    bool boxes = tile->across > 0;
    if (boxes && (calculator->math != SDLF_MATH_TF32 || !has_groups(calculator))) return false;
    if (boxes && !p->quads && !p->pools) return false;
    if (p->taps < tile->shares) return false; /* a share would skip whole patches */
    if (p->pools && (!boxes || tile->across == HALO_LINES)) return false;
    return p->filters_padded % tile->filters == 0; /* a k-step's weights are copied whole */
}

/* True if results go to y from registers or by TMA, and not through shared memory that held operands. */
static bool is_direct(const cuda_halo *p, int number, bool quick)
{
    const cuda_halo_tile *tile = &tiles[number].tile;
    return quick && p->splits == 1 && tile->shares == 0 && (tile->across == 0 || p->fours);
}

/* Lead of a block's first warpgroup, in k-steps: with several tiles a block, one group's epilogue overlaps the other's mainloop. */
static int lead_of(const cuda_calculator *calculator, const cuda_halo *p)
{
    enum { FEW = 18 }; /* k-steps of a tile, half of which take as long as an epilogue */
    if (!p->direct || p->taps == 1 || cuda_halo_blocks(p) <= calculator->multiprocessors) return 0;
    return p->steps <= FEW ? FEW / 2 : FEW / 6;
}

/* True if TMA stores may be used. Many tiles of two pixel groups do not: groups with a common weight ring would wait for each other's stores. */
static bool can_store(const cuda_calculator *calculator, const cuda_halo *p, int number)
{
    if (!p->direct || p->plane > 0) return false;
    if (tiles[number].tile.filters == HALO_FILTERS || p->pools) return true;
    return p->residual != NULL || cuda_halo_blocks(p) <= calculator->multiprocessors * INT64_C(8);
}

int cuda_halo_choose(const cuda_calculator *calculator, cuda_halo *p, bool thin)
{
    int best_tile = -1, best_splits = 1, bytes = cuda_halo_weight_bytes(calculator->math);
    double best = 0;
    bool quick = is_quick(&p->activation);
    p->splits = 1;
    p->direct = quick;
    p->quick = quick;
    if (thin) return choose_thin(calculator, p);
    for (int i = 0; i < HALO_TILES - 1; i++) {
        if (!suits(calculator, p, i) || !cuda_halo_cut(p, i, false)) continue;
        for (int splits = 1; splits <= HALO_SPLITS; splits++) {
            if (splits > 1 && (!cuda_is_built_for(calculator, 90) || p->steps < 2 * splits)) break; /* clusters */
            p->splits = splits;
            p->direct = is_direct(p, i, quick);
            if (tiles[i].tile.stored && !can_store(calculator, p, i)) break;
            if (!fits(calculator, p, i)) continue;
            double time = time_of(calculator, p, i, cuda_halo_shared(p, i, bytes));
            if (best_tile >= 0 && time >= best) continue;
            best = time;
            best_tile = i;
            best_splits = splits;
        }
    }
    if (best_tile < 0) return -1;
    cuda_halo_cut(p, best_tile, false);
    p->splits = best_splits;
    p->direct = is_direct(p, best_tile, quick);
    p->lead = lead_of(calculator, p);
    return best_tile;
}
