/* SPDX-License-Identifier: MIT */
/* Depthwise convolution: forward, and both gradients. See depthwise.h.
 *
 * Loops over planes, taps and rows: y's row += w[r,s] times a row of x, in vectors along the row if the stride is 1. 2
 * K P Q R S FLOPs; each operand is moved through memory once, since the planes stay in the caches. Floor: bytes over
 * bandwidth. */
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/activate.h"

typedef struct context {
    const convolution_forward *forward;
    const convolution_backward *backward;
} context;

/* The input of tap i of the window: output rows [top, bottom) that it reaches, `count` columns of them from `first` on;
 * its offset in the plane for row 0 is `from`. */
typedef struct reach {
    int64_t top, bottom, first, count, from, step, row_step;
} reach;

static reach reach_of(const convolution *v, int64_t i)
{
    int64_t r = i / v->s, s = i % v->s, last;
    reach tap = {.step = v->stride[1], .row_step = v->stride[0] * v->w};
    convolution_inside(v, 0, r, v->p, v->h, &tap.top, &tap.bottom);
    convolution_inside(v, 1, s, v->q, v->w, &tap.first, &last);
    tap.count = last - tap.first;
    tap.from = (r * v->dilation[0] - v->before[0]) * v->w + tap.first * tap.step + s * v->dilation[1] - v->before[1];
    return tap;
}

/* to += weight from */
static inline void add_run(element *to, int64_t to_step, const element *from, int64_t from_step, element weight,
                           int64_t count)
{
    if (to_step == 1 && from_step == 1) {
#pragma omp simd
        for (int64_t q = 0; q < count; q++) to[q] += weight * from[q];
    } else {
#pragma omp simd
        for (int64_t q = 0; q < count; q++) to[q * to_step] += weight * from[q * from_step];
    }
}

/* Plane `index` of y: filter index % K of image index / K. */
static void forward_plane(void *argument, int64_t index, int thread)
{
    const convolution_forward *forward = ((const context *)argument)->forward;
    const convolution *v = &forward->v;
    int64_t filter = index % (v->groups * v->k), image = index / (v->groups * v->k), channel = filter / v->k;
    const element *x = forward->x + (image * v->groups + channel) * v->h * v->w, *w = forward->w + filter * v->taps;
    element start = forward->bias ? forward->bias[filter] : 0;
    (void)thread;
    element *y = forward->y + index * v->p_q;
    if (forward->residual) {
        const element *residual = forward->residual + index * v->p_q;
#pragma omp simd
        for (int64_t i = 0; i < v->p_q; i++) y[i] = start + residual[i];
    } else {
        for (int64_t i = 0; i < v->p_q; i++) y[i] = start;
    }
    for (int64_t i = 0; i < v->r_s; i++) {
        reach tap = reach_of(v, i);
        for (int64_t p = tap.top; p < tap.bottom; p++) {
            add_run(y + p * v->q + tap.first, 1, x + tap.from + p * tap.row_step, tap.step, w[i], tap.count);
        }
    }
    activate_cpu(y, y, v->p_q, &forward->activation);
}

void depthwise_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward)
{
    context all = {.forward = forward};
    const convolution *v = &forward->v;
    cpu_parallel(cpu, v->n * v->groups * v->k, 10 * convolution_time(v), forward_plane, &all);
}

/* Plane `index` of dx: channel index % G of image index / G. */
static void input_plane(void *argument, int64_t index, int thread)
{
    const convolution_backward *backward = ((const context *)argument)->backward;
    const convolution *v = &backward->v;
    element *dx = backward->dx + index * v->h * v->w;
    (void)thread;
    memset(dx, 0, (size_t)(v->h * v->w) * sizeof *dx);
    for (int64_t k = 0; k < v->k; k++) {
        const element *w = backward->w + (index % v->groups * v->k + k) * v->taps;
        const element *dy = backward->dy + (index * v->k + k) * v->p_q;
        for (int64_t i = 0; i < v->r_s; i++) {
            reach tap = reach_of(v, i);
            for (int64_t p = tap.top; p < tap.bottom; p++) {
                add_run(dx + tap.from + p * tap.row_step, tap.step, dy + p * v->q + tap.first, 1, w[i], tap.count);
            }
        }
    }
}

/* The dot product of a row of dy with a tap's input. */
static double dot_run(const element *dy, const element *x, int64_t step, int64_t count)
{
    vector part = {0};
    int64_t i = 0;
    for (; step == 1 && i + LANES <= count; i += LANES) part += load(dy + i) * load(x + i);
    element sum = sum_lanes(part);
    for (; i < count; i++) sum += dy[i] * x[i * step];
    return (double)sum;
}

static void weights_of_filter(void *argument, int64_t filter, int thread)
{
    const convolution_backward *backward = ((const context *)argument)->backward;
    const convolution *v = &backward->v;
    (void)thread;
    for (int64_t i = 0; i < v->r_s; i++) {
        reach tap = reach_of(v, i);
        double sum = 0;
        for (int64_t n = 0; n < v->n; n++) {
            const element *x = backward->x + (n * v->groups + filter / v->k) * v->h * v->w + tap.from;
            const element *dy = backward->dy + (n * v->groups * v->k + filter) * v->p_q + tap.first;
            for (int64_t p = tap.top; p < tap.bottom; p++) {
                sum += dot_run(dy + p * v->q, x + p * tap.row_step, tap.step, tap.count);
            }
        }
        backward->dw[filter * v->taps + i] = (element)sum;
    }
}

void depthwise_backward_cpu(const cpu_calculator *cpu, const convolution_backward *backward)
{
    context all = {.backward = backward};
    const convolution *v = &backward->v;
    int64_t time = 10 * convolution_time(v);
    if (backward->wants_dx) cpu_parallel(cpu, v->n * v->groups, time, input_plane, &all);
    if (backward->wants_dw) cpu_parallel(cpu, v->groups * v->k, time, weights_of_filter, &all);
}
