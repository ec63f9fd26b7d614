/* SPDX-License-Identifier: MIT */
/* conv2d_backward_weights, NHWC. See conv2d_nhwc_backward.h and weights_nhwc.h.
 *
 * For each tap of the window, dw[tap] (C,K) = x^T dy over the output pixels for which the tap reads inside the image: products of rows read
 * in place, without im2col; short rows are first gathered, several at a time. A task processes its share of the output rows a few at a time,
 * so that the parts of x and dy that all taps read stay in the second-level cache. 2 N K P Q C R S FLOPs; floor: x and dy moved once. */
#include "calculators/cpu/kernels/conv2d_nhwc_backward.h"
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/weights_nhwc.h"

enum {
    LEAST_TASKS = 16,
    LEAST_VECTORS = TILE_VECTORS,                   /* of a part */
    MOST_SUMS = (8 << 20) / sizeof(element),        /* of all shares, unless a single one is larger */
    BLOCK_ELEMENTS = (256 << 10) / sizeof(element), /* x and dy of the rows that a task processes at a time */
    LONG_ROW = 32,
    PIECE_PIXELS = 256,
    SHARE_PIXELS = 512, /* minimum of a share: its partial sums are written and read once more */
    WRITTEN_CHANNELS = 64,
    BIAS_CHANNELS = 4 * LANES,
    BIAS_PIXELS = 256,
};

weights_nhwc weights_nhwc_of_cpu(const convolution *v, int64_t units, int64_t each)
{
    weights_nhwc all = {.vectors = cpu_divide_up(v->k, LANES)};
    all.sums_size = each * v->c * all.vectors * LANES;
    int64_t most = cpu_max(1, MOST_SUMS / cpu_max(1, all.sums_size * v->groups));
    all.shares = cpu_max(1, cpu_min(cpu_min(most, LEAST_TASKS), units));
    int64_t wanted = cpu_divide_up(LEAST_TASKS, all.shares * v->groups);
    all.parts = cpu_min(cpu_divide_up(all.vectors, LEAST_VECTORS), wanted);
    return all;
}

/* ---- row by row ---- */

/* True if outputs are processed in pieces that span rows: with short rows, a product for each row would spend its time
 * on the accumulators; pieces also pad the filters to whole vectors. */
static bool gathers(const convolution *v)
{
    return v->k % LANES != 0 || v->q < LONG_ROW || im2col_is_plain_cpu(v);
}

/* Rows of outputs that are processed at a time. */
static int64_t rows_at_once(const convolution *v)
{
    int64_t row = v->q * v->groups * v->k + v->stride[0] * v->w * v->groups * v->c;
    return cpu_max(cpu_divide_up(PIECE_PIXELS, cpu_max(1, v->q)), BLOCK_ELEMENTS / cpu_max(1, row));
}

static weights_nhwc rows_of(const convolution *v)
{
    int64_t shares = cpu_max(1, v->n * v->p_q / SHARE_PIXELS);
    weights_nhwc all = weights_nhwc_of_cpu(v, cpu_min(v->n * v->p, shares), v->r_s);
    int64_t width = cpu_divide_up(all.vectors, all.parts) * LANES;
    if (gathers(v)) all.scratch_size = PIECE_PIXELS * (cpu_round_up(v->c, LANES) + width);
    return all;
}

/* The operands and partial sums of a task. */
typedef struct share_part {
    const element *x, *dy;              /* of its group; dy of its filters */
    int64_t count, width;               /* actual filters; rounded up to whole vectors */
    element *sums, *pixels, *gradients; /* gathered pixels and padded gradients of a piece */
} share_part;

/* One tap of the output rows [first, first + rows), linearised over all images: one product for each row. */
static void add_tap(const weights_nhwc *all, const share_part *part, int64_t tap, int64_t first, int64_t rows)
{
    const convolution *v = &all->backward->v;
    int64_t r = tap / v->s, s = tap % v->s, top, bottom, left, right, filters = all->vectors * LANES;
    int64_t pixel = v->groups * v->c, dy_step = v->groups * v->k;
    element *sums = part->sums + tap * v->c * filters;
    convolution_inside(v, 0, r, v->p, v->h, &top, &bottom);
    convolution_inside(v, 1, s, v->q, v->w, &left, &right);
    for (int64_t row = first; row < first + rows; row++) {
        int64_t n = row / v->p, p = row % v->p;
        if (p < top || p >= bottom) continue;
        int64_t h = p * v->stride[0] + r * v->dilation[0] - v->before[0];
        int64_t w = left * v->stride[1] + s * v->dilation[1] - v->before[1];
        weights_nhwc_add(sums, filters, part->x + ((n * v->h + h) * v->w + w) * pixel, v->stride[1] * pixel,
                         part->dy + (row * v->q + left) * dy_step, dy_step, v->c, part->width, right - left, true);
    }
}

