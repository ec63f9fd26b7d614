/* SPDX-License-Identifier: MIT */
/* Direct convolution forward, by itself or with ReLU and max-pool 2x2: a task takes one image. See direct.h.
 *
 * The image is laid out (C H W elements), convolved into [position][filter], and transposed into y's (K,P,Q) by blocks in
 * registers; with the pool only a quarter of the results is ever stored. Filters are laid out once for all images. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/direct_conv2d.h"
#include "calculators/cpu/kernels/interleave.h"

typedef struct context {
    const convolution_forward *forward;
    const direct_pool *pool;
    direct_filter filter;
    direct_image image;
    element *packed, *bias, *scratch;
    int64_t scratch_size, image_size, flat_size, out_size, p_q;
} context;

static context context_of(const convolution *v, const direct_pool *pool)
{
    context all = {.pool = pool,
                   .filter = direct_forward_filter_cpu(v),
                   .image = direct_input_image_cpu(v),
                   .p_q = pool ? pool->p * pool->q : v->p_q,
                   .flat_size = cpu_round_up(v->c * v->h * v->w, LANES)};
    all.image_size = direct_image_size(&all.image);
    all.out_size = (all.p_q + DIRECT_POSITIONS) * all.filter.padded_filters;
    /* the marks are as many as the results, and are transposed in blocks of LANES; the image's transposition borrows their room */
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

/* marks [position][filter], as numbers, to mask (K,P,Q), as bytes. */
static void write_mask(uint8_t *mask, const element *marks, const context *all)
{
    int64_t filters = all->filter.filters, step = all->filter.padded_filters;
    for (int64_t k = 0; k < filters; k += LANES) {
        for (int64_t first = 0; first < all->p_q; first += LANES) {
            int64_t some = cpu_min(LANES, filters - k), count = cpu_min(LANES, all->p_q - first);
            element block[LANES * LANES];
            transpose_block(block, LANES, marks + first * step + k, step);
            for (int64_t i = 0; i < some; i++) {
                uint8_t *line = mask + (k + i) * all->p_q + first;
                for (int64_t j = 0; j < count; j++) line[j] = (uint8_t)block[i * LANES + j];
            }
        }
    }
}

static void forward_image(void *argument, int64_t n, int thread)
{
    const context *all = argument;
    const convolution_forward *forward = all->forward;
    const convolution *v = &forward->v;
    element *image = all->scratch + thread * all->scratch_size, *out = image + all->image_size;
    element *marks = out + all->out_size, *y = forward->y + n * v->k * all->p_q;
    direct_load_cpu(image, &all->image, forward->x + n * v->c * v->h * v->w, v->c, v->h, v->w, marks);
    if (all->pool) {
        bool wanted = all->pool->mask_out != NULL;
        direct_convolve_pool_cpu(out, wanted ? marks : NULL, all->pool->first_only, &all->filter, image, all->packed,
                                 all->bias, all->pool->p, all->pool->q);
        transpose(y, all->p_q, out, all->filter.padded_filters, all->p_q, v->k);
        if (wanted) write_mask(all->pool->mask_out + n * v->k * all->p_q, marks, all);
        return;
    }
    direct_convolve_cpu(out, &all->filter, image, all->packed, all->bias, v->p, v->q);
    if (forward->residual) { /* which may be y: add it before y is written */
        const element *residual = forward->residual + n * v->k * all->p_q;
        for (int64_t k = 0; k < v->k; k++) {
            for (int64_t i = 0; i < all->p_q; i++)
                out[i * all->filter.padded_filters + k] += residual[k * all->p_q + i];
        }
    }
    transpose(y, all->p_q, out, all->filter.padded_filters, all->p_q, v->k);
    activate_cpu(y, y, v->k * all->p_q, &forward->activation);
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
    direct_pack_forward_cpu(all.packed, &forward->v, forward->w);
    memset(all.bias, 0, (size_t)filters * sizeof *all.bias);
    if (forward->bias) memcpy(all.bias, forward->bias, (size_t)all.filter.filters * sizeof *all.bias);
    cpu_parallel(cpu, forward->v.n, convolution_time(&forward->v), forward_image, &all);
}
