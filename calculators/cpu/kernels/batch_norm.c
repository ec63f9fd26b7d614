/* SPDX-License-Identifier: MIT */
/* batch_norm2d: forward, infer, backward. Contracts: <sdlf/operation.h>.
 *
 * x is (N,C,S) with S = H W. Training processes each channel in one task: its sums are accumulated image by image, in double, in
 * order. The N runs of S elements of a channel are read two or three times; if a channel fits the second-level cache, x moves
 * through memory once. For S = 1 (rows of channels) see batch_norm_rows.h; in inference a task is then a block of channels. */
#include <math.h>

#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/batch_norm_rows.h"
#include "calculators/cpu/kernels/kernels.h"

/* Channels of a task if S = 1. */
enum { CHANNEL_BLOCK = 64 };

typedef struct batch_norm_context {
    const element *x, *scale, *shift, *mean, *variance, *dy;
    element *y, *saved_mean, *saved_inverse, *running_mean, *running_variance, *dscale, *dshift;
    int64_t n, c, s, block;
    double epsilon, momentum;
    sdlf_activation activation;
} batch_norm_context;

static batch_norm_context context_of(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    batch_norm_context norm = {.x = x->data,
                               .scale = input(operation, 1),
                               .n = x->shape.dim[0],
                               .c = x->shape.dim[1],
                               .s = sdlf_shape_span(x->shape, 2, x->shape.rank),
                               .y = output(operation, 0),
                               .epsilon = (double)operation->batch_norm.epsilon,
                               .momentum = (double)operation->batch_norm.momentum};
    norm.block = norm.s == 1 ? CHANNEL_BLOCK : 1;
    return norm;
}

/* The sum over a run of (x - centre)^2 */
static double sum_squares(const element *x, element mean, int64_t s)
{
    vector part[2] = {{0}}, centre = broadcast(mean);
    int64_t i = 0;
    for (; i + 2 * LANES <= s; i += 2 * LANES) {
        vector a = load(x + i) - centre, b = load(x + i + LANES) - centre;
        part[0] += a * a;
        part[1] += b * b;
    }
    element sum = sum_lanes(part[0] + part[1]);
    for (; i < s; i++) sum += square(x[i] - mean);
    return (double)sum;
}

/* y = (x - centre) factor + offset */
static void scale_run(element *y, const element *x, const element *centre, const element *factor, const element *offset,
                      int64_t s, int64_t channels)
{
    if (s > 1) {
        element from = centre[0], by = factor[0], plus = offset[0];
#pragma omp simd
        for (int64_t i = 0; i < s; i++) y[i] = (x[i] - from) * by + plus;
    } else {
#pragma omp simd
        for (int64_t j = 0; j < channels; j++) y[j] = (x[j] - centre[j]) * factor[j] + offset[j];
    }
}

static void forward_channel(void *context, int64_t c, int thread)
{
    const batch_norm_context *norm = context;
    int64_t step = norm->c * norm->s;
    const element *x = norm->x + c * norm->s;
    double count = (double)(norm->n * norm->s), mean = 0, variance = 0;
    (void)thread;
    for (int64_t n = 0; n < norm->n; n++) mean += (double)sum_run(x + n * step, norm->s);
    mean /= count;
    for (int64_t n = 0; n < norm->n; n++) variance += sum_squares(x + n * step, (element)mean, norm->s);
    double biased = variance / count, unbiased = count > 1 ? variance / (count - 1) : biased;
    double inverse = 1 / sqrt(biased + norm->epsilon);
    norm->saved_mean[c] = (element)mean;
    norm->saved_inverse[c] = (element)inverse;
    norm->running_mean[c] = (element)((1 - norm->momentum) * (double)norm->running_mean[c] + norm->momentum * mean);
    norm->running_variance[c] =
        (element)((1 - norm->momentum) * (double)norm->running_variance[c] + norm->momentum * unbiased);
    element factor = (element)(inverse * (double)norm->scale[c]);
    for (int64_t n = 0; n < norm->n; n++)
        scale_run(norm->y + n * step + c * norm->s, x + n * step, norm->saved_mean + c, &factor, norm->shift + c,
                  norm->s, 1);
}

bool batch_norm2d_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return batch_norm_rows_takes_cpu(operation) || !sdlf_batch_norm2d_is_fused(operation);
}

int64_t batch_norm2d_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return batch_norm_rows_takes_cpu(operation) ? batch_norm_rows_workspace_cpu(calculator, operation) : 0;
}

sdlf_status batch_norm2d_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    batch_norm_context norm = context_of(operation);
    if (batch_norm_rows_takes_cpu(operation)) {
        batch_norm_rows_forward_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    norm.shift = input(operation, 2);
    norm.saved_mean = output(operation, 1);
    norm.saved_inverse = output(operation, 2);
    norm.running_mean = output(operation, 3);
    norm.running_variance = output(operation, 4);
    cpu_parallel(cpu_from(calculator), norm.c, cpu_time_of_elements(3 * norm.n * norm.c * norm.s), forward_channel,
                 &norm);
    return SDLF_OK;
}

