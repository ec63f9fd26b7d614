/* SPDX-License-Identifier: MIT */
/* batch_norm2d_backward of rows of channels: sums of g and g (x - mean), with g = dy times the activation's slope; then
 * dx. x and dy (and y) are read twice. If the activation clamps, both passes determine from y, or from x, which
 * elements of dy pass, and g is stored only if it is an output. See batch_norm_rows.c. */
#include "calculators/cpu/kernels/batch_norm_rows_context.h"

/* The source of g: given, or dy masked by whether y, or its value recomputed from x, lies between the clamps. */
typedef enum source { GIVEN, FROM_Y, FROM_X } source;

static source source_of(const norm_rows *all)
{
    return !all->clamps ? GIVEN : all->y_in ? FROM_Y : FROM_X;
}

/* g of a block if it is given: dy, or dy times the activation's slope. */
static const element *slopes_of(const norm_rows *all, int64_t first, int64_t count, element *scratch)
{
    element *to = all->slopes ? all->slopes + first : scratch;
    if (all->clamps) return all->dy + first;
    if (!all->activates && all->slopes) memcpy(to, all->dy + first, (size_t)count * sizeof *to);
    if (!all->activates) return all->dy + first;
    static const sdlf_activation identity = {.function = SDLF_IDENTITY};
    const sdlf_activation *activation = &all->operation->batch_norm.activation;
    const bool reads_input = sdlf_activation_reads_input(activation->function);
    const element *y = all->y_in != NULL ? all->y_in + first : NULL;
    if (all->y_in == NULL) {
        element *made = scratch + cpu_min(all->block, all->count);
        batch_norm_rows_scale_cpu(all, made, all->x + first, NULL, count, reads_input ? &identity : activation);
        y = made;
    }
    activation_gradient_cpu(to, y, all->dy + first, count, activation);
    return to;
}

/* from and keeps are compile-time constants at every call: g is written to `kept` if `keeps`. */
static inline __attribute__((always_inline)) void add_block(const norm_rows *all, const source from, const bool keeps,
                                                            int64_t first, int64_t count, const element *dy,
                                                            element *sum, element *product)
{
    const element *x = all->x + first, *y = from == FROM_Y ? all->y_in + first : x;
    const element *mean = all->mean, *a = all->a, *shift = all->shift;
    element low = all->low, most = all->most, *kept = keeps ? all->slopes + first : NULL;
    for (int64_t i = 0; i < count; i += all->period) {
        int64_t some = cpu_min(all->period, count - i);
#pragma omp simd
        for (int64_t j = 0; j < some; j++) {
            element rest = x[i + j] - mean[j], made = from == FROM_X ? rest * a[j] + shift[j] : y[i + j];
            element g = from == GIVEN || ((made > low) & (made <= most)) ? dy[i + j] : 0;
            if (keeps) kept[i + j] = g;
            sum[j] += g;
            product[j] += g * rest;
        }
    }
}

static void sum_block(void *argument, int64_t index, int thread)
{
    const norm_rows *all = argument;
    int64_t first = index * all->block, count = cpu_min(all->block, all->count - first), period = all->period;
    element *sum = all->scratch + thread * all->each, *product = sum + period;
    const element *g = slopes_of(all, first, count, product + period);
    double *sums = all->sums + index * 2 * all->channels;
    memset(sum, 0, 2 * (size_t)period * sizeof *sum);
    source from = source_of(all);
    if (from == GIVEN)
        add_block(all, GIVEN, false, first, count, g, sum, product);
    else if (from == FROM_Y && all->slopes)
        add_block(all, FROM_Y, true, first, count, g, sum, product);
    else if (from == FROM_Y)
        add_block(all, FROM_Y, false, first, count, g, sum, product);
    else if (all->slopes)
        add_block(all, FROM_X, true, first, count, g, sum, product);
    else
        add_block(all, FROM_X, false, first, count, g, sum, product);
    norm_rows_fold(all, sums, sum);
    norm_rows_fold(all, sums + all->channels, product);
}

/* Computes dscale and dshift, and the coefficients of dx = a g + (x - mean) b + c. */
static void finalize_gradients(const norm_rows *all)
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
    norm_rows_repeat(all, all->a);
    norm_rows_repeat(all, all->b);
    norm_rows_repeat(all, all->c);
}

static inline __attribute__((always_inline)) void write_gradient(const norm_rows *all, const source from, int64_t first,
                                                                 int64_t count, const element *dy)
{
    const element *x = all->x + first, *y = from == FROM_Y ? all->y_in + first : x;
    const element *mean = all->mean, *a = all->a, *b = all->b, *c = all->c, *shift = all->shift;
    element low = all->low, most = all->most, *dx = all->y + first;
    for (int64_t i = 0; i < count; i += all->period) {
        int64_t some = cpu_min(all->period, count - i);
#pragma omp simd
        for (int64_t j = 0; j < some; j++) {
            element rest = x[i + j] - mean[j], made = from == FROM_X ? rest * a[j] + shift[j] : y[i + j];
            element g = from == GIVEN || ((made > low) & (made <= most)) ? dy[i + j] : 0;
            dx[i + j] = a[j] * g + rest * b[j] + c[j];
        }
    }
}

static void differentiate_block(void *argument, int64_t index, int thread)
{
    const norm_rows *all = argument;
    int64_t first = index * all->block, count = cpu_min(all->block, all->count - first);
    const element *g = all->slopes ? all->slopes + first : all->dy + first;
    (void)thread;
    switch (all->slopes ? GIVEN : source_of(all)) {
    case GIVEN: write_gradient(all, GIVEN, first, count, g); break;
    case FROM_X: write_gradient(all, FROM_X, first, count, g); break;
    default: write_gradient(all, FROM_Y, first, count, g);
    }
}

void batch_norm_rows_backward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    norm_rows all = norm_rows_of(operation);
    if (all.channels == 0) return;
    const element *scale = input(operation, 1), *inverse = input(operation, 3), *shift = input(operation, 6);
    norm_rows_take_space(&all, operation->workspace.data);
    all.dy = input(operation, 4);
    all.y_in = input(operation, 5);
    all.y = output(operation, 0);
    all.slopes = output(operation, 3);
    if (all.activates && !all.clamps && all.slopes == NULL) all.slopes = all.y; /* dx overwrites g */
    for (int64_t c = 0; c < all.channels; c++) {
        all.mean[c] = input(operation, 2)[c];
        all.a[c] = (element)((double)scale[c] * (double)inverse[c]);
        all.b[c] = all.shift[c] = shift ? shift[c] : 0;
    }
    norm_rows_repeat(&all, all.mean);
    norm_rows_repeat(&all, all.a);
    norm_rows_repeat(&all, all.b);
    norm_rows_repeat(&all, all.shift);
    cpu_parallel_static(cpu, all.blocks, cpu_time_of_elements(3 * all.count), sum_block, &all);
    finalize_gradients(&all);
    if (all.y) cpu_parallel_static(cpu, all.blocks, cpu_time_of_elements(3 * all.count), differentiate_block, &all);
}
