/* SPDX-License-Identifier: MIT */
/* im2col and col2im. See im2col.h.
 *
 * One row of the im2col matrix is the image seen through one tap (c, r, s): for each output row a shifted run of an
 * image row, with zeros for the padding. It copies each element: 8 bytes moved for a float, within the cache. */
#include "calculators/cpu/kernels/im2col.h"

bool im2col_is_plain_cpu(const convolution *v)
{
    return v->r_s == 1 && v->stride[0] == 1 && v->stride[1] == 1 && v->before[0] == 0 && v->before[1] == 0 &&
           v->p == v->h && v->q == v->w;
}

/* The tap of a row of the matrix. */
typedef struct tap {
    int64_t c, r, s;
    int64_t first_q, last_q; /* output columns that read inside the image */
} tap;

static tap tap_of(const convolution *v, int64_t row)
{
    tap t = {.c = row / v->r_s, .r = row % v->r_s / v->s, .s = row % v->s};
    convolution_inside(v, 1, t.s, v->q, v->w, &t.first_q, &t.last_q);
    return t;
}

/* A run of one output row: `count` columns, of which [inside, outside) read the image from `offset` on. */
typedef struct run {
    int64_t count, inside, outside, offset;
} run;

static run run_at(const convolution *v, const tap *t, int64_t column, int64_t end)
{
    int64_t p = column / v->q, first = column % v->q, last = cpu_min(v->q, first + end - column);
    int64_t h = p * v->stride[0] + t->r * v->dilation[0] - v->before[0];
    run r = {.count = last - first};
    if (h < 0 || h >= v->h) return r;
    r.inside = cpu_min(cpu_max(t->first_q - first, 0), r.count);
    r.outside = cpu_max(cpu_min(t->last_q - first, r.count), r.inside);
    r.offset = (t->c * v->h + h) * v->w + (first + r.inside) * v->stride[1] + t->s * v->dilation[1] - v->before[1];
    return r;
}

void im2col_cpu(element *to, int64_t step, const element *x, const convolution *v, patches piece)
{
    int64_t end = piece.column + piece.columns;
    for (int64_t row = piece.row; row < piece.row + piece.rows; row++, to += step) {
        tap t = tap_of(v, row);
        element *out = to;
        for (int64_t column = piece.column; column < end;) {
            run r = run_at(v, &t, column, end);
            memset(out, 0, (size_t)r.inside * sizeof *out);
            if (v->stride[1] == 1) {
                memcpy(out + r.inside, x + r.offset, (size_t)(r.outside - r.inside) * sizeof *out);
            } else {
                for (int64_t i = r.inside; i < r.outside; i++) out[i] = x[r.offset + (i - r.inside) * v->stride[1]];
            }
            memset(out + r.outside, 0, (size_t)(r.count - r.outside) * sizeof *out);
            out += r.count;
            column += r.count;
        }
    }
}

void col2im_cpu(element *dx, const element *from, int64_t step, const convolution *v, patches piece)
{
    int64_t end = piece.column + piece.columns;
    for (int64_t row = piece.row; row < piece.row + piece.rows; row++, from += step) {
        tap t = tap_of(v, row);
        const element *in = from;
        for (int64_t column = piece.column; column < end;) {
            run r = run_at(v, &t, column, end);
            element *out = dx + r.offset;
            if (v->stride[1] == 1) {
#pragma omp simd
                for (int64_t i = 0; i < r.outside - r.inside; i++) out[i] += in[r.inside + i];
            } else {
                for (int64_t i = 0; i < r.outside - r.inside; i++) out[i * v->stride[1]] += in[r.inside + i];
            }
            in += r.count;
            column += r.count;
        }
    }
}
