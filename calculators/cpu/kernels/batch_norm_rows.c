/* SPDX-License-Identifier: MIT */
/* batch_norm2d of rows of channels, (M,C): forward. Contracts: <sdlf/operation.h>.
 *
 * Rows are partitioned into blocks, one for each task, that stay in the second-level cache. A block is one run of elements in which
 * the channels repeat: it is processed in steps of a `period`, some whole rows, with vector accumulators, which are reduced to one
 * sum for each channel, in double, at the end. The blocks' sums are added in order.
 * Forward: the mean and the sum of squares about it of each block, combined by the distances of the means (Chan, Golub and LeVeque,
 * "Updating formulae and a pairwise algorithm for computing sample variances", 1979); then y. x is read twice, y written. */
#include "calculators/cpu/kernels/batch_norm_rows.h"

#include "calculators/cpu/kernels/batch_norm_rows_context.h"

bool batch_norm_rows_takes_cpu(const sdlf_operation *operation)
{
    const sdlf_shape *shape = &operation->in[0].shape;
    return sdlf_shape_span(*shape, 2, shape->rank) == 1;
}

int64_t batch_norm_rows_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    norm_rows all = norm_rows_of(operation);
    int64_t elements = 5 * all.period + cpu_from_const(calculator)->threads * all.each;
    return norm_rows_sums_bytes(&all) + elements * (int64_t)sizeof(element);
}

/* Squares are taken about the mean of the first pass and corrected by the sum about it (the corrected two-pass
 * algorithm of Chan, Golub and LeVeque), so that rounding errors of the first sums cancel. */
static void measure_block(void *argument, int64_t index, int thread)
{
    const norm_rows *all = argument;
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
    norm_rows_fold(all, means, sum);
    for (int64_t c = 0; c < all->channels; c++) mean[c] = (element)(means[c] / rows);
    norm_rows_repeat(all, mean);
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
    norm_rows_fold(all, means, sum);
    norm_rows_fold(all, squares, square_sum);
    for (int64_t c = 0; c < all->channels; c++) {
        bool finite = isfinite((double)mean[c]);
        squares[c] = finite ? fmax(0, squares[c] - means[c] * means[c] / rows) : (double)NAN;
        means[c] = finite ? (double)mean[c] + means[c] / rows : (double)mean[c];
    }
}

/* Mean and deviation over all rows, the running statistics, and the coefficients a and b of y = x a + b. */
static void finalize_statistics(const norm_rows *all)
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
        all->a[c] = (element)((double)saved_inverse[c] * (double)scale[c]); /* as computed in the backward pass */
        all->b[c] = shift[c];
    }
    norm_rows_repeat(all, all->mean);
    norm_rows_repeat(all, all->a);
    norm_rows_repeat(all, all->b);
}

void batch_norm_rows_scale_cpu(const norm_rows *all, element *to, const element *x, const element *residual,
                               int64_t count, const sdlf_activation *activation)
{
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
    const norm_rows *all = argument;
    int64_t first = index * all->block;
    const element *residual = input(all->operation, 3);
    (void)thread;
    batch_norm_rows_scale_cpu(all, all->y + first, all->x + first, residual ? residual + first : NULL,
                              cpu_min(all->block, all->count - first), &all->operation->batch_norm.activation);
}

void batch_norm_rows_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    norm_rows all = norm_rows_of(operation);
    if (all.channels == 0) return;
    norm_rows_take_space(&all, operation->workspace.data);
    all.y = output(operation, 0);
    cpu_parallel_static(cpu, all.blocks, cpu_time_of_elements(2 * all.count), measure_block, &all);
    finalize_statistics(&all);
    cpu_parallel_static(cpu, all.blocks, cpu_time_of_elements(2 * all.count), write_block, &all);
}
