/* SPDX-License-Identifier: MIT */
/* Winograd output transform: a panel's products to outputs, with bias, residual and activation. See winograd.h.
 *
 * A step transforms a vector of filters of one tile: (m + 2)^2 loads, m^2 stores, 24 additions for m = 2. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/winograd_stages.h"

enum { SIDE = WINOGRAD_SIDE, MOST = WINOGRAD_OUTPUTS };

/* The outputs of a tile, for some filters. */
typedef struct outputs {
    const element *products; /* of the first point */
    int64_t step;            /* from one point to the next */
    element *y;
    const element *residual;    /* NULL: none */
    int64_t row_step, step_out; /* from one output line to the next, from one pixel to the next */
    int64_t rows, columns;      /* of the tile, inside the image */
    int64_t filters;
    vector low, high; /* of a clamping activation */
    bool clamped;
} outputs;

/* A^T d A of a vector of filters. */
static inline __attribute__((always_inline)) void transform_products(const int m, const element *from, int64_t step,
                                                                     vector out[MOST][MOST])
{
    vector half[SIDE][MOST];
    UNROLLED
    for (int r = 0; r < SIDE; r++) {
        if (r >= m + 2) continue;
        vector d[SIDE];
        UNROLLED
        for (int s = 0; s < SIDE; s++) {
            if (s < m + 2) d[s] = load(from + (r * (m + 2) + s) * step);
        }
        winograd_output(m, half[r], d);
    }
    UNROLLED
    for (int s = 0; s < MOST; s++) {
        if (s >= m) continue;
        vector d[SIDE], to[MOST];
        UNROLLED
        for (int r = 0; r < SIDE; r++) {
            if (r < m + 2) d[r] = half[r][s];
        }
        winograd_output(m, to, d);
        UNROLLED
        for (int i = 0; i < MOST; i++) {
            if (i < m) out[i][s] = to[i];
        }
    }
}

/* One vector of filters from filter k of the panel on, of which `count` are valid. */
static inline __attribute__((always_inline)) void finish_vector(const int m, const outputs *o, const element *bias,
                                                                int64_t k, int64_t count)
{
    vector out[MOST][MOST], start = load(bias + k);
    transform_products(m, o->products + k, o->step, out);
    UNROLLED
    for (int i = 0; i < MOST; i++) {
        UNROLLED
        for (int j = 0; j < MOST; j++) {
            if (i >= m || j >= m || i >= o->rows || j >= o->columns) continue;
            element *y = o->y + i * o->row_step + j * o->step_out + k, part[LANES] = {0};
            const element *residual = o->residual ? o->residual + i * o->row_step + j * o->step_out + k : NULL;
            vector value = out[i][j] + start;
            if (residual && count < LANES) {
                memcpy(part, residual, (size_t)count * sizeof *part);
                residual = part;
            }
            if (residual) value += load(residual);
            if (o->clamped) value = clamp_lanes(value, o->low, o->high);
            if (count == LANES) {
                store(y, value);
            } else {
                store(part, value);
                memcpy(y, part, (size_t)count * sizeof *part);
            }
        }
    }
}

static inline __attribute__((always_inline)) void finish_tile(const int m, const outputs *o, const element *bias)
{
    int64_t k = 0;
    for (; k + LANES <= o->filters; k += LANES) finish_vector(m, o, bias, k, LANES);
    if (k < o->filters) finish_vector(m, o, bias, k, o->filters - k);
}

/* Separate functions, so that each has all registers. */
static __attribute__((noinline)) void finish_2(const outputs *o, const element *bias)
{
    finish_tile(2, o, bias);
}

static __attribute__((noinline)) void finish_4(const outputs *o, const element *bias)
{
    finish_tile(4, o, bias);
}

void winograd_output_transform_cpu(const winograd *all, int64_t group, int64_t panel, int64_t first, int64_t count,
                                   const element *products)
{
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    const sdlf_activation *activation = &forward->activation;
    int64_t start = implicit_panel_start(&all->panels, panel) * LANES, pixel = v->groups * v->k;
    int64_t width = implicit_panel_start(&all->panels, panel + 1) * LANES - start;
    element bias[PANEL_VECTORS * LANES] = {0}, low, high;
    bool clamps = activation_clamps(activation, &low, &high);
    outputs o = {.step = all->product_step,
                 .row_step = v->q * pixel,
                 .step_out = pixel,
                 .filters = cpu_min(width, v->k - start),
                 .low = broadcast(low),
                 .high = broadcast(high),
                 .clamped = clamps && activation->function != SDLF_IDENTITY};
    int64_t filter = group * v->k + start;
    if (forward->bias) memcpy(bias, forward->bias + filter, (size_t)o.filters * sizeof *bias);
    winograd_place at = winograd_at(all, first), ahead = winograd_at(all, first + FETCH_TILES);
    for (int64_t tile = 0; tile < count; tile++, winograd_next(all, &at), winograd_next(all, &ahead)) {
        winograd_fetch(all, &ahead, forward->y + filter, v->p, v->q, pixel, o.filters, 1);
        int64_t place = ((at.image * v->p + at.p) * v->q + at.q) * pixel + filter;
        o.products = products + tile * width;
        o.y = forward->y + place;
        o.residual = forward->residual ? forward->residual + place : NULL;
        o.rows = cpu_min(all->m, v->p - at.p);
        o.columns = cpu_min(all->m, v->q - at.q);
        if (all->m == 2)
            finish_2(&o, bias);
        else
            finish_4(&o, bias);
        for (int64_t i = 0; i < o.rows * o.columns && !clamps; i++) {
            element *y = o.y + i / o.columns * o.row_step + i % o.columns * o.step_out;
            activate_cpu(y, y, o.filters, activation);
        }
    }
}
