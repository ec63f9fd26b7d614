/* SPDX-License-Identifier: MIT */
/* The weight gradient of 3x3 convolutions by Winograd's F(2x2,3x3), NHWC. See winograd.h and weights_nhwc.h.
 *
 *     dw = G^T [ sum over tiles of (B^T d B) . (A dy A^T) ] G
 *
 * with the matrices of the forward pass: its adjoint. For each of the 16 points the sum over tiles is a GEMM (C,tiles) (tiles,K).
 * A task processes some tiles at a time: it computes patches V[t][tile][c] as in the forward pass and gradients Y[t][tile][filter
 * of the part], and adds V^T Y to its partial sums [t][c][filter], all in the second-level cache if these are not large.
 * 2 . 16 K C tiles FLOPs, against 72 for the direct sum. */
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/weights_nhwc.h"
#include "calculators/cpu/kernels/winograd_stages.h"

enum {
    POINTS = 16,
    CHUNK_ELEMENTS = (512 << 10) / sizeof(element), /* patches and gradients that a task computes at a time */
    LEAST_TILES = 64,                               /* minimum: partial sums are read and written once for them */
    MOST_SUMS = 1 << 24,                            /* of a share: beyond, they cost more than they save */
};

bool winograd_weights_takes_cpu(const convolution *v)
{
    return winograd_takes_cpu(v) && winograd_pays_cpu(v) && POINTS * v->c * v->k <= MOST_SUMS;
}

/* Elements of one point's partial sums, padded to avoid mapping the points to the same cache sets. */
static int64_t plane_of(const weights_nhwc *all, const convolution *v)
{
    return v->c * all->vectors * LANES + LANES;
}

/* The geometry of the tiles, as the input transform needs it. */
static winograd tiles_of(const weights_nhwc *all)
{
    const convolution *v = &all->backward->v;
    int64_t width = cpu_divide_up(all->vectors, all->parts) * LANES;
    winograd tiles = {.m = 2, .points = POINTS, .channels = cpu_round_up(v->c, LANES)};
    tiles.rows = cpu_divide_up(v->p, 2);
    tiles.row = cpu_divide_up(v->q, 2);
    tiles.tiles = v->n * tiles.rows * tiles.row;
    tiles.run = cpu_max(LEAST_TILES, CHUNK_ELEMENTS / (POINTS * (tiles.channels + width)));
    tiles.run = cpu_min(tiles.run, cpu_divide_up(tiles.tiles, all->shares));
    tiles.patch_step = tiles.run * tiles.channels + LANES; /* avoids mapping the points to the same cache sets */
    tiles.product_step = tiles.run * width + LANES;
    tiles.patches_size = POINTS * tiles.patch_step;
    tiles.output_size = POINTS * tiles.product_step;
    return tiles;
}

weights_nhwc winograd_weights_of_cpu(const convolution *v)
{
    int64_t tiles = v->n * cpu_divide_up(v->p, 2) * cpu_divide_up(v->q, 2);
    weights_nhwc all = weights_nhwc_of_cpu(v, cpu_divide_up(tiles, LEAST_TILES), POINTS);
    const convolution_backward sizes = {.v = *v};
    all.sums_size = POINTS * plane_of(&all, v);
    all.backward = &sizes;
    winograd each = tiles_of(&all);
    all.backward = NULL;
    all.scratch_size = cpu_round_up(each.channels + each.patches_size + each.output_size, LANES);
    return all;
}

/* to = A d: four values from two. */
static inline void spread_outputs(vector to[4], vector first, vector second)
{
    to[0] = first;
    to[1] = first + second;
    to[2] = first - second;
    to[3] = -second;
}

/* A dy A^T of one vector of filters; from[2 p + q]: NULL outside the image. */
static inline void transform_gradient(const element *const from[4], int64_t k, int64_t count, element *to, int64_t step)
{
    vector d[4], half[2][4];
    for (int i = 0; i < 4; i++) {
        element part[LANES] = {0};
        if (from[i] != NULL && count < LANES) memcpy(part, from[i] + k, (size_t)count * sizeof *part);
        d[i] = from[i] == NULL || count < LANES ? load(part) : load(from[i] + k);
    }
    for (int q = 0; q < 2; q++) spread_outputs(half[q], d[q], d[2 + q]);
    for (int r = 0; r < 4; r++) {
        vector line[4];
        spread_outputs(line, half[0][r], half[1][r]);
        for (int s = 0; s < 4; s++) store(to + (4 * r + s) * step + k, line[s]);
    }
}

