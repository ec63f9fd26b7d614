/* SPDX-License-Identifier: MIT */
/* conv2d_relu_max_pool, forward and backward, for any shape. Contracts: calculators/fusions/conv2d_pool.h.
 *
 * Forward: a task convolves one image and one group into scratch space and pools from there, so that the convolution's
 * output stays in the cache. Backward: the gradient with respect to the convolution's output is computed from dy and
 * mask, and passed to the convolution's gradients. */
#include "calculators/fusions/conv2d_pool.h"
#include "calculators/cpu/kernels/direct_conv2d.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/winograd.h"

typedef struct pool_context {
    convolution v;
    int64_t window[2], p, q; /* the pool's window and output */
    bool first_only;
    const element *x, *w, *bias, *dy;
    element *y, *gradient, *db, *scratch;
    const uint8_t *mask_in;
    uint8_t *mask_out;
    int64_t scratch_size, convolved_size;
} pool_context;

static pool_context context_of(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *w,
                               const sdlf_tensor *y)
{
    const conv2d_pool_options *options = conv2d_pool_options_of(operation);
    pool_context all = {.v = convolution_make(x, w, &options->window, options->groups),
                        .window = {options->pool.size[0], options->pool.size[1]},
                        .p = y->shape.dim[2],
                        .q = y->shape.dim[3],
                        .first_only = options->ties == SDLF_TIES_FIRST,
                        .x = input(operation, 0),
                        .w = input(operation, 1)};
    return all;
}

static pool_context forward_context(const sdlf_operation *operation)
{
    return context_of(operation, &operation->in[0], &operation->in[1], &operation->out[0]);
}

static pool_context backward_context(const sdlf_operation *operation)
{
    const conv2d_pool_operands o = conv2d_pool_operands_of(operation);
    return context_of(operation, o.x, o.w, o.dy);
}

/* Direct convolution supports any pooling window backward, and 2x2 forward. */
static bool is_direct_forward(const pool_context *all)
{
    return all->window[0] == 2 && all->window[1] == 2 && direct_takes_cpu(&all->v);
}

static direct_pool direct_pool_of(const pool_context *all)
{
    return (direct_pool){.window = {all->window[0], all->window[1]},
                         .p = all->p,
                         .q = all->q,
                         .first_only = all->first_only,
                         .mask_out = all->mask_out,
                         .mask_in = all->mask_in};
}

/* ---- forward ---- */

/* One window: the maximum of the convolution's outputs and 0, and the positions that attain it. */
static element pool_window(const pool_context *all, const element *from, unsigned *marks)
{
    element largest = 0;
    unsigned marked = 0;
    for (int64_t position = 0; position < all->window[0] * all->window[1]; position++) {
        element value = from[position / all->window[1] * all->v.q + position % all->window[1]];
        if (value > largest || value != value) {
            largest = value;
            marked = 1u << position;
        } else if (value == largest && value > 0 && !all->first_only) {
            marked |= 1u << position;
        }
    }
    *marks = largest == largest ? marked : 0;
    return largest;
}

static void forward_image(void *argument, int64_t image, int thread)
{
    const pool_context *all = argument;
    const convolution *v = &all->v;
    element *convolved = all->scratch + thread * all->scratch_size;
    int64_t g = image % v->groups, planes = v->k, plane = all->p * all->q;
    /* one image, on this thread */
    convolution_forward forward = {.v = *v,
                                   .x = all->x + image * v->c * v->h * v->w,
                                   .w = all->w + g * v->k * v->taps,
                                   .bias = all->bias ? all->bias + g * v->k : NULL,
                                   .y = convolved};
    forward.v.n = forward.v.groups = 1;
    static const cpu_calculator alone = {.threads = 1};
    im2col_forward_cpu(&alone, &forward, convolved + all->convolved_size);
    for (int64_t k = 0; k < planes; k++) {
        for (int64_t i = 0; i < plane; i++) {
            unsigned marks;
            int64_t e = (image * planes + k) * plane + i;
            const element *from =
                convolved + k * v->p_q + i / all->q * all->window[0] * v->q + i % all->q * all->window[1];
            all->y[e] = pool_window(all, from, &marks);
            if (all->mask_out) all->mask_out[e] = (uint8_t)marks;
        }
    }
}

/* With enough channels, Winograd, whose threads may share an image, gains more than fusion saves in memory traffic. */
static bool is_faster_apart(const convolution *v)
{
    enum { WINOGRAD_CHANNELS = 32 };
    return v->c >= WINOGRAD_CHANNELS && winograd_takes_cpu(v) && winograd_pays_cpu(v);
}

/* Training: always, since the mask makes the backward pass much cheaper. Inference, where a plan would otherwise run
 * the convolution and the pooling in NHWC: only where fusion is faster. */
bool conv2d_relu_max_pool_forward_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    pool_context all = forward_context(operation);
    (void)calculator;
    return sdlf_tensor_present(&operation->out[1]) || (is_direct_forward(&all) && !is_faster_apart(&all.v));
}

int64_t conv2d_relu_max_pool_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    pool_context all = forward_context(operation);
    direct_pool pool = direct_pool_of(&all);
    if (is_direct_forward(&all)) return im2col_bytes_cpu(calculator, direct_forward_space_cpu(&all.v, &pool));
    int64_t convolved = cpu_round_up(all.v.k * all.v.p_q, LANES);
    return cpu_from_const(calculator)->threads * (convolved + im2col_forward_space_cpu(&all.v).each) *
           (int64_t)sizeof(element);
}

