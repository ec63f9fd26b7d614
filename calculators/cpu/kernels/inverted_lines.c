/* SPDX-License-Identifier: MIT */
/* One line of a panel of channels: expansion, or depthwise filtering. See inverted_lines.h.
 *
 * The expansion uses register tiles of some pixels times all vectors of the panel, 8 x 3 with 32 registers: a step does
 * 24 multiply-adds for 3 loads of weights and 8 broadcasts. The 3x3 depthwise convolution keeps a strip of 7
 * accumulators of one vector, with 12 loads and 21 multiply-adds for a row of the window. */
#include "calculators/cpu/kernels/inverted_lines.h"

#include "calculators/cpu/kernels/activate.h"

/* Pixels of a register tile, and of a strip of the depthwise convolution. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { PIXELS = 8, STRIP = 7 };
#else
enum { PIXELS = 4, STRIP = 4 };
#endif

/* ---- the 1x1 convolution ---- */

/* `pixels` pixels of a line from x on, c elements each; `pixels` and `vectors` are constants at every call. */
static inline __attribute__((always_inline)) void expand_tile(const int pixels, const int vectors,
                                                              const inverted_channels *p, const element *x, element *y,
                                                              vector low, vector high)
{
    vector sum[PIXELS][INVERTED_MOST_VECTORS];
    int64_t c = p->block->c;
    const element *w = p->expand;
    UNROLLED
    for (int j = 0; j < INVERTED_MOST_VECTORS; j++) {
        if (j >= vectors) continue;
        vector start = load(p->expand_bias + j * LANES);
        UNROLLED
        for (int i = 0; i < PIXELS; i++) {
            if (i < pixels) sum[i][j] = start;
        }
    }
    for (int64_t k = 0; k < c; k++, w += vectors * LANES) {
        vector row[INVERTED_MOST_VECTORS];
        UNROLLED
        for (int j = 0; j < INVERTED_MOST_VECTORS; j++) {
            if (j < vectors) row[j] = load(w + j * LANES);
        }
        UNROLLED
        for (int i = 0; i < PIXELS; i++) {
            if (i >= pixels) continue;
            element value = x[i * c + k];
            UNROLLED
            for (int j = 0; j < INVERTED_MOST_VECTORS; j++) {
                if (j < vectors) sum[i][j] += value * row[j];
            }
        }
    }
    UNROLLED
    for (int i = 0; i < PIXELS; i++) {
        if (i >= pixels) continue;
        UNROLLED
        for (int j = 0; j < INVERTED_MOST_VECTORS; j++) {
            if (j < vectors) store(y + (i * vectors + j) * LANES, clamp_lanes(sum[i][j], low, high));
        }
    }
}

static inline __attribute__((always_inline)) void expand_some(const int vectors, const inverted_channels *p,
                                                              const element *x, element *y, vector low, vector high)
{
    int64_t count = p->block->inside, tiles = cpu_divide_up(count, PIXELS), c = p->block->c;
    for (int64_t i = 0; i < tiles; i++) {
        int64_t first = i * count / tiles, pixels = (i + 1) * count / tiles - first;
        const element *from = x + first * c;
        element *to = y + first * vectors * LANES;
        if (pixels == PIXELS) {
            expand_tile(PIXELS, vectors, p, from, to, low, high);
        } else if (pixels == PIXELS - 1) {
            expand_tile(PIXELS - 1, vectors, p, from, to, low, high);
        } else {
            int64_t done = 0;
            for (; done + PIXELS / 2 <= pixels; done += PIXELS / 2)
                expand_tile(PIXELS / 2, vectors, p, from + done * c, to + done * vectors * LANES, low, high);
            for (; done < pixels; done++)
                expand_tile(1, vectors, p, from + done * c, to + done * vectors * LANES, low, high);
        }
    }
}

static __attribute__((noinline)) void expand_1(const inverted_channels *p, const element *x, element *y, vector low,
                                               vector high)
{
    expand_some(1, p, x, y, low, high);
}

static __attribute__((noinline)) void expand_2(const inverted_channels *p, const element *x, element *y, vector low,
                                               vector high)
{
    expand_some(2, p, x, y, low, high);
}

static __attribute__((noinline)) void expand_3(const inverted_channels *p, const element *x, element *y, vector low,
                                               vector high)
{
    expand_some(3, p, x, y, low, high);
}

/* Without expansion: copies the panel's channels to contiguous pixels. */
static void copy_line(const inverted_channels *p, const element *x, element *y)
{
    int64_t channels = p->block->v.groups;
    for (int64_t i = 0; i < p->block->inside; i++, x += channels, y += p->width) {
        for (int j = 0; j < p->vectors; j++) store(y + j * LANES, load(x + p->channel[j]));
    }
}

/* Expands line h of x into its slot of the ring. */
void inverted_expand_line_cpu(const inverted_channels *p, const element *x, int64_t h, element *kept)
{
    const inverted_block *b = p->block;
    element low, high, *y = kept + (h % b->lines * b->columns + b->left) * p->width;
    if (b->c == 0) {
        copy_line(p, x + h * b->v.w * b->v.groups, y);
        return;
    }
    bool clamps = activation_clamps(&b->expanded, &low, &high);
    x += h * b->v.w * b->c;
    switch (p->vectors) {
    case 1: expand_1(p, x, y, broadcast(low), broadcast(high)); break;
    case 2: expand_2(p, x, y, broadcast(low), broadcast(high)); break;
    default: expand_3(p, x, y, broadcast(low), broadcast(high)); break;
    }
    if (!clamps) activate_cpu(y, y, b->inside * p->width, &b->expanded);
}

