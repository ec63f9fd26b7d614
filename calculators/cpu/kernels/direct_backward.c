/* SPDX-License-Identifier: MIT */
/* Direct convolution backward, alone or after ReLU and max-pool. See direct.h.
 *
 * A task handles a fixed share of the images. For each it packs the gradient with respect to the convolution's output
 * as [h][w][filter] (after a pool: computed from dy and mask, zeros at unmarked positions), adds the weight gradient to
 * its share's partial sums, and convolves the gradient with the flipped filters for dx. After a pool, images with few
 * marks use direct_sparse.h instead. The partial sums of the shares are added in order.
 * 2 K P Q C R S FLOPs an image for each of dw and dx. */
#include "calculators/cpu/kernels/direct_sparse.h"
#include "calculators/cpu/kernels/interleave.h"

enum { SHARES = 16 };

enum { DENSE, SPARSE };

typedef struct context {
    const convolution_backward *backward;
    const direct_pool *pool;
    direct_filter forward_filter, backward_filter;
    direct_image image, gradient;
    element *packed, *sums, *scratch;
    sparse_filter sparse_filter;
    bool sparse;            /* whether the sparse path may be used */
    element *sparse_packed; /* w packed for it */
    int64_t images, shares; /* images of a share; number of shares */
    /* A share's partial sums: LANES flags that tell which of the two parts was used (DENSE, SPARSE), then these parts. */
    int64_t dense_sums, sparse_sums;
    int64_t sparse_packed_size, marks_size;
    int64_t sums_size, packed_size, image_size, gradient_size, work_size, scratch_size, p_q;
} context;

static context context_of(const convolution_backward *backward, const direct_pool *pool)
{
    const convolution *v = &backward->v;
    context all = {.backward = backward,
                   .pool = pool,
                   .forward_filter = direct_forward_filter_cpu(v),
                   .backward_filter = direct_backward_filter_cpu(v),
                   .image = direct_input_image_cpu(v),
                   .gradient = direct_gradient_image_cpu(v),
                   .images = cpu_max(1, cpu_divide_up(v->n, SHARES)),
                   .p_q = pool ? pool->p * pool->q : v->p_q};
    all.shares = cpu_max(1, cpu_divide_up(v->n, all.images));
    all.sparse = pool && sparse_takes_cpu(v);
    if (all.sparse) all.sparse_filter = sparse_filter_of_cpu(v);
    int64_t sparse_size = all.sparse ? v->k * all.sparse_filter.padded_slots * LANES : 0;
    all.dense_sums = backward->wants_dw ? direct_filter_size_cpu(&all.forward_filter) : 0;
    all.sparse_sums = backward->wants_dw ? sparse_size : 0;
    all.sums_size = LANES + all.dense_sums + all.sparse_sums;
    all.sparse_packed_size = backward->wants_dx ? sparse_size : 0;
    all.marks_size = all.sparse ? sparse_marks_size_cpu(v, pool) : 0;
    all.packed_size = backward->wants_dx ? direct_filter_size_cpu(&all.backward_filter) : 0;
    /* the sparse path builds dx in the buffer of x, and reads and writes whole vectors at the ends of rows */
    all.image_size = backward->wants_dw || all.sparse ? direct_image_size(&all.image) + LANES : 0;
    all.gradient_size = direct_image_size(&all.gradient);
    /* work space: the transposed image; dy and marks, transposed; dx before its transposition */
    int64_t in_flat = v->c * v->h * v->w, out_flat = (all.p_q + LANES) * all.gradient.channels * 2 + v->k * all.p_q * 2;
    int64_t dx_size = (v->h * v->w + DIRECT_POSITIONS) * all.backward_filter.padded_filters;
    all.work_size = cpu_round_up(cpu_max(cpu_max(in_flat, out_flat), backward->wants_dx ? dx_size : 0), LANES);
    all.scratch_size = all.image_size + all.gradient_size + all.work_size + all.marks_size;
    return all;
}

im2col_space direct_backward_space_cpu(const convolution_backward *backward, const direct_pool *pool)
{
    context all = context_of(backward, pool);
    return (im2col_space){.each = all.scratch_size,
                          .shared = all.packed_size + all.sparse_packed_size + all.shares * all.sums_size};
}

