/* SPDX-License-Identifier: MIT */
/* resample and its gradient, of floats. Contracts: <sdlf/operation.h>.
 *
 * The taps of each output along the axis are computed once, into a table of indices and weights. Then rows of `inner`
 * elements are accumulated (forward), or scattered to their sources (backward; a task owns whole outer indices). Along
 * the last axis, where a row is one element, LANES lines are transposed into rows, and the outputs transposed back.
 * Moves y once, and x once for each weight, mostly from the cache. */
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/kernels.h"
#include "framework/operations/resample_taps.h"

enum { INNER_BLOCK = 1024 };

typedef struct resampling {
    const element *from;
    element *to;
    int64_t *index;      /* (outputs, taps); -1 where the output is `outside` */
    double *weight;      /* (outputs, taps) */
    element *transposed; /* of each thread (length + outputs, LANES); where inner is 1 */
    int64_t outer, length, outputs, inner, taps, blocks, outer_per_task;
    element outside;
} resampling;

static int64_t most_taps(const sdlf_resample_options *options, int64_t length, int64_t outputs)
{
    return outputs > 0 ? sdlf_resample_at(options, length, outputs, 0).count : 1;
}

static resampling of(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *y)
{
    const sdlf_resample_options *options = &operation->resample;
    int axis = options->axis;
    resampling r = {.from = input(operation, 0),
                    .to = output(operation, 0),
                    .outer = sdlf_shape_span(x->shape, 0, axis),
                    .length = x->shape.dim[axis],
                    .outputs = y->shape.dim[axis],
                    .inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank),
                    .outside = (element)options->outside};
    r.taps = most_taps(options, r.length, r.outputs);
    r.index = operation->workspace.data;
    if (r.index) {
        r.weight = (double *)(r.index + r.outputs * r.taps);
        r.transposed = (element *)(r.weight + r.outputs * r.taps);
    }
    r.blocks = cpu_divide_up(r.inner, INNER_BLOCK);
    int64_t width = cpu_min(r.inner, INNER_BLOCK);
    r.outer_per_task = cpu_max(1, TASK_ELEMENTS / cpu_max(1, width * cpu_max(r.length, r.outputs)));
    if (r.inner == 1) r.outer_per_task = cpu_round_up(r.outer_per_task, LANES);
    return r;
}

static void make_table(const resampling *r, const sdlf_resample_options *options)
{
    for (int64_t j = 0; j < r->outputs; j++) {
        sdlf_resample_taps taps = sdlf_resample_at(options, r->length, r->outputs, j);
        for (int64_t k = 0; k < r->taps; k++) {
            r->index[j * r->taps + k] = taps.outside ? -1 : sdlf_resample_index(&taps, r->length, k);
            r->weight[j * r->taps + k] = sdlf_resample_weight(options, &taps, r->length, k);
        }
    }
}

static int64_t workspace_of(resampling r)
{
    return r.outputs * r.taps * (int64_t)(sizeof *r.index + sizeof *r.weight);
}

static int64_t transposed_size(const resampling *r)
{
    return (r->length + r->outputs) * LANES;
}

int64_t resample_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    bool backward = operation->kind == SDLF_RESAMPLE_BACKWARD;
    const sdlf_tensor *x = backward ? &operation->out[0] : &operation->in[0];
    const sdlf_tensor *y = backward ? &operation->in[0] : &operation->out[0];
    resampling r = of(operation, x, y);
    int64_t transposed = backward || r.inner > 1 ? 0 : cpu_from_const(calculator)->threads * transposed_size(&r);
    return workspace_of(r) + transposed * (int64_t)sizeof(element);
}

/* A single column: one value for each output. */
static void forward_line(const resampling *r, element *y, const element *x)
{
    for (int64_t j = 0; j < r->outputs; j++) {
        const int64_t *index = r->index + j * r->taps;
        const double *weight = r->weight + j * r->taps;
        double sum = 0;
        for (int64_t k = 0; k < r->taps && index[0] >= 0; k++) sum += weight[k] * (double)x[index[k]];
        y[j] = index[0] >= 0 ? (element)sum : r->outside;
    }
}