/* ---- the depthwise convolution ---- */

/* `pixels` outputs from column q on, one vector of channels. line: the input of each window row; `three`: the window is
 * 3x3, without horizontal dilation, and its horizontal stride is `stride`. The first four arguments are compile-time
 * constants at every call, and each input is loaded once for all the accumulators that use it. */
static inline __attribute__((always_inline)) void filter_strip(const int pixels, const int vectors, const bool three,
                                                               const int stride, const inverted_channels *p,
                                                               const element *const *line, int64_t q, int j, element *y,
                                                               vector low, vector high)
{
    const convolution *v = &p->block->v;
    const int width = vectors * LANES;
    vector sum[STRIP], start = load(p->filter_bias + j * LANES);
    UNROLLED
    for (int i = 0; i < STRIP; i++) {
        if (i < pixels) sum[i] = start;
    }
    for (int64_t r = 0; r < (three ? 3 : v->r); r++) {
        const element *w = p->filters + r * (three ? 3 : v->s) * width + j * LANES;
        const element *x = line[r] + q * (three ? stride : v->stride[1]) * width + j * LANES;
        if (three) {
            vector value[2 * STRIP + 1];
            UNROLLED
            for (int i = 0; i < 2 * STRIP + 1; i++) {
                if (i < (pixels - 1) * stride + 3) value[i] = load_once(x + i * width);
            }
            UNROLLED
            for (int s = 0; s < 3; s++) {
                vector weight = load(w + s * width);
                UNROLLED
                for (int i = 0; i < STRIP; i++) {
                    if (i < pixels) sum[i] += value[i * stride + s] * weight;
                }
            }
        } else {
            for (int64_t s = 0; s < v->s; s++) {
                vector weight = load(w + s * width);
                UNROLLED
                for (int i = 0; i < STRIP; i++) {
                    if (i < pixels) sum[i] += load(x + (i * v->stride[1] + s * v->dilation[1]) * width) * weight;
                }
            }
        }
    }
    UNROLLED
    for (int i = 0; i < STRIP; i++) {
        if (i < pixels) store(y + i * v->groups, clamp_lanes(sum[i], low, high));
    }
}

static inline __attribute__((always_inline)) void filter_row(const int vectors, const bool three, const int stride,
                                                             const inverted_channels *p, const element *const *line,
                                                             element *y, vector low, vector high)
{
    int64_t last = p->block->v.q, channels = p->block->v.groups;
    for (int j = 0; j < vectors; j++) {
        element *to = y + p->channel[j];
        int64_t q = 0;
        for (; q + STRIP <= last; q += STRIP)
            filter_strip(STRIP, vectors, three, stride, p, line, q, j, to + q * channels, low, high);
        for (; q + 2 <= last; q += 2)
            filter_strip(2, vectors, three, stride, p, line, q, j, to + q * channels, low, high);
        for (; q < last; q++) filter_strip(1, vectors, three, stride, p, line, q, j, to + q * channels, low, high);
    }
}

static inline __attribute__((always_inline)) void filter_window(const int vectors, const inverted_channels *p,
                                                                const element *const *line, element *y, vector low,
                                                                vector high)
{
    const convolution *v = &p->block->v;
    bool three = v->r == 3 && v->s == 3 && v->dilation[1] == 1;
    if (three && v->stride[1] == 1)
        filter_row(vectors, true, 1, p, line, y, low, high);
    else if (three && v->stride[1] == 2)
        filter_row(vectors, true, 2, p, line, y, low, high);
    else
        filter_row(vectors, false, 0, p, line, y, low, high);
}

static __attribute__((noinline)) void filter_1(const inverted_channels *p, const element *const *line, element *y,
                                               vector low, vector high)
{
    filter_window(1, p, line, y, low, high);
}

static __attribute__((noinline)) void filter_2(const inverted_channels *p, const element *const *line, element *y,
                                               vector low, vector high)
{
    filter_window(2, p, line, y, low, high);
}

static __attribute__((noinline)) void filter_3(const inverted_channels *p, const element *const *line, element *y,
                                               vector low, vector high)
{
    filter_window(3, p, line, y, low, high);
}

void inverted_filter_line_cpu(const inverted_channels *p, const element *const *line, element *y)
{
    const convolution *v = &p->block->v;
    element low, high;
    bool clamps = activation_clamps(&p->block->filtered, &low, &high);
    switch (p->vectors) {
    case 1: filter_1(p, line, y, broadcast(low), broadcast(high)); break;
    case 2: filter_2(p, line, y, broadcast(low), broadcast(high)); break;
    default: filter_3(p, line, y, broadcast(low), broadcast(high)); break;
    }
    if (clamps) return;
    int64_t first = p->channel[0], channels = cpu_min(p->width, v->groups - first);
    for (int64_t q = 0; q < v->q; q++, y += v->groups)
        activate_cpu(y + first, y + first, channels, &p->block->filtered);
}
