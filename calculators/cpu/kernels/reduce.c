/* SPDX-License-Identifier: MIT */
/* reduce, and clip_scale, which follows one. Contracts: <sdlf/operation.h>.
 *
 * x is seen as (outer, length, inner), with the reduced axis in the middle. The axis is partitioned into chunks of
 * fixed size, each reduced by one task into a row of partial results; these are combined in order. A single chunk
 * writes y directly. Moves x once, one FLOP an element: floor, bytes over bandwidth. */
#include <math.h>

#include "calculators/cpu/kernels/kernels.h"

/* Inner elements of a task, and the minimum elements of x that it reads. */
enum { INNER_BLOCK = 1024, CHUNK_ELEMENTS = 1 << 15 };

typedef struct reduction {
    const element *x;
    element *y, *partial; /* partial: (outer, chunks, inner) */
    int64_t outer, length, inner;
    int64_t chunk, chunks, blocks, outer_per_task;
    sdlf_reduction function;
} reduction;

static reduction reduction_of(const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    int axis = operation->reduce.axis;
    reduction r = {.x = x->data,
                   .y = output(operation, 0),
                   .partial = operation->workspace.data,
                   .outer = sdlf_shape_span(x->shape, 0, axis),
                   .length = x->shape.dim[axis],
                   .inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank),
                   .function = operation->reduce.function};
    int64_t width = cpu_max(1, cpu_min(r.inner, INNER_BLOCK));
    r.chunk = cpu_max(1, CHUNK_ELEMENTS / width);
    r.chunks = cpu_max(1, cpu_divide_up(r.length, r.chunk));
    r.blocks = cpu_divide_up(r.inner, INNER_BLOCK);
    r.outer_per_task = cpu_max(1, CHUNK_ELEMENTS / (width * cpu_max(1, cpu_min(r.length, r.chunk))));
    return r;
}

int64_t reduce_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    reduction r = reduction_of(operation);
    (void)calculator;
    return r.chunks == 1 ? 0 : r.outer * r.chunks * r.inner * (int64_t)sizeof(element);
}

/* The identity of the reduction. */
static element start_of(sdlf_reduction function)
{
    switch (function) {
    case SDLF_REDUCE_MAX: return -(element)INFINITY;
    case SDLF_REDUCE_MIN: return (element)INFINITY;
    case SDLF_REDUCE_PRODUCT: return 1;
    default: return 0;
    }
}

/* `function` is a compile-time constant at every call, here and below. NaN wins. */
static inline __attribute__((always_inline)) vector take(const sdlf_reduction function, vector result, vector x)
{
    switch (function) {
    case SDLF_REDUCE_MAX: return choose((x > result) | (x != x), x, result);
    case SDLF_REDUCE_MIN: return choose((x < result) | (x != x), x, result);
    case SDLF_REDUCE_PRODUCT: return result * x;
    case SDLF_REDUCE_SUM_SQUARES: return result + x * x;
    default: return result + x;
    }
}

/* The same for one element. */
static inline __attribute__((always_inline)) element take_one(const sdlf_reduction function, element result, element x)
{
    switch (function) {
    case SDLF_REDUCE_MAX: return x > result || x != x ? x : result;
    case SDLF_REDUCE_MIN: return x < result || x != x ? x : result;
    case SDLF_REDUCE_PRODUCT: return result * x;
    case SDLF_REDUCE_SUM_SQUARES: return result + x * x;
    default: return result + x;
    }
}

/* Reduces `rows` rows of `width` elements, `stride` apart, to one row. */
static inline __attribute__((always_inline)) void take_rows(const sdlf_reduction function, element *y, const element *x,
                                                            int64_t rows, int64_t stride, int64_t width)
{
    element start = start_of(function);
    int64_t whole = width / LANES * LANES;
    for (int64_t i = 0; i < width; i++) y[i] = start;
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = 0; i < whole; i += LANES) store(y + i, take(function, load(y + i), load(x + i)));
        for (int64_t i = whole; i < width; i++) y[i] = take_one(function, y[i], x[i]);
    }
}

static void reduce_rows(element *y, const element *x, int64_t rows, int64_t stride, int64_t width,
                        sdlf_reduction function)
{
    switch (function) {
    case SDLF_REDUCE_MAX: take_rows(SDLF_REDUCE_MAX, y, x, rows, stride, width); break;
    case SDLF_REDUCE_MIN: take_rows(SDLF_REDUCE_MIN, y, x, rows, stride, width); break;
    case SDLF_REDUCE_PRODUCT: take_rows(SDLF_REDUCE_PRODUCT, y, x, rows, stride, width); break;
    case SDLF_REDUCE_SUM_SQUARES: take_rows(SDLF_REDUCE_SUM_SQUARES, y, x, rows, stride, width); break;
    default: take_rows(SDLF_REDUCE_SUM, y, x, rows, stride, width); break;
    }
}