/* Transforms the gradients of `count` tiles, `width` filters of a group from `filter` on. */
static void transform_gradients(const weights_nhwc *all, const winograd *tiles, int64_t filter, int64_t filters,
                                int64_t width, int64_t first, int64_t count, element *to)
{
    const convolution *v = &all->backward->v;
    int64_t pixel = v->groups * v->k;
    winograd_place at = winograd_at(tiles, first), ahead = winograd_at(tiles, first + FETCH_TILES);
    for (int64_t i = 0; i < count; i++, to += width, winograd_next(tiles, &at), winograd_next(tiles, &ahead)) {
        winograd_fetch(tiles, &ahead, all->backward->dy + filter, v->p, v->q, pixel, filters, 0);
        const element *dy = all->backward->dy + ((at.image * v->p + at.p) * v->q + at.q) * pixel + filter, *from[4];
        for (int j = 0; j < 4; j++) {
            bool inside = at.p + j / 2 < v->p && at.q + j % 2 < v->q;
            from[j] = inside ? dy + (j / 2 * v->q + j % 2) * pixel : NULL;
        }
        for (int64_t k = 0; k < width; k += LANES)
            transform_gradient(from, k, cpu_min(LANES, filters - k), to, tiles->product_step);
    }
}

void winograd_weights_share_cpu(void *context, int64_t index, int thread)
{
    const weights_nhwc *all = context;
    const convolution_backward *backward = all->backward;
    const convolution *v = &backward->v;
    int64_t share = index % all->shares, part = index / all->shares % all->parts,
            group = index / all->shares / all->parts;
    int64_t start = weights_nhwc_start(all, part) * LANES, width = weights_nhwc_start(all, part + 1) * LANES - start;
    int64_t row = all->vectors * LANES;
    const convolution_forward forward = {.v = *v, .x = backward->x};
    winograd tiles = tiles_of(all);
    element *zeros = all->scratch + thread * all->scratch_size, *transformed = zeros + tiles.channels;
    element *gradients = transformed + tiles.patches_size;
    element *sums = all->sums + (group * all->shares + share) * all->sums_size + start;
    int64_t start_tile = share * tiles.tiles / all->shares, last = (share + 1) * tiles.tiles / all->shares;
    tiles.forward = &forward;
    tiles.zeros = zeros;
    memset(zeros, 0, (size_t)tiles.channels * sizeof *zeros);
    for (int64_t first = start_tile, count; first < last; first += count) {
        count = cpu_min(tiles.run, last - first);
        winograd_input_transform_cpu(&tiles, group, first, count, transformed);
        transform_gradients(all, &tiles, group * v->k + start, cpu_min(width, v->k - start), width, first, count,
                            gradients);
        for (int point = 0; point < POINTS; point++)
            weights_nhwc_add(sums + point * plane_of(all, v), row, transformed + point * tiles.patch_step,
                             tiles.channels, gradients + point * tiles.product_step, width, v->c, width, count,
                             first > start_tile);
    }
}

/* to = G^T m: three taps from four sums. */
static inline void gather_taps(vector to[3], const vector m[4])
{
    vector sum = (element)0.5 * (m[1] + m[2]);
    to[0] = m[0] + sum;
    to[1] = (element)0.5 * (m[1] - m[2]);
    to[2] = sum + m[3];
}

void winograd_weights_write_cpu(void *context, int64_t index, int thread)
{
    const weights_nhwc *all = context;
    const convolution *v = &all->backward->v;
    int64_t group = index / all->vectors, k = index % all->vectors * LANES, row = all->vectors * LANES;
    int64_t count = cpu_min(LANES, v->k - k);
    element *dw = all->backward->dw + (group * v->k + k) * v->taps;
    (void)thread;
    for (int64_t c = 0; c < v->c; c++, dw += 9) {
        const element *sums = all->sums + group * all->shares * all->sums_size + c * row + k;
        vector m[4][4], half[4][3];
        for (int point = 0; point < POINTS; point++) {
            vector sum = load(sums + point * plane_of(all, v));
            for (int64_t share = 1; share < all->shares; share++)
                sum += load(sums + share * all->sums_size + point * plane_of(all, v));
            m[point % 4][point / 4] = sum; /* columns */
        }
        for (int s = 0; s < 4; s++) gather_taps(half[s], m[s]);
        for (int r = 0; r < 3; r++) {
            vector line[4] = {half[0][r], half[1][r], half[2][r], half[3][r]}, taps[3];
            gather_taps(taps, line);
            for (int s = 0; s < 3; s++) {
                element lanes[LANES];
                store(lanes, taps[s]);
                for (int64_t j = 0; j < count; j++) dw[j * v->taps + 3 * r + s] = lanes[j];
            }
        }
    }
}
