/* SPDX-License-Identifier: MIT */
/* lstm and gru: the partition of units and samples, by an estimated time per step. A group's samples are computed by the blocks of a cluster or
 * of a part of the grid; more groups mean less data to exchange in each, and more units per block. The constants are for an H200, and rough:
 * they only need to reflect the orders of magnitude of a barrier, a launch and the GEMMs. */
#include "calculators/cuda/recurrent/recurrent.h"

/* Latencies per step in us: the cells and a barrier of the block, of a cluster, of the grid with a read from L2; two launches. */
#define BLOCK_STEP    0.6
#define CLUSTER_STEP  1.1
#define GRID_STEP     2.4
#define LAUNCHED_STEP 6.0
/* Bandwidths of a multiprocessor in bytes per us: its shared memory; reads from L2; remote stores into its shared memory, one element at a
 * time. */
#define SHARED_SPEED  200e3
#define L2_SPEED      40e3
#define CLUSTER_SPEED 30e3

typedef struct sizes {
    int64_t samples, units, gates, width /* of an exchanged row, in elements */, bytes /* of an element */, pieces;
    bool backward;
} sizes;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t rounded(int64_t x, int64_t to)
{
    return cuda_ceil_div(x, to) * to;
}

static sizes sizes_of(const sdlf_operation *operation)
{
    const int64_t *rows = operation->in[0].shape.dim;
    sizes s = {.samples = rows[1], .units = operation->in[1].shape.dim[1], .gates = recurrent_gates(operation)};
    s.backward = recurrent_is_backward(operation);
    s.width = s.backward ? s.gates * s.units : s.units;
    s.bytes = (int64_t)sdlf_dtype_size(operation->in[0].dtype);
    s.pieces = 16 / s.bytes;
    return s;
}

/* Rows per task: forward, the gates of a unit; backward, one per unit. */
static int64_t task_rows(const sizes *s, int64_t tile)
{
    return !s->backward ? s->gates : tile == 1 ? 1 : 4;
}

/* The share of each of `blocks` blocks of a group of `samples`; .algorithm stays RECURRENT_AUTO if that exceeds a block's capacity. */
static recurrent_tiling cut(const cuda_calculator *calculator, const sizes *s, int algorithm, int64_t blocks,
                            int64_t samples)
{
    recurrent_tiling made = {.algorithm = RECURRENT_AUTO};
    int64_t units = cuda_ceil_div(s->units, blocks), tile = samples == 1 ? 1 : samples <= 4 || s->bytes == 8 ? 4 : 8;
    int64_t rows = s->backward ? rounded(units, task_rows(s, tile)) : units * s->gates;
    int64_t line = rounded(s->width, s->pieces), groups = cuda_ceil_div(s->samples, samples);
    int64_t buffers = algorithm == RECURRENT_CLUSTER ? 2 : 1, many = (int64_t)calculator->shared_most;
    if (line > many || rows > many || samples > many || groups > 65535) return made;
    int64_t numbers = (rows + buffers * rounded(samples, tile)) * line + rows + units * samples;
    if (numbers * s->bytes > many) return made;
    made.blocks = (int)blocks, made.groups = (int)groups, made.units = (int)units, made.samples = (int)samples;
    made.tile = (int)tile, made.rows = (int)rows, made.line = (int)line, made.shared = (int)(numbers * s->bytes);
    made.algorithm = algorithm;
    int64_t across = s->backward ? rows / task_rows(s, tile) : units;
    int64_t tasks = across * cuda_ceil_div(samples, tile), read = tasks * (task_rows(s, tile) + tile) * line * s->bytes;
    made.cost = (double)read / SHARED_SPEED;
    return made;
}

/* The blocks of a group form a cluster; any number of groups is allowed, and as many are resident as the device can hold. */
static recurrent_tiling cut_for_cluster(const cuda_calculator *calculator, const sizes *s, int64_t blocks,
                                        int64_t samples)
{
    recurrent_tiling made = {.algorithm = RECURRENT_AUTO};
    int64_t at_once = calculator->multiprocessors;
    if (blocks > 1) at_once = cuda_is_built_for(calculator, 90) ? cuda_clusters_at_once(calculator, (int)blocks, 1) : 0;
    if (at_once < 1 || blocks > s->units) return made;
    made = cut(calculator, s, RECURRENT_CLUSTER, blocks, samples);
    if (made.algorithm == RECURRENT_AUTO) return made;
    made.cost += blocks > 1 ? CLUSTER_STEP + (double)(samples * s->width * s->bytes) / CLUSTER_SPEED : BLOCK_STEP;
    made.cost *= (double)cuda_ceil_div(made.groups, at_once);
    return made;
}

/* The blocks of all groups are resident at once, one per multiprocessor. */
static recurrent_tiling cut_for_grid(const cuda_calculator *calculator, const sizes *s, int64_t samples)
{
    recurrent_tiling made = {.algorithm = RECURRENT_AUTO};
    int can = 0;
    if (cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, calculator->device) != cudaSuccess)
        cudaGetLastError();
    int64_t groups = cuda_ceil_div(s->samples, samples), blocks = calculator->multiprocessors / groups;
    if (!can || blocks < 1 || groups * RECURRENT_TICKETS > CUDA_TICKETS) return made;
    int64_t units = cuda_ceil_div(s->units, least(blocks, s->units));
    made = cut(calculator, s, RECURRENT_GRID, cuda_ceil_div(s->units, units), samples);
    made.cost += GRID_STEP + (double)(samples * s->width * s->bytes) / L2_SPEED;
    return made;
}

static recurrent_tiling by_steps(const cuda_calculator *calculator, const sizes *s)
{
    const double speed = s->bytes == 8 ? 2e7 : calculator->math == SDLF_MATH_FP32 ? 3e7 : 1e8; /* FLOPs a us */
    double flops = 2 * (double)s->samples * (double)s->gates * (double)s->units * (double)s->units;
    double moved = (double)(s->samples * s->units * s->gates * s->bytes) * 4;
    return (recurrent_tiling){.algorithm = RECURRENT_STEPS, .cost = LAUNCHED_STEP + flops / speed + moved / 3e6};
}

static void take_better(recurrent_tiling *best, recurrent_tiling other)
{
    if (other.algorithm == RECURRENT_AUTO) return;
    if (best->algorithm == RECURRENT_AUTO || other.cost < best->cost) *best = other;
}

recurrent_tiling recurrent_tiling_of(const cuda_calculator *calculator, const sdlf_operation *operation, int algorithm)
{
    const sizes s = sizes_of(operation);
    recurrent_tiling best = {.algorithm = RECURRENT_AUTO};
    bool any = algorithm == RECURRENT_AUTO;
    if (any || algorithm == RECURRENT_STEPS) best = by_steps(calculator, &s);
    bool counts =
        s.samples > 0 && s.units > 0 && operation->in[0].shape.dim[0] < INT32_MAX && s.samples < INT32_MAX / 2;
    for (int64_t n = 1; counts; n *= 2) {
        int64_t samples = least(n, s.samples);
        for (int64_t blocks = 1; blocks <= CUDA_CLUSTER && (any || algorithm == RECURRENT_CLUSTER); blocks *= 2)
            take_better(&best, cut_for_cluster(calculator, &s, blocks, samples));
        if (any || algorithm == RECURRENT_GRID) take_better(&best, cut_for_grid(calculator, &s, samples));
        if (samples == s.samples || samples > calculator->shared_most) break;
    }
    return best;
}