/* Gathers the input of a tap for `count` outputs, linearised over all images, from output `first` on; zeros in the padding. */
static void gather_pixels(const convolution *v, const element *x, int64_t tap, int64_t first, int64_t count,
                          element *to)
{
    int64_t r = tap / v->s, s = tap % v->s, top, bottom, left, right, q = first % v->q;
    int64_t channels = cpu_round_up(v->c, LANES), pixel = v->groups * v->c;
    convolution_inside(v, 0, r, v->p, v->h, &top, &bottom);
    convolution_inside(v, 1, s, v->q, v->w, &left, &right);
    for (int64_t row = first / v->q, end = first + count; row * v->q < end; row++, q = 0) {
        int64_t n = row / v->p, p = row % v->p, last = cpu_min(v->q, end - row * v->q);
        int64_t h = p * v->stride[0] + r * v->dilation[0] - v->before[0], w = s * v->dilation[1] - v->before[1];
        bool inside = p >= top && p < bottom;
        for (; q < last; q++, to += channels) {
            if (!inside || q < left || q >= right)
                memset(to, 0, (size_t)v->c * sizeof *to);
            else
                memcpy(to, x + ((n * v->h + h) * v->w + q * v->stride[1] + w) * pixel, (size_t)v->c * sizeof *to);
        }
    }
}

/* All taps of `count` outputs from output `first` on. x is gathered unless it is contiguous, dy is copied if its
 * filters do not fill vectors. */
static void add_piece(const weights_nhwc *all, const share_part *part, int64_t first, int64_t count, bool accumulate)
{
    const convolution *v = &all->backward->v;
    int64_t filters = all->vectors * LANES, x_step = v->groups * v->c, dy_step = v->groups * v->k;
    const element *x = part->x + first * x_step, *dy = part->dy + first * dy_step;
    if (part->count < part->width) {
        for (int64_t i = 0; i < count; i++) {
            element *to = part->gradients + i * part->width;
            memcpy(to, dy + i * dy_step, (size_t)part->count * sizeof *to);
            memset(to + part->count, 0, (size_t)(part->width - part->count) * sizeof *to);
        }
        dy = part->gradients;
        dy_step = part->width;
    }
    for (int64_t tap = 0; tap < v->r_s; tap++) {
        if (!im2col_is_plain_cpu(v)) {
            gather_pixels(v, part->x, tap, first, count, part->pixels);
            x = part->pixels;
            x_step = cpu_round_up(v->c, LANES);
        }
        weights_nhwc_add(part->sums + tap * v->c * filters, filters, x, x_step, dy, dy_step, v->c, part->width, count,
                         accumulate);
    }
}

static void add_share(void *context, int64_t index, int thread)
{
    const weights_nhwc *all = context;
    const convolution *v = &all->backward->v;
    int64_t share = index % all->shares, of = index / all->shares % all->parts,
            group = index / all->shares / all->parts;
    int64_t start = weights_nhwc_start(all, of) * LANES, last = (share + 1) * v->n * v->p / all->shares;
    element *room = all->scratch + thread * all->scratch_size;
    share_part part = {.x = all->backward->x + group * v->c,
                       .dy = all->backward->dy + group * v->k + start,
                       .width = weights_nhwc_start(all, of + 1) * LANES - start,
                       .sums = all->sums + (group * all->shares + share) * all->sums_size + start,
                       .pixels = room,
                       .gradients = room + PIECE_PIXELS * cpu_round_up(v->c, LANES)};
    part.count = cpu_min(part.width, v->k - start);
    for (int64_t i = 0; i < v->r_s * v->c && !gathers(v); i++)
        memset(part.sums + i * all->vectors * LANES, 0, (size_t)part.width * sizeof *part.sums);
    int64_t first = share * v->n * v->p / all->shares;
    for (int64_t i = first * v->q, count; i < last * v->q && gathers(v); i += count) {
        count = cpu_min(PIECE_PIXELS, last * v->q - i);
        add_piece(all, &part, i, count, i > first * v->q);
    }
    for (int64_t rows; first < last && !gathers(v); first += rows) {
        rows = cpu_min(rows_at_once(v), last - first);
        for (int64_t tap = 0; tap < v->r_s; tap++) add_tap(all, &part, tap, first, rows);
    }
}