sdlf_status conv2d_relu_max_pool_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    pool_context all = forward_context(operation);
    all.bias = input(operation, 2);
    all.y = output(operation, 0);
    all.mask_out = operation->out[1].data;
    if (is_direct_forward(&all)) {
        direct_pool pool = direct_pool_of(&all);
        convolution_forward forward = {.v = all.v, .x = all.x, .w = all.w, .bias = all.bias, .y = all.y};
        direct_forward_cpu(cpu_from(calculator), &forward, &pool, operation->workspace.data);
        return SDLF_OK;
    }
    all.scratch = operation->workspace.data;
    all.convolved_size = cpu_round_up(all.v.k * all.v.p_q, LANES);
    all.scratch_size = all.convolved_size + im2col_forward_space_cpu(&all.v).each;
    cpu_parallel(cpu_from(calculator), all.v.n * all.v.groups, convolution_time(&all.v), forward_image, &all);
    return SDLF_OK;
}

/* ---- backward ---- */

static void write_gradient(void *argument, int64_t plane, int thread)
{
    const pool_context *all = argument;
    const convolution *v = &all->v;
    element *gradient = all->gradient + plane * v->p_q;
    (void)thread;
    memset(gradient, 0, (size_t)v->p_q * sizeof *gradient);
    for (int64_t i = 0; i < all->p * all->q; i++) {
        unsigned marks = all->mask_in[plane * all->p * all->q + i];
        if (!marks) continue;
        element share = all->dy[plane * all->p * all->q + i] / (element)__builtin_popcount(marks);
        element *to = gradient + i / all->q * all->window[0] * v->q + i % all->q * all->window[1];
        for (int position = 0; marks >> position; position++) {
            if (marks >> position & 1) to[position / all->window[1] * v->q + position % all->window[1]] = share;
        }
    }
}

static int64_t backward_count(const pool_context *all)
{
    return all->v.n * all->v.groups * all->v.k * all->p * all->q;
}

/* db[k] = sum of dy over the marked windows. A task computes one filter. */
static void backward_bias_filter(void *argument, int64_t k, int thread)
{
    const pool_context *all = argument;
    int64_t filters = all->v.groups * all->v.k, p_q = all->p * all->q;
    double sum = 0;
    (void)thread;
    for (int64_t n = 0; n < all->v.n; n++) {
        const element *dy = all->dy + (n * filters + k) * p_q;
        const uint8_t *mask = all->mask_in + (n * filters + k) * p_q;
        element part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = 0; i < p_q; i++) part += mask[i] ? dy[i] : 0;
        sum += (double)part;
    }
    all->db[k] = (element)sum;
}

/* In elements: the gradient with respect to the convolution's output, and scratch space for what follows. */
static im2col_space backward_space(const cpu_calculator *cpu, const convolution *v)
{
    im2col_space input_space = im2col_backward_input_space_cpu(v), weights_space = im2col_backward_weights_space_cpu(v);
    return (im2col_space){
        .each = cpu_max(cpu->threads * input_space.each, weights_space.shared + cpu->threads * weights_space.each),
        .shared = cpu_round_up(v->n * v->groups * v->k * v->p_q, LANES)};
}

static convolution_backward backward_of(const sdlf_operation *operation, const pool_context *all)
{
    return (convolution_backward){.v = all->v,
                                  .wants_dw = sdlf_tensor_present(&operation->out[0]),
                                  .wants_dx = sdlf_tensor_present(&operation->out[2]),
                                  .x = all->x,
                                  .w = all->w,
                                  .dy = input(operation, 2),
                                  .dw = output(operation, 0),
                                  .dx = output(operation, 2)};
}

int64_t conv2d_relu_max_pool_backward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    pool_context all = backward_context(operation);
    direct_pool pool = direct_pool_of(&all);
    convolution_backward backward = backward_of(operation, &all);
    if (direct_takes_cpu(&all.v)) return im2col_bytes_cpu(calculator, direct_backward_space_cpu(&backward, &pool));
    im2col_space space = backward_space(cpu_from_const(calculator), &all.v);
    return (space.shared + space.each) * (int64_t)sizeof(element);
}

sdlf_status conv2d_relu_max_pool_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    pool_context all = backward_context(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    all.dy = input(operation, 2);
    all.mask_in = operation->in[3].data;
    all.db = output(operation, 1);
    if (all.db)
        cpu_parallel(cpu, all.v.groups * all.v.k, cpu_time_of_elements(backward_count(&all)), backward_bias_filter,
                     &all);
    convolution_backward backward = backward_of(operation, &all);
    if (!backward.wants_dw && !backward.wants_dx) return SDLF_OK;
    if (direct_takes_cpu(&all.v)) {
        direct_pool pool = direct_pool_of(&all);
        direct_backward_cpu(cpu, &backward, &pool, operation->workspace.data);
        return SDLF_OK;
    }
    all.gradient = operation->workspace.data;
    element *scratch = all.gradient + backward_space(cpu, &all.v).shared;
    cpu_parallel(cpu, all.v.n * all.v.groups * all.v.k, convolution_time(&all.v), write_gradient, &all);
    if (backward.wants_dw) im2col_backward_weights_cpu(cpu, &all.v, all.x, all.gradient, backward.dw, scratch);
    if (backward.wants_dx) im2col_backward_input_cpu(cpu, &all.v, all.gradient, all.w, backward.dx, scratch);
    return SDLF_OK;
}
