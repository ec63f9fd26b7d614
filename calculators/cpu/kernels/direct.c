/* SPDX-License-Identifier: MIT */
/* Direct convolution: the microkernels. See direct.h.
 *
 * The inner loop does DIRECT_POSITIONS x DIRECT_VECTORS multiply-adds for DIRECT_POSITIONS broadcast loads and
 * DIRECT_VECTORS loads of filters: compute-bound. 2 K P Q C R S FLOPs an image; with 32 filters of 5x5 over 28x28 of
 * one channel, 1.25 MFLOP: 6 us at 200 GFLOP/s a thread. */
#include "calculators/cpu/kernels/direct.h"

/* Iterates over a p x q plane in row-major order, without divisions; past the last position it repeats the first. */
typedef struct walker {
    const element *start, *at;
    int64_t down, right; /* elements from a position to its neighbours */
    int64_t q, column, row, left;
} walker;

static inline walker walk(const element *image, int64_t down, int64_t right, int64_t p, int64_t q)
{
    return (walker){.start = image, .at = image, .down = down, .right = right, .q = q, .left = p * q};
}

static inline const element *walk_on(walker *w)
{
    if (w->left-- <= 0) return w->start;
    const element *here = w->at;
    w->at += w->right;
    if (++w->column == w->q) {
        w->column = 0;
        w->at = w->start + ++w->row * w->down;
    }
    return here;
}

typedef vector direct_sums[DIRECT_POSITIONS][DIRECT_VECTORS];

/* The sums of DIRECT_POSITIONS positions; at[i] is position i's window. `vectors` is a compile-time constant. */
static inline __attribute__((always_inline)) void sum_positions(direct_sums result, const int vectors,
                                                                const direct_filter *filter, const element *const *at,
                                                                const element *packed, const element *bias)
{
    vector sum[DIRECT_POSITIONS][DIRECT_VECTORS];
    const element *x[DIRECT_POSITIONS];
    int64_t rows = filter->r, run = filter->run, row = filter->row;
    for (int i = 0; i < DIRECT_POSITIONS; i++) {
        x[i] = at[i];
        for (int j = 0; j < vectors; j++) sum[i][j] = bias ? load(bias + j * LANES) : (vector){0};
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t t = 0; t < run; t++, packed += vectors * LANES) {
            vector w[DIRECT_VECTORS];
            for (int j = 0; j < vectors; j++) w[j] = load(packed + j * LANES);
            for (int i = 0; i < DIRECT_POSITIONS; i++) {
                for (int j = 0; j < vectors; j++) sum[i][j] += x[i][t] * w[j];
            }
        }
        for (int i = 0; i < DIRECT_POSITIONS; i++) x[i] += row;
    }
    for (int i = 0; i < DIRECT_POSITIONS; i++) {
        for (int j = 0; j < vectors; j++) result[i][j] = sum[i][j];
    }
}

/* Separate functions, so that the code after the sums takes no registers from them. */
static __attribute__((noinline)) void sum_two(direct_sums result, const direct_filter *filter, const element *const *at,
                                              const element *packed, const element *bias)
{
    sum_positions(result, 2, filter, at, packed, bias);
}

static __attribute__((noinline)) void sum_one(direct_sums result, const direct_filter *filter, const element *const *at,
                                              const element *packed, const element *bias)
{
    sum_positions(result, 1, filter, at, packed, bias);
}

static void convolve_block(int vectors, element *out, const direct_filter *filter, const element *image,
                           const element *packed, const element *bias, int64_t p, int64_t q)
{
    walker along = walk(image, filter->row, filter->channels, p, q);
    for (int64_t position = 0; position < p * q; position += DIRECT_POSITIONS) {
        direct_sums sum;
        const element *at[DIRECT_POSITIONS];
        for (int i = 0; i < DIRECT_POSITIONS; i++) at[i] = walk_on(&along);
        (vectors == 2 ? sum_two : sum_one)(sum, filter, at, packed, bias);
        for (int i = 0; i < DIRECT_POSITIONS; i++) {
            for (int j = 0; j < vectors; j++) {
                store(out + (position + i) * filter->padded_filters + j * LANES, sum[i][j]);
            }
        }
    }
}

void direct_convolve_cpu(element *out, const direct_filter *filter, const element *image, const element *packed,
                         const element *bias, int64_t p, int64_t q)
{
    int64_t taps = filter->r * filter->run;
    for (int64_t f = 0; f < filter->padded_filters; f += DIRECT_VECTORS * LANES) {
        const element *plus = bias ? bias + f : NULL;
        if (filter->padded_filters - f >= DIRECT_VECTORS * LANES) {
            convolve_block(2, out + f, filter, image, packed + f * taps, plus, p, q);
        } else {
            convolve_block(1, out + f, filter, image, packed + f * taps, plus, p, q);
        }
    }
}

/* ---- with ReLU and max-pool 2x2 ---- */

enum { POOL_WINDOWS = DIRECT_POSITIONS / 4 };

