/* SPDX-License-Identifier: MIT */
/* Window rows as runs: where they apply, and the padded copy that they are read from. See implicit_rows.h. */
#include "calculators/cpu/kernels/implicit_rows.h"

/* FEW_CHANNELS: always below it; SOME_CHANNELS: up to it where it pays. A run of 12 channels takes as long to start as to sum. */
enum { FEW_CHANNELS = 12, SOME_CHANNELS = 24, LEAST_WINDOWS = 3 };

/* It may copy all of x. That is cheap relative to the products if few channels are read, or if each pixel is read by enough windows. */
bool implicit_takes_rows_cpu(const convolution *v)
{
    bool cuts = v->before[0] < 0 || v->before[1] < 0;
    bool pays = v->k <= 2 * LANES && v->r_s >= LEAST_WINDOWS * v->stride[0] * v->stride[1];
    bool few = (v->groups == 1 && v->c < FEW_CHANNELS) || (v->c <= SOME_CHANNELS && pays);
    return few && v->dilation[1] == 1 && v->s > 1 && !cuts;
}

bool implicit_copies_cpu(const convolution *v, bool row_major)
{
    return implicit_takes_rows_cpu(v) && (row_major || implicit_has_padding(v) || v->groups > 1);
}

typedef struct padding {
    const convolution *v;
    const element *x;
    element *to;
    int64_t height, width;
    bool row_major; /* x is NCHW; the copy is (N,G,height,width,C) */
} padding;

/* Copies the channels of one group, of a row of x, to contiguous pixels. */
static void copy_row(const padding *all, element *to, int64_t plane, int64_t h, int64_t columns)
{
    const convolution *v = all->v;
    int64_t channels = v->groups * v->c;
    const element *x = all->x + (plane / v->groups * v->h + h) * v->w * channels + plane % v->groups * v->c;
    if (all->row_major) {
        for (int64_t c = 0; c < v->c; c++) {
            const element *row = all->x + ((plane * v->c + c) * v->h + h) * v->w;
            for (int64_t w = 0; w < columns; w++) to[w * v->c + c] = row[w];
        }
    } else if (v->groups == 1) {
        memcpy(to, x, (size_t)(columns * v->c) * sizeof *to);
    } else {
        for (int64_t w = 0; w < columns; w++) {
            for (int64_t c = 0; c < v->c; c++) to[w * v->c + c] = x[w * channels + c];
        }
    }
}

/* A row of one image and group. */
static void pad_row(void *argument, int64_t index, int thread)
{
    const padding *all = argument;
    const convolution *v = all->v;
    int64_t plane = index / all->height, h = index % all->height - v->before[0];
    element *to = all->to + index * all->width * v->c;
    (void)thread;
    if (v->c == 0) return;
    if (h < 0 || h >= v->h) {
        memset(to, 0, (size_t)(all->width * v->c) * sizeof *to);
        return;
    }
    int64_t columns = cpu_min(v->w, all->width - v->before[1]), left = cpu_min(v->before[1], all->width);
    columns = cpu_max(columns, 0);
    memset(to, 0, (size_t)(left * v->c) * sizeof *to);
    copy_row(all, to + left * v->c, plane, h, columns);
    memset(to + (left + columns) * v->c, 0, (size_t)((all->width - left - columns) * v->c) * sizeof *to);
}

void implicit_copy_cpu(const cpu_calculator *cpu, const convolution *v, const element *x, element *to, bool row_major)
{
    padding all = {.v = v,
                   .x = x,
                   .to = to,
                   .height = implicit_reached(v, 0),
                   .width = implicit_reached(v, 1),
                   .row_major = row_major};
    int64_t rows = v->n * v->groups * all.height;
    cpu_parallel_static_exact(cpu, rows, cpu_time_of_elements(rows * all.width * v->c), pad_row, &all);
}
