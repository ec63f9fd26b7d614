/* SPDX-License-Identifier: MIT */
/* Depthwise convolution, NHWC, one filter for each channel. See depthwise.h.
 *
 * Vectors run over the channels of a pixel. A vector of weights serves a strip of STRIP neighbouring pixels, whose
 * accumulators stay in registers: STRIP multiply-adds for STRIP + 1 loads. Weights are packed as [channel / LANES][r][s]
 * [channel % LANES]: those of a vector would fall into few sets of a cache, were they a power of 2 apart. 2 N C P Q R S
 * FLOPs; floor: x and y moved once, as rows stay in the caches between output rows. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/depthwise.h"

enum { STRIP = 6, HALF_STRIP = 2, TASK_FLOPS = 1 << 18 };

bool depthwise_nhwc_takes_cpu(const convolution *v)
{
    return v->c == 1 && v->k == 1 && v->groups >= LANES;
}

int64_t depthwise_nhwc_packed_size_cpu(const convolution *v)
{
    return cpu_divide_up(v->groups, LANES) * LANES * v->r_s;
}

/* The weights of the vector of channels from c on: a multiple of LANES, or LANES before the last. */
static inline const element *weights_of(const convolution *v, const element *packed, int64_t c)
{
    return packed + cpu_divide_up(c, LANES) * LANES * v->r_s;
}

void depthwise_nhwc_pack_cpu(element *packed, const convolution *v, const element *w)
{
    for (int64_t first = 0; first < v->groups; first += LANES) {
        const element *from = w + cpu_min(first, v->groups - LANES) * v->r_s;
        for (int64_t i = 0; i < v->r_s; i++, packed += LANES)
            for (int64_t c = 0; c < LANES; c++) packed[c] = from[c * v->r_s + i];
    }
}

typedef struct context {
    const convolution_forward *forward;
    const element *packed;
    int64_t rows_per_task, blocks;    /* rows of a task; blocks of channels into which each run of rows is divided */
    int64_t inside_first, inside_end; /* output columns whose windows lie inside the image's width */
} context;

static context context_of(const convolution_forward *forward, const element *packed)
{
    const convolution *v = &forward->v;
    context all = {.forward = forward, .packed = packed, .blocks = 1};
    int64_t last = v->w - (v->s - 1) * v->dilation[1] + v->before[1]; /* left + reach < w */
    all.inside_first = cpu_min(v->q, cpu_divide_up(v->before[1], v->stride[1]));
    all.inside_end = last <= 0 ? 0 : cpu_min(v->q, cpu_divide_up(last, v->stride[1]));
    return all;
}

/* `pixels` neighbouring outputs of a row; the window is restricted to rows [top, bottom) and columns [left, right). */
typedef struct strip {
    const element *x; /* input of the window's first position for the first pixel */
    int64_t top, bottom, left, right;
    int64_t row_step, column_step, pixel_step; /* elements to the window's next row and column, and to the next pixel */
    const element *w, *bias, *residual;
    element *y;
    int64_t first, last; /* channels */
} strip;

/* One vector of channels from channel c on. `pixels` is a compile-time constant. */
static inline __attribute__((always_inline)) void sum_strip(const int pixels, const convolution *v, const strip *s,
                                                            int64_t c, const sdlf_activation *activation)
{
    const element *weights = weights_of(v, s->w, c);
    vector sum[STRIP], start = s->bias ? load(s->bias + c) : (vector){0};
    for (int i = 0; i < pixels; i++) sum[i] = start;
    for (int64_t r = s->top; r < s->bottom; r++) {
        const element *x = s->x + r * s->row_step + s->left * s->column_step + c;
        const element *w = weights + (r * v->s + s->left) * LANES;
        for (int64_t column = s->left; column < s->right; column++, x += s->column_step, w += LANES) {
            vector weight = load(w);
            for (int i = 0; i < pixels; i++) sum[i] += load(x + i * s->pixel_step) * weight;
        }
    }
    element low, high;
    bool clamped = activation_clamps(activation, &low, &high) && activation->function != SDLF_IDENTITY;
    for (int i = 0; i < pixels; i++) {
        if (s->residual) sum[i] += load(s->residual + i * v->groups + c);
        if (clamped) sum[i] = clamp_lanes(sum[i], broadcast(low), broadcast(high));
        store(s->y + i * v->groups + c, sum[i]);
    }
}

/* The scalar tail of the channels, used where the last vector must not overlap the one before: y may alias the residual. */
static void sum_rest(int pixels, const convolution *v, const strip *s, int64_t first, const sdlf_activation *activation)
{
    const int64_t last = v->groups - LANES;
    const element *weights = weights_of(v, s->w, last) - last;
    for (int i = 0; i < pixels; i++) {
        element *y = s->y + i * v->groups;
        for (int64_t c = first; c < v->groups; c++) {
            element sum = s->bias ? s->bias[c] : 0;
            for (int64_t r = s->top; r < s->bottom; r++) {
                for (int64_t column = s->left; column < s->right; column++)
                    sum += s->x[r * s->row_step + column * s->column_step + i * s->pixel_step + c] *
                           weights[(r * v->s + column) * LANES + c];
            }
            y[c] = s->residual ? sum + s->residual[i * v->groups + c] : sum;
        }
        if (activation->function == SDLF_RELU || activation->function == SDLF_CLIP)
            activate_cpu(y + first, y + first, v->groups - first, activation);
    }
}