/* dy / marked positions, and the marks, as [window][filter]; padding filters have no marks. */
static void turn_gradient(const context *all, element *shares, element *marks, int64_t n, element *flat)
{
    int64_t count = all->backward->v.k * all->p_q, step = all->gradient.channels;
    const element *dy = all->backward->dy + n * count;
    const uint8_t *mask = all->pool->mask_in + n * count;
    element *numbers = flat + count;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        unsigned bits = mask[i];
        unsigned pairs = (bits & 0x55u) + (bits >> 1 & 0x55u);
        unsigned fours = (pairs & 0x33u) + (pairs >> 2 & 0x33u);
        unsigned marked = (fours & 0x0fu) + (fours >> 4);
        flat[i] = dy[i] / (element)(int)(marked > 0 ? marked : 1);
        numbers[i] = (element)(int)bits;
    }
    if (step > all->backward->v.k) memset(marks, 0, (size_t)(all->p_q * step) * sizeof *marks);
    transpose(shares, step, flat, all->p_q, all->backward->v.k, all->p_q);
    transpose(marks, step, numbers, all->p_q, all->backward->v.k, all->p_q);
}

static inline void spread_window(element *to, int64_t row, int64_t step, const direct_pool *pool, vector share,
                                 vector marks)
{
    lanes_mask marked = __builtin_convertvector(marks, lanes_mask), bit = (lanes_mask){0} + 1;
    for (int64_t r = 0; r < pool->window[0]; r++) {
        for (int64_t s = 0; s < pool->window[1]; s++, bit += bit) {
            store(to + r * row + s * step, choose((marked & bit) != 0, share, (vector){0}));
        }
    }
}

/* The gradient with respect to the convolution's output: each window's share at its marked positions, 0 elsewhere. */
static void spread_gradient(const context *all, element *gradient, int64_t n, element *work)
{
    const direct_image *image = &all->gradient;
    const direct_pool *pool = all->pool;
    int64_t step = image->channels, row = image->width * step;
    element *shares = work, *marks = shares + (all->p_q + LANES) * step;
    turn_gradient(all, shares, marks, n, marks + (all->p_q + LANES) * step);
    for (int64_t p = 0; p < pool->p; p++) {
        element *to = gradient + (image->top + p * pool->window[0]) * row + image->left * step;
        for (int64_t q = 0; q < pool->q; q++, to += pool->window[1] * step, shares += step, marks += step) {
            for (int64_t k = 0; k < step; k += LANES) {
                spread_window(to + k, row, step, pool, load(shares + k), load(marks + k));
            }
        }
    }
}

/* A part of a share's partial sums, zeroed on first use. */
static element *use_sums(element *sums, int part, int64_t first, int64_t count)
{
    if (sums[part] == 0) memset(sums + first, 0, (size_t)count * sizeof *sums);
    sums[part] = 1;
    return sums + first;
}

/* The sparse path for one image; returns false if it does not pay. */
static bool sparse_image(const context *all, int64_t n, element *sums, element *scratch)
{
    const convolution_backward *backward = all->backward;
    const convolution *v = &backward->v;
    const direct_image *laid_out = &all->image;
    element *image = scratch, *work = scratch + all->image_size + all->gradient_size;
    sparse_marks marks = sparse_marks_of_cpu(v, all->pool, work + all->work_size);
    int64_t windows = n * v->k * all->p_q, x_size = v->c * v->h * v->w, row = v->w * v->c;
    if (!sparse_mark_cpu(&marks, v, all->pool, backward->dy + windows, all->pool->mask_in + windows)) return false;
    if (backward->wants_dw) {
        direct_load_cpu(image, laid_out, backward->x + n * x_size, v->c, v->h, v->w, work);
        element *part = use_sums(sums, SPARSE, LANES + all->dense_sums, all->sparse_sums);
        sparse_weights_cpu(part, v, &all->sparse_filter, &marks, image);
    }
    if (backward->wants_dx) {
        memset(image, 0, (size_t)all->image_size * sizeof *image);
        sparse_input_cpu(image, v, &all->sparse_filter, &marks, all->sparse_packed);
        for (int64_t h = 0; h < v->h; h++) { /* without the padding */
            const element *from = image + ((h + laid_out->top) * laid_out->width + laid_out->left) * v->c;
            memcpy(work + h * row, from, (size_t)row * sizeof *work);
        }
        transpose(backward->dx + n * x_size, v->h * v->w, work, v->c, v->h * v->w, v->c);
    }
    return true;
}

