/* SPDX-License-Identifier: MIT */
/* batch_norm2d of rows of channels, (M,C): forward and backward. Contracts: <sdlf/operation.h>.
 *
 * Rows are cut into blocks, a task each, that stay in the second-level cache. A block is one run of elements, in which the channels come
 * round again and again: it is walked in steps of a `period` of some rows, whose sums are vectors, and which become one sum a channel, in
 * double, at its end. The blocks' sums are added in order.
 *     forward     mean and sum of squares about it of each block, joined by the means' distances (Chan, Golub and LeVeque, "Updating
 *                 formulae and a pairwise algorithm for computing sample variances", 1979); then y. x is read twice, y written.
 *     backward    sums of g and g (x - mean), with g = dy times the activation's slope; then dx. x and dy (and y) are read twice. */
#include "calculators/cpu/kernels/batch_norm_rows.h"

#include <math.h>

#include "calculators/cpu/kernels/activate.h"

enum { BLOCK_ELEMENTS = 1 << 15, LEAST_ROWS = 64, LEAST_BLOCKS = 16, LEAST_PERIOD = 128 };

typedef struct context {
    const sdlf_operation *operation;
    int64_t count, channels, period, block; /* elements: of all, a row, a step, a block of whole steps */
    int64_t blocks, each;                   /* elements of scratch space of a thread */
    const element *x, *dy, *y_in;
    element *y;                /* dx backward; NULL: not wanted */
    element *slopes;           /* what the activation leaves of dy, where somebody wants it; else NULL */
    bool activates;            /* backward: there is an activation */
    double *sums;              /* [block][2][channel] */
    element *a, *b, *c, *mean; /* of a channel, over a period */
    element *scratch;
} context;

static int64_t round_up(int64_t a, int64_t b)
{
    return cpu_divide_up(a, b) * b;
}

static context context_of(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    context all = {.operation = operation, .x = x->data, .count = sdlf_tensor_count(x), .channels = x->shape.dim[1]};
    int64_t channels = cpu_max(1, all.channels);
    all.period = cpu_divide_up(LEAST_PERIOD, channels) * channels;
    int64_t share = cpu_max(cpu_divide_up(all.count, LEAST_BLOCKS), BLOCK_ELEMENTS / 4); /* blocks enough to share */
    all.block = round_up(cpu_min(share, cpu_max(BLOCK_ELEMENTS, LEAST_ROWS * channels)), all.period);
    all.blocks = cpu_divide_up(all.count, all.block);
    bool backward = operation->kind == SDLF_BATCH_NORM2D_BACKWARD;
    all.activates = backward && operation->batch_norm.activation.function != SDLF_IDENTITY;
    int64_t work = all.activates ? 2 * cpu_min(all.block, all.count) : 0; /* g, and y where it is worked out again */
    all.each = round_up(3 * all.period + work, LANES);
    return all;
}

bool batch_norm_rows_takes_cpu(const sdlf_operation *operation)
{
    const sdlf_shape *shape = &operation->in[0].shape;
    return sdlf_shape_span(*shape, 2, shape->rank) == 1;
}

static int64_t sums_bytes(const context *all)
{
    return all->blocks * 2 * all->channels * (int64_t)sizeof(double);
}

int64_t batch_norm_rows_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    context all = context_of(operation);
    int64_t elements = 4 * all.period + cpu_from_const(calculator)->threads * all.each;
    return sums_bytes(&all) + elements * (int64_t)sizeof(element);
}

static void take_space(context *all, void *space)
{
    all->sums = space;
    all->a = (element *)((char *)space + sums_bytes(all));
    all->b = all->a + all->period;
    all->c = all->b + all->period;
    all->mean = all->c + all->period;
    all->scratch = all->mean + all->period;
}

/* The period's other rows are as the first. */
static void repeat(const context *all, element *values)
{
    for (int64_t j = all->channels; j < all->period; j++) values[j] = values[j - all->channels];
}

/* One sum a channel of a period's sums. */
static void fold(const context *all, double *to, const element *from)
{
    for (int64_t c = 0; c < all->channels; c++) {
        double sum = 0;
        for (int64_t j = c; j < all->period; j += all->channels) sum += (double)from[j];
        to[c] = sum;
    }
}

/* ---- forward ---- */

/* The squares are about a mean that the first sums gave, and corrected by the sum about it (Chan, Golub and LeVeque's corrected two-pass
 * algorithm): what sums of large numbers lose does not count. */