static inline __attribute__((always_inline)) void compute_strip(const int pixels, const convolution *v, const strip *s,
                                                                const sdlf_activation *activation)
{
    int64_t c = s->first;
    for (; c + LANES <= s->last; c += LANES) sum_strip(pixels, v, s, c, activation);
    if (c < s->last && !s->residual)
        sum_strip(pixels, v, s, s->last - LANES, activation);
    else if (c < s->last)
        sum_rest(pixels, v, s, c, activation);
    if (activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU || activation->function == SDLF_CLIP)
        return;
    for (int i = 0; i < pixels; i++) {
        element *y = s->y + i * v->groups + s->first;
        activate_cpu(y, y, s->last - s->first, activation);
    }
}

/* One function for each strip size. */
static void compute_six(const convolution *v, const strip *s, const sdlf_activation *activation)
{
    compute_strip(STRIP, v, s, activation);
}

static void compute_two(const convolution *v, const strip *s, const sdlf_activation *activation)
{
    compute_strip(HALF_STRIP, v, s, activation);
}

static void compute_one(const convolution *v, const strip *s, const sdlf_activation *activation)
{
    compute_strip(1, v, s, activation);
}

/* The base addresses: of an image, and of its output row p. */
typedef struct row_place {
    const element *x, *residual;
    element *y;
} row_place;

/* Row p of an image, the channels of one block: whole vectors, and in the last block also the tail. */
static void compute_row(const context *all, const row_place *at, int64_t p, int64_t block)
{
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    int64_t channels = v->groups, top = p * v->stride[0] - v->before[0];
    strip s = {.row_step = v->dilation[0] * v->w * channels,
               .column_step = v->dilation[1] * channels,
               .pixel_step = v->stride[1] * channels,
               .w = all->packed,
               .bias = forward->bias,
               .first = block * (channels / LANES) / all->blocks * LANES,
               .last = (block + 1) * (channels / LANES) / all->blocks * LANES};
    if (block == all->blocks - 1) s.last = channels;
    s.top = top >= 0 ? 0 : cpu_min(v->r, cpu_divide_up(-top, v->dilation[0]));
    s.bottom = top >= v->h ? s.top : cpu_max(s.top, cpu_min(v->r, cpu_divide_up(v->h - top, v->dilation[0])));
    for (int64_t q = 0; q < v->q;) {
        int64_t left = q * v->stride[1] - v->before[1], out = q * channels;
        bool inside = q >= all->inside_first && q < all->inside_end;
        int64_t pixels = inside ? all->inside_end - q : 1;
        s.x = at->x + (top * v->w + left) * channels;
        s.y = at->y + out;
        s.residual = at->residual ? at->residual + out : NULL;
        s.left = left >= 0 ? 0 : cpu_min(v->s, cpu_divide_up(-left, v->dilation[1]));
        s.right = left >= v->w ? s.left : cpu_max(s.left, cpu_min(v->s, cpu_divide_up(v->w - left, v->dilation[1])));
        if (pixels >= STRIP) {
            compute_six(v, &s, &forward->activation);
            q += STRIP;
        } else if (pixels >= HALF_STRIP) {
            compute_two(v, &s, &forward->activation);
            q += HALF_STRIP;
        } else {
            compute_one(v, &s, &forward->activation);
            q++;
        }
    }
}

static void compute_rows(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution *v = &all->forward->v;
    int64_t tasks = cpu_divide_up(v->p, all->rows_per_task), block = index % all->blocks, rows = index / all->blocks;
    int64_t n = rows / tasks, first = rows % tasks * all->rows_per_task;
    (void)thread;
    for (int64_t p = first; p < cpu_min(first + all->rows_per_task, v->p); p++) {
        const convolution_forward *forward = all->forward;
        int64_t out = (n * v->p + p) * v->q * v->groups;
        row_place at = {.x = forward->x + n * v->h * v->w * v->groups,
                        .residual = forward->residual ? forward->residual + out : NULL,
                        .y = forward->y + out};
        compute_row(all, &at, p, block);
    }
}

void depthwise_nhwc_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed)
{
    const convolution *v = &forward->v;
    context all = context_of(forward, packed);
    all.rows_per_task = cpu_max(1, TASK_FLOPS / cpu_max(1, 2 * v->q * v->groups * v->r_s));
    all.rows_per_task = cpu_min(all.rows_per_task, cpu_max(1, v->p / 8));
    int64_t tasks = v->n * cpu_divide_up(v->p, all.rows_per_task);
    all.blocks = tasks % 2 == 1 && tasks < 16 && v->groups >= 2 * LANES ? 2 : 1; /* two halves, for two threads */
    cpu_parallel_static(cpu, tasks * all.blocks, 8 * convolution_time(v), compute_rows, &all);
}