/* dw of one vector of filters of a group, summed over all shares. */
static void write_filters(void *context, int64_t index, int thread)
{
    const weights_nhwc *all = context;
    const convolution *v = &all->backward->v;
    int64_t group = index / all->vectors, k = index % all->vectors * LANES, filters = all->vectors * LANES;
    int64_t count = cpu_min(LANES, v->k - k);
    const element *sums = all->sums + group * all->shares * all->sums_size + k;
    element *dw = all->backward->dw + (group * v->k + k) * v->taps, block[WRITTEN_CHANNELS * LANES];
    (void)thread;
    for (int64_t i = 0; i < v->r_s * v->c;) {
        int64_t tap = i / v->c, c = i % v->c, some = cpu_min(WRITTEN_CHANNELS, v->c - c);
        for (int64_t j = 0; j < some; j++, i++) {
            vector sum = load(sums + i * filters);
            for (int64_t share = 1; share < all->shares; share++)
                sum += load(sums + share * all->sums_size + i * filters);
            store(block + j * LANES, sum);
        }
        if (v->r_s == 1) {
            transpose(dw + c, v->taps, block, LANES, some, count);
            continue;
        }
        for (int64_t j = 0; j < some; j++) {
            for (int64_t l = 0; l < count; l++) dw[l * v->taps + (c + j) * v->r_s + tap] = block[j * LANES + l];
        }
    }
}

/* ---- algorithm selection ---- */

static weights_nhwc weights_of(const convolution *v)
{
    if (depthwise_nhwc_takes_cpu(v)) return depthwise_weights_of_cpu(v);
    return winograd_weights_takes_cpu(v) ? winograd_weights_of_cpu(v) : rows_of(v);
}

bool conv2d_nhwc_weights_takes_cpu(const convolution *v)
{
    return !depthwise_takes(v) || depthwise_nhwc_takes_cpu(v);
}

im2col_space conv2d_nhwc_weights_space_cpu(const convolution *v)
{
    weights_nhwc all = weights_of(v);
    int64_t groups = depthwise_nhwc_takes_cpu(v) ? 1 : v->groups;
    return (im2col_space){.each = all.scratch_size, .shared = groups * all.shares * all.sums_size};
}

void conv2d_nhwc_weights_cpu(const cpu_calculator *cpu, const convolution_backward *backward, element *scratch)
{
    const convolution *v = &backward->v;
    bool depthwise = depthwise_nhwc_takes_cpu(v), winograd = !depthwise && winograd_weights_takes_cpu(v);
    weights_nhwc all = weights_of(v);
    int64_t groups = depthwise ? 1 : v->groups;
    all.backward = backward;
    all.sums = scratch;
    all.scratch = scratch + groups * all.shares * all.sums_size;
    cpu_parallel(cpu, groups * all.parts * all.shares, convolution_time(v),
                 depthwise  ? depthwise_weights_share_cpu
                 : winograd ? winograd_weights_share_cpu
                            : add_share,
                 &all);
    cpu_parallel(cpu, groups * all.vectors, cpu_time_of_elements(2 * groups * all.shares * all.sums_size),
                 depthwise  ? depthwise_weights_write_cpu
                 : winograd ? winograd_weights_write_cpu
                            : write_filters,
                 &all);
}

/* ---- the bias ---- */

typedef struct bias_context {
    const convolution *v;
    const element *dy;
    element *db;
} bias_context;

/* A task handles some filters; partial sums over BIAS_PIXELS pixels are added in double. */
static void sum_bias(void *context, int64_t index, int thread)
{
    const bias_context *all = context;
    int64_t filters = all->v->groups * all->v->k, pixels = all->v->n * all->v->p_q, first = index * BIAS_CHANNELS;
    int64_t count = cpu_min(BIAS_CHANNELS, filters - first);
    double sums[BIAS_CHANNELS] = {0};
    (void)thread;
    for (int64_t i = 0; i < pixels; i += BIAS_PIXELS) {
        element part[BIAS_CHANNELS] = {0};
        for (int64_t j = i; j < cpu_min(pixels, i + BIAS_PIXELS); j++) {
            const element *dy = all->dy + j * filters + first;
            for (int64_t k = 0; k < count; k++) part[k] += dy[k];
        }
        for (int64_t k = 0; k < count; k++) sums[k] += (double)part[k];
    }
    for (int64_t k = 0; k < count; k++) all->db[first + k] = (element)sums[k];
}

void conv2d_nhwc_bias_cpu(const cpu_calculator *cpu, const convolution *v, const element *dy, element *db)
{
    bias_context all = {.v = v, .dy = dy, .db = db};
    int64_t filters = v->groups * v->k;
    cpu_parallel(cpu, cpu_divide_up(filters, BIAS_CHANNELS), cpu_time_of_elements(v->n * v->p_q * filters), sum_bias,
                 &all);
}