static void measure_block(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t first = index * all->block, count = cpu_min(all->block, all->count - first), period = all->period;
    const element *x = all->x + first;
    element *sum = all->scratch + thread * all->each, *square_sum = sum + period, *mean = square_sum + period;
    double *means = all->sums + index * 2 * all->channels, *squares = means + all->channels;
    double rows = (double)(count / all->channels);
    memset(sum, 0, (size_t)period * sizeof *sum);
    for (int64_t i = 0; i < count; i += period) {
        int64_t some = cpu_min(period, count - i);
#pragma omp simd
        for (int64_t j = 0; j < some; j++) sum[j] += x[i + j];
    }
    fold(all, means, sum);
    for (int64_t c = 0; c < all->channels; c++) mean[c] = (element)(means[c] / rows);
    repeat(all, mean);
    memset(sum, 0, 2 * (size_t)period * sizeof *sum);
    for (int64_t i = 0; i < count; i += period) {
        int64_t some = cpu_min(period, count - i);
#pragma omp simd
        for (int64_t j = 0; j < some; j++) {
            element rest = x[i + j] - mean[j];
            sum[j] += rest;
            square_sum[j] += rest * rest;
        }
    }
    fold(all, means, sum);
    fold(all, squares, square_sum);
    for (int64_t c = 0; c < all->channels; c++) {
        bool finite = isfinite((double)mean[c]);
        squares[c] = finite ? fmax(0, squares[c] - means[c] * means[c] / rows) : (double)NAN;
        means[c] = finite ? (double)mean[c] + means[c] / rows : (double)mean[c];
    }
}

/* Means and deviations of all rows, the running ones, and the line through them. */
static void settle_statistics(const context *all)
{
    const sdlf_operation *operation = all->operation;
    const element *scale = input(operation, 1), *shift = input(operation, 2);
    element *saved_mean = output(operation, 1), *saved_inverse = output(operation, 2);
    element *running_mean = output(operation, 3), *running_variance = output(operation, 4);
    double momentum = (double)operation->batch_norm.momentum, epsilon = (double)operation->batch_norm.epsilon;
    double count = (double)(all->count / all->channels);
    for (int64_t c = 0; c < all->channels; c++) {
        double mean = 0, square_sum = 0;
        for (int64_t i = 0; i < all->blocks; i++) {
            double rows = (double)(cpu_min(all->block, all->count - i * all->block) / all->channels);
            mean += rows / count * all->sums[i * 2 * all->channels + c];
        }
        for (int64_t i = 0; i < all->blocks; i++) {
            const double *block = all->sums + i * 2 * all->channels + c;
            double rows = (double)(cpu_min(all->block, all->count - i * all->block) / all->channels);
            square_sum += block[all->channels] + rows * (block[0] - mean) * (block[0] - mean);
        }
        double biased = square_sum / count, unbiased = count > 1 ? square_sum / (count - 1) : biased;
        double inverse = 1 / sqrt(biased + epsilon);
        saved_mean[c] = all->mean[c] = (element)mean;
        saved_inverse[c] = (element)inverse;
        running_mean[c] = (element)((1 - momentum) * (double)running_mean[c] + momentum * mean);
        running_variance[c] = (element)((1 - momentum) * (double)running_variance[c] + momentum * unbiased);
        all->a[c] = (element)((double)saved_inverse[c] * (double)scale[c]); /* as the backward pass makes it */
        all->b[c] = shift[c];
    }
    repeat(all, all->mean);
    repeat(all, all->a);
    repeat(all, all->b);
}

/* to = f((x - mean) a + b + residual), of `count` elements from the beginning of a row on */
static void scale_block(const context *all, element *to, const element *x, const element *residual, int64_t count)
{
    const sdlf_activation *activation = &all->operation->batch_norm.activation;
    const element *mean = all->mean, *a = all->a, *b = all->b;
    element low, high;
    bool clamps = activation_clamps(activation, &low, &high);
    for (int64_t i = 0; i < count; i += all->period) {
        int64_t some = cpu_min(all->period, count - i), j = 0;
        for (; j + LANES <= some; j += LANES) {
            vector value = (load(x + i + j) - load(mean + j)) * load(a + j) + load(b + j);
            if (residual) value += load(residual + i + j);
            if (clamps) value = clamp_lanes(value, broadcast(low), broadcast(high));
            store(to + i + j, value);
        }
        for (int64_t from = j; j < some; j++) {
            to[i + j] = (x[i + j] - mean[j]) * a[j] + b[j] + (residual ? residual[i + j] : 0);
            if (clamps && j + 1 == some) activate_cpu(to + i + from, to + i + from, some - from, activation);
        }
        if (!clamps) activate_cpu(to + i, to + i, some, activation);
    }
}

static void write_block(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t first = index * all->block;
    const element *residual = input(all->operation, 3);
    (void)thread;
    scale_block(all, all->y + first, all->x + first, residual ? residual + first : NULL,
                cpu_min(all->block, all->count - first));
}