static void backward_image(const context *all, int64_t n, element *sums, element *scratch)
{
    const convolution_backward *backward = all->backward;
    const convolution *v = &backward->v;
    const direct_image *gradient_image = &all->gradient;
    element *image = scratch, *gradient = image + all->image_size, *work = gradient + all->gradient_size;
    int64_t gradient_row = gradient_image->width * gradient_image->channels;
    if (all->pool) {
        spread_gradient(all, gradient, n, work);
    } else {
        direct_load_cpu(gradient, gradient_image, backward->dy + n * v->k * v->p_q, v->k, v->p, v->q, work);
    }
    if (backward->wants_dw) {
        direct_load_cpu(image, &all->image, backward->x + n * v->c * v->h * v->w, v->c, v->h, v->w, work);
        direct_weights_cpu(use_sums(sums, DENSE, LANES, all->dense_sums), &all->forward_filter, image,
                           gradient + gradient_image->top * gradient_row +
                               gradient_image->left * gradient_image->channels,
                           gradient_row, v->p, v->q);
    }
    if (backward->wants_dx) {
        direct_convolve_cpu(work, &all->backward_filter, gradient, all->packed, NULL, v->h, v->w);
        transpose(backward->dx + n * v->c * v->h * v->w, v->h * v->w, work, all->backward_filter.padded_filters,
                  v->h * v->w, v->c);
    }
}

static void backward_share(void *argument, int64_t share, int thread)
{
    const context *all = argument;
    element *sums = all->sums + share * all->sums_size, *scratch = all->scratch + thread * all->scratch_size;
    int64_t last = cpu_min((share + 1) * all->images, all->backward->v.n);
    memset(sums, 0, LANES * sizeof *sums);
    memset(scratch + all->image_size, 0, (size_t)all->gradient_size * sizeof *scratch); /* the edges stay 0 */
    for (int64_t n = share * all->images; n < last; n++) {
        if (!all->sparse || !sparse_image(all, n, sums, scratch)) backward_image(all, n, sums, scratch);
    }
}

/* Adds the shares' partial sums into the first; a task handles a run of elements of one of the two parts. */
static void add_shares(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t first = LANES + index * TASK_ELEMENTS, end = cpu_min(first + TASK_ELEMENTS, all->sums_size);
    int64_t middle = cpu_min(cpu_max(LANES + all->dense_sums, first), end);
    (void)thread;
    for (int part = DENSE; part <= SPARSE; part++) {
        int64_t from = part == DENSE ? first : middle, to = part == DENSE ? middle : end;
        element *sum = all->sums;
        if (sum[part] == 0) memset(sum + from, 0, (size_t)(to - from) * sizeof *sum);
        for (int64_t share = 1; share < all->shares; share++) {
            const element *more = all->sums + share * all->sums_size;
            if (more[part] == 0) continue;
#pragma omp simd
            for (int64_t i = from; i < to; i++) sum[i] += more[i];
        }
    }
}

/* dw (K,C,R,S) from both parts: [r][s][c][filter], and [filter][slot]. A task computes one filter. */
static void write_weights(void *argument, int64_t k, int thread)
{
    const context *all = argument;
    const convolution *v = &all->backward->v;
    const element *dense = all->sums + LANES + k, *sparse = all->sums + LANES + all->dense_sums;
    int64_t step = all->forward_filter.padded_filters, row = all->sparse_filter.row_vectors * LANES;
    element *dw = all->backward->dw + k * v->taps;
    (void)thread;
    sparse += k * all->sparse_filter.padded_slots * LANES;
    for (int64_t c = 0; c < v->c; c++) {
        for (int64_t i = 0; i < v->r_s; i++) {
            element sum = dense[(i * v->c + c) * step];
            if (all->sparse) sum += sparse[i / v->s * row + i % v->s * v->c + c];
            *dw++ = sum;
        }
    }
}

void direct_backward_cpu(const cpu_calculator *cpu, const convolution_backward *backward, const direct_pool *pool,
                         element *scratch)
{
    context all = context_of(backward, pool);
    all.packed = scratch;
    all.sparse_packed = all.packed + all.packed_size;
    all.sums = all.sparse_packed + all.sparse_packed_size;
    all.scratch = all.sums + all.shares * all.sums_size;
    if (backward->wants_dx) direct_pack_backward_cpu(all.packed, &backward->v, backward->w);
    if (backward->wants_dx && all.sparse) {
        sparse_pack_cpu(all.sparse_packed, &backward->v, &all.sparse_filter, backward->w);
    }
    cpu_parallel(cpu, all.shares, 2 * convolution_time(&backward->v), backward_share, &all);
    if (!backward->wants_dw) return;
    cpu_parallel(cpu, cpu_divide_up(all.sums_size - LANES, TASK_ELEMENTS),
                 cpu_time_of_elements(all.shares * all.sums_size), add_shares, &all);
    cpu_parallel(cpu, backward->v.k, 2 * backward->v.k * backward->v.taps, write_weights, &all);
}
