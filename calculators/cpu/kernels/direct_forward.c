/* SPDX-License-Identifier: MIT */
/* Direct convolution forward, alone or with ReLU and 2x2 max-pool: a task computes one image, or some rows of it if
 * there are fewer images than threads. See direct.h.
 *
 * The rows are packed (C H W elements), convolved into [position][filter], and transposed into y's (K,P,Q) by blocks in
 * registers; with the pool only a quarter of the outputs is ever stored. Filters are packed once for all images. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/direct_conv2d.h"
#include "calculators/cpu/kernels/interleave.h"

typedef struct context {
    const convolution_forward *forward;
    const direct_pool *pool;
    direct_filter filter;
    direct_image image;
    element *packed, *bias, *scratch;
    int64_t scratch_size, image_size, flat_size, out_size, p, q, p_q; /* p, q, p_q: of the (pooled) output */
    int64_t parts;                                                    /* tasks of an image */
} context;

static context context_of(const convolution *v, const direct_pool *pool)
{
    context all = {.pool = pool,
                   .filter = direct_forward_filter_cpu(v),
                   .image = direct_input_image_cpu(v),
                   .p = pool ? pool->p : v->p,
                   .q = pool ? pool->q : v->q,
                   .flat_size = cpu_round_up(v->c * v->h * v->w, LANES)};
    all.p_q = all.p * all.q;
    all.image_size = direct_image_size(&all.image);
    all.out_size = (all.p_q + DIRECT_POSITIONS) * all.filter.padded_filters;
    /* the marks are as many as the outputs, transposed in blocks of LANES; they share space with the image's transposition */
    int64_t marks = pool ? all.out_size + LANES * all.filter.padded_filters : 0;
    all.scratch_size = all.image_size + all.out_size + cpu_max(all.flat_size, marks);
    return all;
}

im2col_space direct_forward_space_cpu(const convolution *v, const direct_pool *pool)
{
    context all = context_of(v, pool);
    return (im2col_space){.each = all.scratch_size,
                          .shared = direct_filter_size_cpu(&all.filter) + all.filter.padded_filters};
}

/* Converts `count` marks [position][filter], stored as elements, to bytes of mask (K,P,Q). */
static void write_mask(uint8_t *mask, const element *marks, int64_t count, const context *all)
{
    int64_t filters = all->filter.filters, step = all->filter.padded_filters;
    for (int64_t k = 0; k < filters; k += LANES) {
        for (int64_t first = 0; first < count; first += LANES) {
            int64_t some = cpu_min(LANES, filters - k), columns = cpu_min(LANES, count - first);
            element block[LANES * LANES];
            transpose_block(block, LANES, marks + first * step + k, step);
            for (int64_t i = 0; i < some; i++) {
                uint8_t *line = mask + (k + i) * all->p_q + first;
                for (int64_t j = 0; j < columns; j++) line[j] = (uint8_t)block[i * LANES + j];
            }
        }
    }
}

/* Adds the residual and applies the activation, for `count` outputs of each filter from `first` on; writes `out` to y. */
static void finish(const context *all, element *out, int64_t n, int64_t first, int64_t count)
{
    const convolution_forward *forward = all->forward;
    const int64_t filters = all->filter.padded_filters, k = forward->v.k;
    element *y = forward->y + n * k * all->p_q + first;
    for (int64_t f = 0; f < k && forward->residual != NULL; f++) { /* may alias y: add it before y is written */
        const element *residual = forward->residual + (n * k + f) * all->p_q + first;
        for (int64_t i = 0; i < count; i++) out[i * filters + f] += residual[i];
    }
    activate_cpu(out, out, count * filters, &forward->activation); /* whole vectors: the same bits for any partition */
    transpose(y, all->p_q, out, filters, count, k);
}

static void forward_rows(void *argument, int64_t task, int thread)
{
    const context *all = argument;
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    const int64_t n = task / all->parts, part = task % all->parts, size = all->pool ? 2 : 1;
    const int64_t start = all->p * part / all->parts, rows = all->p * (part + 1) / all->parts - start;
    const int64_t first = start * all->q, count = rows * all->q;
    element *image = all->scratch + thread * all->scratch_size, *out = image + all->image_size;
    element *marks = out + all->out_size;
    direct_image laid_out = all->image;
    if (all->parts > 1) laid_out.height = rows * size + v->r - 1;
    direct_load_rows_cpu(image, &laid_out, start * size, forward->x + n * v->c * v->h * v->w, v->c, v->h, v->w, marks);
    if (!all->pool) {
        direct_convolve_cpu(out, &all->filter, image, all->packed, all->bias, rows, all->q);
        finish(all, out, n, first, count);
        return;
    }
    const bool wanted = all->pool->mask_out != NULL;
    direct_convolve_pool_cpu(out, wanted ? marks : NULL, all->pool->first_only, &all->filter, image, all->packed,
                             all->bias, rows, all->q);
    transpose(forward->y + n * v->k * all->p_q + first, all->p_q, out, all->filter.padded_filters, count, v->k);
    if (wanted) write_mask(all->pool->mask_out + n * v->k * all->p_q + first, marks, count, all);
}

void direct_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const direct_pool *pool,
                        element *scratch)
{
    context all = context_of(&forward->v, pool);
    int64_t filters = all.filter.padded_filters;
    all.forward = forward;
    all.packed = scratch;
    all.bias = scratch + direct_filter_size_cpu(&all.filter);
    all.scratch = all.bias + filters;
    const int64_t images = forward->v.n;
    all.parts = images < cpu->threads ? cpu_min(cpu_divide_up(cpu->threads, cpu_max(images, 1)), all.p) : 1;
    direct_pack_forward_cpu(cpu, all.packed, &forward->v, forward->w);
    memset(all.bias, 0, (size_t)filters * sizeof *all.bias);
    if (forward->bias) memcpy(all.bias, forward->bias, (size_t)all.filter.filters * sizeof *all.bias);
    cpu_parallel(cpu, images * all.parts, convolution_time(&forward->v), forward_rows, &all);
}