void batch_norm_rows_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    context all = context_of(operation);
    if (all.channels == 0) return;
    take_space(&all, operation->workspace.data);
    all.y = output(operation, 0);
    cpu_parallel_near(cpu, all.blocks, cpu_time_of_elements(2 * all.count), measure_block, &all);
    settle_statistics(&all);
    cpu_parallel_near(cpu, all.blocks, cpu_time_of_elements(2 * all.count), write_block, &all);
}

/* ---- backward ---- */

/* g of a block: dy, or what the activation leaves of it. */
static const element *slopes_of(const context *all, int64_t first, int64_t count, element *scratch)
{
    element *to = all->slopes ? all->slopes + first : scratch;
    if (!all->activates && all->slopes) memcpy(to, all->dy + first, (size_t)count * sizeof *to);
    if (!all->activates) return all->dy + first;
    const element *y = all->y_in + first;
    if (all->y_in == NULL) {
        element *made = scratch + cpu_min(all->block, all->count);
        scale_block(all, made, all->x + first, NULL, count);
        y = made;
    }
    activation_gradient_cpu(to, y, all->dy + first, count, &all->operation->batch_norm.activation);
    return to;
}

static void sum_block(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t first = index * all->block, count = cpu_min(all->block, all->count - first), period = all->period;
    element *sum = all->scratch + thread * all->each, *product = sum + period;
    const element *x = all->x + first, *mean = all->mean, *g = slopes_of(all, first, count, product + period);
    double *sums = all->sums + index * 2 * all->channels;
    memset(sum, 0, 2 * (size_t)period * sizeof *sum);
    for (int64_t i = 0; i < count; i += period) {
        int64_t some = cpu_min(period, count - i);
#pragma omp simd
        for (int64_t j = 0; j < some; j++) {
            sum[j] += g[i + j];
            product[j] += g[i + j] * (x[i + j] - mean[j]);
        }
    }
    fold(all, sums, sum);
    fold(all, sums + all->channels, product);
}

/* dscale and dshift; dx = a g + (x - mean) b + c */
static void settle_gradients(const context *all)
{
    const sdlf_operation *operation = all->operation;
    const element *scale = input(operation, 1), *inverses = input(operation, 3);
    element *dscale = output(operation, 1), *dshift = output(operation, 2);
    double count = (double)(all->count / all->channels);
    for (int64_t c = 0; c < all->channels; c++) {
        double sum = 0, product = 0, inverse = (double)inverses[c], by = (double)scale[c] * inverse;
        for (int64_t i = 0; i < all->blocks; i++) {
            const double *block = all->sums + i * 2 * all->channels + c;
            sum += block[0];
            product += block[all->channels];
        }
        dshift[c] = (element)sum;
        dscale[c] = (element)(product * inverse);
        all->a[c] = (element)by;
        all->b[c] = (element)(-by * inverse * inverse * product / count);
        all->c[c] = (element)(-by * sum / count);
    }
    repeat(all, all->a);
    repeat(all, all->b);
    repeat(all, all->c);
}

static void differentiate_block(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    int64_t first = index * all->block, count = cpu_min(all->block, all->count - first);
    const element *x = all->x + first, *mean = all->mean, *a = all->a, *b = all->b, *c = all->c;
    const element *g = all->slopes ? all->slopes + first : all->dy + first;
    element *dx = all->y + first;
    (void)thread;
    for (int64_t i = 0; i < count; i += all->period) {
        int64_t some = cpu_min(all->period, count - i);
#pragma omp simd
        for (int64_t j = 0; j < some; j++) dx[i + j] = a[j] * g[i + j] + (x[i + j] - mean[j]) * b[j] + c[j];
    }
}

void batch_norm_rows_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    context all = context_of(operation);
    if (all.channels == 0) return;
    const element *scale = input(operation, 1), *inverse = input(operation, 3), *shift = input(operation, 6);
    take_space(&all, operation->workspace.data);
    all.dy = input(operation, 4);
    all.y_in = input(operation, 5);
    all.y = output(operation, 0);
    all.slopes = output(operation, 3);
    if (all.activates && all.slopes == NULL) all.slopes = all.y; /* dx is written where g lies */
    for (int64_t c = 0; c < all.channels; c++) {
        all.mean[c] = input(operation, 2)[c];
        all.a[c] = (element)((double)scale[c] * (double)inverse[c]);
        all.b[c] = shift ? shift[c] : 0;
    }
    repeat(&all, all.mean);
    repeat(&all, all.a);
    repeat(&all, all.b);
    cpu_parallel_near(cpu, all.blocks, cpu_time_of_elements(3 * all.count), sum_block, &all);
    settle_gradients(&all);
    if (all.y) cpu_parallel_near(cpu, all.blocks, cpu_time_of_elements(3 * all.count), differentiate_block, &all);
}