static void forward_block(const resampling *r, element *y, const element *x, int64_t width)
{
    for (int64_t j = 0; j < r->outputs; j++, y += r->inner) {
        const int64_t *index = r->index + j * r->taps;
        for (int64_t i = 0; i < width; i++) y[i] = index[0] >= 0 ? 0 : r->outside;
        for (int64_t k = 0; k < r->taps && index[0] >= 0; k++) {
            const element *row = x + index[k] * r->inner;
            element weight = (element)r->weight[j * r->taps + k];
#pragma omp simd
            for (int64_t i = 0; i < width; i++) y[i] += weight * row[i];
        }
    }
}

/* LANES single columns, side by side. */
static void forward_lines(const resampling *r, element *y, const element *x, element *transposed)
{
    resampling columns = *r;
    element *sums = transposed + r->length * LANES;
    columns.inner = LANES;
    transpose(transposed, LANES, x, r->length, LANES, r->length);
    forward_block(&columns, sums, transposed, LANES);
    transpose(y, r->outputs, sums, LANES, r->outputs, LANES);
}

static void forward(void *context, int64_t task, int thread)
{
    const resampling *r = context;
    int64_t first = task % r->blocks * INNER_BLOCK, width = cpu_min(INNER_BLOCK, r->inner - first);
    int64_t start = task / r->blocks * r->outer_per_task, end = cpu_min(start + r->outer_per_task, r->outer);
    int64_t o = start;
    for (; r->inner == 1 && o + LANES <= end; o += LANES)
        forward_lines(r, r->to + o * r->outputs, r->from + o * r->length, r->transposed + thread * transposed_size(r));
    for (; o < end; o++) {
        const element *x = r->from + o * r->length * r->inner + first;
        element *y = r->to + o * r->outputs * r->inner + first;
        if (r->inner == 1) {
            forward_line(r, y, x);
        } else {
            forward_block(r, y, x, width);
        }
    }
}

static void backward(void *context, int64_t task, int thread)
{
    const resampling *r = context;
    int64_t first = task % r->blocks * INNER_BLOCK, width = cpu_min(INNER_BLOCK, r->inner - first);
    int64_t start = task / r->blocks * r->outer_per_task, end = cpu_min(start + r->outer_per_task, r->outer);
    (void)thread;
    for (int64_t o = start; o < end; o++) {
        element *dx = r->to + o * r->length * r->inner + first;
        const element *dy = r->from + o * r->outputs * r->inner + first;
        for (int64_t l = 0; l < r->length; l++) memset(dx + l * r->inner, 0, (size_t)width * sizeof *dx);
        for (int64_t j = 0; j < r->outputs; j++, dy += r->inner) {
            const int64_t *index = r->index + j * r->taps;
            for (int64_t k = 0; k < r->taps && index[0] >= 0; k++) {
                element *row = dx + index[k] * r->inner, weight = (element)r->weight[j * r->taps + k];
#pragma omp simd
                for (int64_t i = 0; i < width; i++) row[i] += weight * dy[i];
            }
        }
    }
}

static sdlf_status run(sdlf_calculator *calculator, const sdlf_operation *operation, resampling r, cpu_task *task)
{
    int64_t count = r.outer * r.inner * cpu_max(r.length, r.outputs * r.taps);
    if (count == 0) return SDLF_OK;
    make_table(&r, &operation->resample);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(r.outer, r.outer_per_task) * r.blocks, cpu_time_of_elements(count),
                 task, &r);
    return SDLF_OK;
}

sdlf_status resample_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run(calculator, operation, of(operation, &operation->in[0], &operation->out[0]), forward);
}

sdlf_status resample_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return run(calculator, operation, of(operation, &operation->out[0], &operation->in[0]), backward);
}