/* Images of a task in inference: with S = 1, enough to amortise the computation of the factors. */
static int64_t infer_images(const batch_norm_context *norm)
{
    return norm->s == 1 ? cpu_max(1, TASK_ELEMENTS / CHANNEL_BLOCK) : 1;
}

/* A task: one image and one channel, or some images and a block of channels. */
static void infer_channels(void *context, int64_t index, int thread)
{
    const batch_norm_context *norm = context;
    int64_t blocks = cpu_divide_up(norm->c, norm->block), first = index % blocks * norm->block;
    int64_t channels = cpu_min(norm->block, norm->c - first), images = infer_images(norm);
    int64_t last = cpu_min((index / blocks + 1) * images, norm->n);
    element factor[CHANNEL_BLOCK];
    (void)thread;
    for (int64_t j = 0; j < channels; j++) {
        int64_t c = first + j;
        factor[j] = (element)((double)norm->scale[c] / sqrt((double)norm->variance[c] + norm->epsilon));
    }
    for (int64_t n = index / blocks * images; n < last; n++) {
        int64_t start = (n * norm->c + first) * norm->s;
        scale_run(norm->y + start, norm->x + start, norm->mean + first, factor, norm->shift + first, norm->s, channels);
        activate_cpu(norm->y + start, norm->y + start, channels * norm->s, &norm->activation);
    }
}

sdlf_status batch_norm2d_infer_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    batch_norm_context norm = context_of(operation);
    norm.shift = input(operation, 2);
    norm.mean = input(operation, 3);
    norm.variance = input(operation, 4);
    norm.activation = operation->batch_norm.activation;
    if (norm.n * norm.c * norm.s == 0) return SDLF_OK;
    cpu_parallel_static(cpu_from(calculator),
                        cpu_divide_up(norm.n, infer_images(&norm)) * cpu_divide_up(norm.c, norm.block),
                        cpu_time_of_elements(norm.n * norm.c * norm.s), infer_channels, &norm);
    return SDLF_OK;
}

/* The sum over a run of dy (x - mean) */
static double sum_products(const element *x, const element *dy, element mean, int64_t s)
{
    vector part[2] = {{0}}, centre = broadcast(mean);
    int64_t i = 0;
    for (; i + 2 * LANES <= s; i += 2 * LANES) {
        part[0] += load(dy + i) * (load(x + i) - centre);
        part[1] += load(dy + i + LANES) * (load(x + i + LANES) - centre);
    }
    element sum = sum_lanes(part[0] + part[1]);
    for (; i < s; i++) sum += dy[i] * (x[i] - mean);
    return (double)sum;
}

/* dx = by dy + (x - mean) slope + offset */
static void backward_run(element *dx, const element *dy, const element *x, element mean, element by, element slope,
                         element offset, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) dx[i] = by * dy[i] + (x[i] - mean) * slope + offset;
}

static void backward_channel(void *context, int64_t c, int thread)
{
    const batch_norm_context *norm = context;
    int64_t step = norm->c * norm->s, start = c * norm->s;
    double count = (double)(norm->n * norm->s), sum = 0, product = 0, inverse = (double)norm->saved_inverse[c];
    double by = (double)norm->scale[c] * inverse;
    (void)thread;
    for (int64_t n = 0; n < norm->n; n++) {
        int64_t at = n * step + start;
        sum += (double)sum_run(norm->dy + at, norm->s);
        product += sum_products(norm->x + at, norm->dy + at, norm->mean[c], norm->s);
    }
    norm->dshift[c] = (element)sum;
    norm->dscale[c] = (element)(product * inverse);
    if (!norm->y) return;
    element slope = (element)(-by * inverse * inverse * product / count), offset = (element)(-by * sum / count);
    for (int64_t n = 0; n < norm->n; n++) {
        int64_t at = n * step + start;
        backward_run(norm->y + at, norm->dy + at, norm->x + at, norm->mean[c], (element)by, slope, offset, norm->s);
    }
}

sdlf_status batch_norm2d_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    batch_norm_context norm = context_of(operation);
    if (batch_norm_rows_takes_cpu(operation)) {
        batch_norm_rows_backward_cpu(cpu_from(calculator), operation);
        return SDLF_OK;
    }
    norm.mean = input(operation, 2);
    norm.saved_inverse = operation->in[3].data;
    norm.dy = input(operation, 4);
    norm.dscale = output(operation, 1);
    norm.dshift = output(operation, 2);
    cpu_parallel(cpu_from(calculator), norm.c, cpu_time_of_elements(4 * norm.n * norm.c * norm.s), backward_channel,
                 &norm);
    return SDLF_OK;
}