/* Reduces one run to one value: in enough independent vector accumulators to hide the latency, then across lanes. */
static inline __attribute__((always_inline)) element take_run(const sdlf_reduction function, const element *x,
                                                              int64_t count)
{
    enum { STREAMS = 4 };
    const sdlf_reduction joining = function == SDLF_REDUCE_SUM_SQUARES ? SDLF_REDUCE_SUM : function;
    element lane[LANES], result = start_of(function);
    int64_t i = 0;
    if (count >= STREAMS * LANES) {
        vector part[STREAMS];
        for (int j = 0; j < STREAMS; j++) part[j] = broadcast(result);
        for (; i + STREAMS * LANES <= count; i += STREAMS * LANES) {
            for (int j = 0; j < STREAMS; j++) part[j] = take(function, part[j], load(x + i + j * LANES));
        }
        for (; i + LANES <= count; i += LANES) part[0] = take(function, part[0], load(x + i));
        store(lane, take(joining, take(joining, part[0], part[1]), take(joining, part[2], part[3])));
        for (int j = 0; j < LANES; j++) result = take_one(joining, result, lane[j]);
    }
    for (; i < count; i++) result = take_one(function, result, x[i]);
    return result;
}

static element reduce_run(const element *x, int64_t count, sdlf_reduction function)
{
    switch (function) {
    case SDLF_REDUCE_MAX: return take_run(SDLF_REDUCE_MAX, x, count);
    case SDLF_REDUCE_MIN: return take_run(SDLF_REDUCE_MIN, x, count);
    case SDLF_REDUCE_PRODUCT: return take_run(SDLF_REDUCE_PRODUCT, x, count);
    case SDLF_REDUCE_SUM_SQUARES: return take_run(SDLF_REDUCE_SUM_SQUARES, x, count);
    default: return take_run(SDLF_REDUCE_SUM, x, count);
    }
}

static void divide_mean(const reduction *r, element *y, int64_t count)
{
    if (r->function != SDLF_REDUCE_MEAN) return;
    for (int64_t i = 0; i < count; i++) y[i] /= (element)r->length;
}

/* A task: some outer indices, one chunk of the axis, one block of the inner elements. */
static void reduce_chunk(void *context, int64_t index, int thread)
{
    const reduction *r = context;
    int64_t block = index % r->blocks, chunk = index / r->blocks % r->chunks;
    int64_t first_outer = index / r->blocks / r->chunks * r->outer_per_task;
    int64_t last_outer = cpu_min(first_outer + r->outer_per_task, r->outer);
    int64_t first_inner = block * INNER_BLOCK, width = cpu_min(INNER_BLOCK, r->inner - first_inner);
    int64_t first = chunk * r->chunk, rows = cpu_min(r->chunk, r->length - first);
    (void)thread;
    for (int64_t outer = first_outer; outer < last_outer; outer++) {
        const element *x = r->x + (outer * r->length + first) * r->inner + first_inner;
        element *y = (r->chunks == 1 ? r->y : r->partial) + (outer * r->chunks + chunk) * r->inner + first_inner;
        if (r->inner == 1) {
            *y = reduce_run(x, rows, r->function);
        } else {
            reduce_rows(y, x, rows, r->inner, width, r->function);
        }
        if (r->chunks == 1) divide_mean(r, y, width);
    }
}

/* Combines the partial results of one outer index. */
static void combine_chunks(void *context, int64_t index, int thread)
{
    const reduction *r = context;
    const element *partial = r->partial + index * r->chunks * r->inner;
    element *y = r->y + index * r->inner;
    (void)thread;
    bool sums = r->function == SDLF_REDUCE_MEAN || r->function == SDLF_REDUCE_SUM_SQUARES;
    reduce_rows(y, partial, r->chunks, r->inner, r->inner, sums ? SDLF_REDUCE_SUM : r->function);
    divide_mean(r, y, r->inner);
}

sdlf_status reduce_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    reduction r = reduction_of(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    int64_t groups = cpu_divide_up(r.outer, r.outer_per_task);
    cpu_parallel(cpu, groups * r.chunks * r.blocks, cpu_time_of_elements(r.outer * r.length * r.inner), reduce_chunk,
                 &r);
    if (r.chunks > 1)
        cpu_parallel(cpu, r.outer, cpu_time_of_elements(r.outer * r.chunks * r.inner), combine_chunks, &r);
    return SDLF_OK;
}

sdlf_status clip_scale_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    double sum = 0, factor = sdlf_tensor_present(&operation->in[1]) ? (double)input(operation, 1)[0] : 1;
    (void)calculator;
    for (int64_t i = 0; i < sdlf_tensor_count(&operation->in[0]); i++) sum += (double)input(operation, 0)[i];
    double scale = (double)operation->clip.max_norm / (factor * sqrt(sum) + 1e-6);
    output(operation, 0)[0] = (element)(factor == 0 ? 0 : factor * (scale > 1 ? 1 : scale));
    return SDLF_OK;
}
