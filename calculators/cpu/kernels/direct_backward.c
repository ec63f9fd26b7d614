/* Direct convolution backward, alone or behind ReLU and max-pool. See direct.h.
 *
 * A task takes a fixed share of the images. For each it lays out the gradient by the convolution's output as [h][w][filter]
 * (behind a pool: written out from dy and mask, zeros where nothing is marked), adds the gradient by the filters into its
 * share's sums, and convolves the gradient with the turned filters for dx. The shares' sums are added up in order.
 * 2 K P Q C R S FLOPs an image for each of dw and dx. */
#include "calculators/cpu/kernels/direct_conv2d.h"
#include "calculators/cpu/kernels/interleave.h"

enum { SHARES = 32 };

typedef struct context {
    const convolution_backward *backward;
    const direct_pool *pool;
    direct_filter forward_filter, backward_filter;
    direct_image image, gradient;
    element *packed, *sums, *scratch;
    int64_t images, shares; /* of a share; how many */
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
    all.shares = cpu_divide_up(v->n, all.images);
    all.sums_size = backward->wants_dw ? direct_filter_size_cpu(&all.forward_filter) : 0;
    all.packed_size = backward->wants_dx ? direct_filter_size_cpu(&all.backward_filter) : 0;
    all.image_size = backward->wants_dw ? direct_image_size(&all.image) : 0;
    all.gradient_size = direct_image_size(&all.gradient);
    /* work space: an image's transposition; dy's and the marks'; dx before it is turned */
    int64_t in_flat = v->c * v->h * v->w, out_flat = (all.p_q + LANES) * all.gradient.channels * 2 + v->k * all.p_q * 2;
    int64_t dx_size = (v->h * v->w + DIRECT_POSITIONS) * all.backward_filter.padded_filters;
    all.work_size = cpu_round_up(cpu_max(cpu_max(in_flat, out_flat), backward->wants_dx ? dx_size : 0), LANES);
    all.scratch_size = all.image_size + all.gradient_size + all.work_size;
    return all;
}

im2col_space direct_backward_space_cpu(const convolution_backward *backward, const direct_pool *pool)
{
    context all = context_of(backward, pool);
    return (im2col_space){.each = all.scratch_size, .shared = all.packed_size + all.shares * all.sums_size};
}

/* dy / marked positions, and the marks, as [window][filter], with no marks for the filters that pad. */
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

/* The gradient by the convolution's own output: each window's share at its marked positions, 0 elsewhere. */
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
        direct_weights_cpu(sums, &all->forward_filter, image,
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
    memset(sums, 0, (size_t)all->sums_size * sizeof *sums);
    memset(scratch + all->image_size, 0, (size_t)all->gradient_size * sizeof *scratch); /* the edges stay 0 */
    for (int64_t n = share * all->images; n < last; n++) backward_image(all, n, sums, scratch);
}

/* dw (K,C,R,S) from the shares' sums, [r][s][c][filter]; a task takes one tap. */
static void add_shares(void *argument, int64_t tap, int thread)
{
    const context *all = argument;
    const convolution *v = &all->backward->v;
    int64_t step = all->forward_filter.padded_filters;
    int64_t c = tap % v->c, r_s = tap / v->c;
    (void)thread;
    for (int64_t k = 0; k < v->k; k++) {
        element sum = 0;
        for (int64_t share = 0; share < all->shares; share++) sum += all->sums[share * all->sums_size + tap * step + k];
        all->backward->dw[k * v->taps + c * v->r_s + r_s] = sum;
    }
}

void direct_backward_cpu(const cpu_calculator *cpu, const convolution_backward *backward, const direct_pool *pool,
                         element *scratch)
{
    context all = context_of(backward, pool);
    all.packed = scratch;
    all.sums = all.packed + all.packed_size;
    all.scratch = all.sums + all.shares * all.sums_size;
    if (backward->wants_dx) direct_pack_backward_cpu(all.packed, &backward->v, backward->w);
    cpu_parallel(cpu, all.shares, 2 * convolution_time(&backward->v), backward_share, &all);
    if (backward->wants_dw) cpu_parallel(cpu, backward->v.taps, all.shares * all.sums_size, add_shares, &all);
}
