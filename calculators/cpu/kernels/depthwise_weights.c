/* SPDX-License-Identifier: MIT */
/* The weight gradient of a depthwise convolution, NHWC. See weights_nhwc.h.
 *
 * dw[tap][c] = sum over pixels of x[c] dy[c]: vectors run over channels, and the accumulators of a window row's taps stay
 * in registers along a row of outputs. 2 N C P Q R S FLOPs; floor: x and dy moved once, as rows stay in the caches. */
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/lanes.h"
#include "calculators/cpu/kernels/weights_nhwc.h"

enum { SHARES = 16, MOST_TAPS = 8 };

weights_nhwc depthwise_weights_of_cpu(const convolution *v)
{
    weights_nhwc all = {.parts = 1, .vectors = cpu_divide_up(v->groups, LANES)};
    all.shares = cpu_max(1, cpu_min(SHARES, v->n * v->p));
    all.sums_size = v->r_s * all.vectors * LANES;
    return all;
}

/* Some taps of a window row, along a row of outputs; `lanes` of the vector of channels are valid. */
typedef struct window_row {
    const element *x[MOST_TAPS];               /* each tap's first input */
    int64_t first[MOST_TAPS], last[MOST_TAPS]; /* the outputs for which it reads inside the image */
    int64_t inside_first, inside_end;          /* the outputs for which all of them do */
    int taps;
    int64_t x_ahead, dy_ahead; /* prefetch distances to the next row of outputs; 0: no prefetch */
} window_row;

static inline __attribute__((always_inline)) void add_inside(const int taps, const window_row *row, const element *dy,
                                                             int64_t step, int64_t x_step, int64_t c, vector *sums)
{
    vector sum[MOST_TAPS];
    for (int i = 0; i < taps; i++) sum[i] = sums[i];
    for (int64_t q = row->inside_first; q < row->inside_end; q++) {
        vector gradient = load(dy + q * step + c);
        __builtin_prefetch(dy + q * step + c + row->dy_ahead);
        for (int i = 0; i < taps; i++) sum[i] += load(row->x[i] + q * x_step + c) * gradient;
        __builtin_prefetch(row->x[0] + q * x_step + c + row->x_ahead);
    }
    for (int i = 0; i < taps; i++) sums[i] = sum[i];
}

static void add_row(const window_row *row, const element *dy, int64_t step, int64_t x_step, int64_t c, int64_t lanes,
                    vector *sums)
{
    bool whole = lanes >= LANES;
    for (int i = 0; i < row->taps; i++) {
        for (int64_t q = row->first[i]; q < row->last[i]; q++) {
            if (whole && q == row->inside_first && row->inside_end > q) q = row->inside_end;
            if (q >= row->last[i]) break;
            sums[i] += load_some(row->x[i] + q * x_step + c, lanes) * load_some(dy + q * step + c, lanes);
        }
    }
    if (!whole || row->inside_end <= row->inside_first) return;
    switch (row->taps) {
    case 3: add_inside(3, row, dy, step, x_step, c, sums); break;
    case 5: add_inside(5, row, dy, step, x_step, c, sums); break;
    case 7: add_inside(7, row, dy, step, x_step, c, sums); break;
    default:
        for (int i = 0; i < row->taps; i++) {
            window_row one = *row;
            one.x[0] = row->x[i];
            add_inside(1, &one, dy, step, x_step, c, sums + i);
        }
    }
}

/* Row r of the window for output row p, from tap `from` on. x is the image. */
static window_row row_of(const convolution *v, const element *x, int64_t h, int64_t from)
{
    window_row row = {.taps = (int)cpu_min(MOST_TAPS, v->s - from), .inside_end = v->q};
    for (int i = 0; i < row.taps; i++) {
        int64_t s = from + i, start = s * v->dilation[1] - v->before[1];
        convolution_inside(v, 1, s, v->q, v->w, &row.first[i], &row.last[i]);
        row.x[i] = x + (h * v->w + start) * v->groups;
        row.inside_first = cpu_max(row.inside_first, row.first[i]);
        row.inside_end = cpu_min(row.inside_end, row.last[i]);
    }
    return row;
}

void depthwise_weights_share_cpu(void *context, int64_t index, int thread)
{
    const weights_nhwc *all = context;
    const convolution *v = &all->backward->v;
    int64_t channels = v->groups, padded = all->vectors * LANES;
    element *sums = all->sums + index * all->sums_size;
    (void)thread;
    memset(sums, 0, (size_t)all->sums_size * sizeof *sums);
    for (int64_t i = index * v->n * v->p / all->shares; i < (index + 1) * v->n * v->p / all->shares; i++) {
        int64_t n = i / v->p, p = i % v->p;
        const element *x = all->backward->x + n * v->h * v->w * channels, *dy = all->backward->dy + i * v->q * channels;
        for (int64_t r = 0; r < v->r; r++) {
            int64_t h = p * v->stride[0] + r * v->dilation[0] - v->before[0];
            if (h < 0 || h >= v->h) continue;
            for (int64_t s = 0; s < v->s; s += MOST_TAPS) {
                window_row row = row_of(v, x, h, s);
                if (r == 0 && s == 0) row.dy_ahead = v->q * channels;
                if (r == v->r - 1 && s == 0) row.x_ahead = v->stride[0] * v->w * channels;
                for (int64_t c = 0; c < channels; c += LANES) {
                    vector part[MOST_TAPS];
                    element *to = sums + (r * v->s + s) * padded + c;
                    for (int j = 0; j < row.taps; j++) part[j] = load(to + j * padded);
                    add_row(&row, dy, channels, v->stride[1] * channels, c, channels - c, part);
                    for (int j = 0; j < row.taps; j++) store(to + j * padded, part[j]);
                }
            }
        }
    }
}

void depthwise_weights_write_cpu(void *context, int64_t index, int thread)
{
    const weights_nhwc *all = context;
    const convolution *v = &all->backward->v;
    int64_t c = index * LANES, count = cpu_min(LANES, v->groups - c);
    (void)thread;
    for (int64_t tap = 0; tap < v->r_s; tap++) {
        const element *sums = all->sums + tap * all->vectors * LANES + c;
        element lanes[LANES];
        vector sum = load(sums);
        for (int64_t share = 1; share < all->shares; share++) sum += load(sums + share * all->sums_size);
        store(lanes, sum);
        for (int64_t j = 0; j < count; j++) all->backward->dw[(c + j) * v->r_s + tap] = lanes[j];
    }
}