/* The maximum of four vectors and 0, and the marks of those that attain it. NaN wins, and gets no mark. */
static inline vector pool_four(const vector four[4], bool first_only, vector *marks)
{
    vector zero = {0}, largest = zero;
    for (int i = 0; i < 4; i++) largest = choose((four[i] > largest) | (four[i] != four[i]), four[i], largest);
    lanes_mask positive = largest > zero, free = positive;
    *marks = zero;
    for (int i = 0; i < 4; i++) {
        lanes_mask attained = (four[i] == largest) & free;
        if (first_only) free &= ~attained;
        *marks += choose(attained, broadcast((element)(1 << i)), zero);
    }
    return largest;
}

static void pool_block(int vectors, element *out, element *marks, bool first_only, const direct_filter *filter,
                       const element *image, const element *packed, const element *bias, int64_t p, int64_t q)
{
    walker along = walk(image, 2 * filter->row, 2 * filter->channels, p, q);
    for (int64_t window = 0; window < p * q; window += POOL_WINDOWS) {
        direct_sums sum;
        const element *at[DIRECT_POSITIONS];
        for (int i = 0; i < DIRECT_POSITIONS; i += 4) {
            at[i] = walk_on(&along);
            at[i + 1] = at[i] + filter->channels;
            at[i + 2] = at[i] + filter->row;
            at[i + 3] = at[i + 2] + filter->channels;
        }
        (vectors == 2 ? sum_two : sum_one)(sum, filter, at, packed, bias);
        for (int i = 0; i < POOL_WINDOWS; i++) {
            for (int j = 0; j < vectors; j++) {
                vector four[4], marked;
                for (int k = 0; k < 4; k++) four[k] = sum[4 * i + k][j];
                int64_t to = (window + i) * filter->padded_filters + j * LANES;
                store(out + to, pool_four(four, first_only, &marked));
                if (marks) store(marks + to, marked);
            }
        }
    }
}

void direct_convolve_pool_cpu(element *out, element *marks, bool first_only, const direct_filter *filter,
                              const element *image, const element *packed, const element *bias, int64_t p, int64_t q)
{
    int64_t taps = filter->r * filter->run;
    for (int64_t f = 0; f < filter->padded_filters; f += DIRECT_VECTORS * LANES) {
        element *to = marks ? marks + f : NULL;
        if (filter->padded_filters - f >= DIRECT_VECTORS * LANES) {
            pool_block(2, out + f, to, first_only, filter, image, packed + f * taps, bias + f, p, q);
        } else {
            pool_block(1, out + f, to, first_only, filter, image, packed + f * taps, bias + f, p, q);
        }
    }
}

/* ---- the weight gradient ---- */

enum { WEIGHT_TAPS = 9, WEIGHT_VECTORS = TILE_ROWS == 8 ? 2 : 1 };

/* WEIGHT_TAPS taps from `tap` on (fewer at the end), `vectors` vectors of filters. */
static inline __attribute__((always_inline)) void weights_block(const int vectors, element *sums, int64_t tap,
                                                                const direct_filter *filter, const element *image,
                                                                const element *gradient, int64_t gradient_row,
                                                                int64_t p, int64_t q)
{
    vector sum[WEIGHT_TAPS][WEIGHT_VECTORS];
    const element *x[WEIGHT_TAPS];
    int64_t taps = filter->r * filter->run;
    for (int i = 0; i < WEIGHT_TAPS; i++) {
        int64_t here = tap + i < taps ? tap + i : tap;
        x[i] = image + here / filter->run * filter->row + here % filter->run;
        for (int j = 0; j < vectors; j++) sum[i][j] = (vector){0};
    }
    for (int64_t row = 0; row < p; row++) {
        const element *g = gradient + row * gradient_row;
        for (int64_t column = 0; column < q; column++, g += filter->padded_filters) {
            vector value[WEIGHT_VECTORS];
            for (int j = 0; j < vectors; j++) value[j] = load(g + j * LANES);
            for (int i = 0; i < WEIGHT_TAPS; i++) {
                for (int j = 0; j < vectors; j++) sum[i][j] += x[i][column * filter->channels] * value[j];
            }
        }
        for (int i = 0; i < WEIGHT_TAPS; i++) x[i] += filter->row;
    }
    for (int i = 0; i < WEIGHT_TAPS && tap + i < taps; i++) {
        for (int j = 0; j < vectors; j++) {
            element *to = sums + (tap + i) * filter->padded_filters + j * LANES;
            store(to, load(to) + sum[i][j]);
        }
    }
}

void direct_weights_cpu(element *sums, const direct_filter *filter, const element *image, const element *gradient,
                        int64_t gradient_row, int64_t p, int64_t q)
{
    int64_t taps = filter->r * filter->run;
    for (int64_t f = 0; f < filter->padded_filters; f += WEIGHT_VECTORS * LANES) {
        for (int64_t tap = 0; tap < taps; tap += WEIGHT_TAPS) {
            if (filter->padded_filters - f >= WEIGHT_VECTORS * LANES) {
                weights_block(WEIGHT_VECTORS, sums + f, tap, filter, image, gradient + f, gradient_row, p, q);
            } else {
                weights_block(1, sums + f, tap, filter, image, gradient + f, gradient_row, p, q);
            }
        }
    }
}
