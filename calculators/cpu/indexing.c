/* SPDX-License-Identifier: MIT */
/* gather and resample of single elements: rows of `inner` elements of any type, moved as bytes. Contracts: <sdlf/operation.h>.
 * Reads and writes the bytes of y once. */
#include "calculators/cpu/cpu.h"
#include "framework/operations/resample_taps.h"

#include <string.h>

enum { TASK_BYTES = 1 << 16, OUTPUT_BLOCK = 256 };

typedef struct gathering {
    const char *x;
    char *y;
    const sdlf_tensor *index;
    int64_t length, indices, row, rows, rows_per_task;
} gathering;

int64_t cpu_index_target(const sdlf_tensor *index, int64_t m, int64_t length)
{
    int64_t target = index->dtype == SDLF_INT32 ? ((const int32_t *)index->data)[m] : ((const int64_t *)index->data)[m];
    if (target < 0) target += length;
    return target >= 0 && target < length ? target : -1;
}

/* Rows first .. last - 1 of y. `row`, their size in bytes, and `wide`, for 64-bit indices, are constants for rows of one float32 element. */
static inline __attribute__((always_inline)) void gather_some(const gathering *g, int64_t first, int64_t last,
                                                              const int64_t row, const bool wide)
{
    const void *index = g->index->data;
    int64_t at = first % g->indices, length = g->length;
    const char *x = g->x + first / g->indices * length * row;
    for (int64_t i = first; i < last; i++) {
        int64_t from = wide ? ((const int64_t *)index)[at] : ((const int32_t *)index)[at];
        if (from < 0) from += length;
        if ((uint64_t)from < (uint64_t)length) {
            memcpy(g->y + i * row, x + from * row, (size_t)row);
        } else {
            memset(g->y + i * row, 0, (size_t)row);
        }
        if (++at < g->indices) continue;
        at = 0;
        x += length * row;
    }
}

static void gather_rows(void *context, int64_t task, int thread)
{
    const gathering *g = context;
    int64_t first = task * g->rows_per_task, last = cpu_min(first + g->rows_per_task, g->rows);
    bool wide = g->index->dtype != SDLF_INT32;
    (void)thread;
    if (g->row == 4 && wide) {
        gather_some(g, first, last, 4, true);
    } else if (g->row == 4) {
        gather_some(g, first, last, 4, false);
    } else {
        gather_some(g, first, last, g->row, wide);
    }
}

sdlf_status cpu_gather(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int axis = operation->index.axis;
    gathering g = {.x = x->data,
                   .y = y->data,
                   .index = &operation->in[1],
                   .length = x->shape.dim[axis],
                   .indices = sdlf_tensor_count(&operation->in[1]),
                   .row = sdlf_shape_span(x->shape, axis + 1, x->shape.rank) * (int64_t)sdlf_dtype_size(x->dtype)};
    g.rows = sdlf_shape_span(x->shape, 0, axis) * g.indices;
    if (sdlf_tensor_count(y) == 0) return SDLF_OK;
    g.rows_per_task = cpu_max(1, TASK_BYTES / g.row);
    cpu_parallel_exact(cpu_from(calculator), cpu_divide_up(g.rows, g.rows_per_task), sdlf_tensor_bytes(y) / 8,
                       gather_rows, &g);
    return SDLF_OK;
}

/* ---- resample in which each output is one input: rows are moved verbatim ---- */

typedef struct resampling {
    const char *x;
    char *y;
    sdlf_resample_options options;
    int64_t length, outputs, row, outer, outer_per_task, blocks;
} resampling;

/* Copies the rows of `row` bytes that the indices select. */
static void pick_rows(char *y, const char *x, const int64_t *index, int64_t count, int64_t row)
{
    switch (row) {
    case 1:
        for (int64_t i = 0; i < count; i++) y[i] = x[index[i]];
        break;
    case 4:
        for (int64_t i = 0; i < count; i++) memcpy(y + i * 4, x + index[i] * 4, 4);
        break;
    case 8:
        for (int64_t i = 0; i < count; i++) memcpy(y + i * 8, x + index[i] * 8, 8);
        break;
    default:
        for (int64_t i = 0; i < count; i++) memcpy(y + i * row, x + index[i] * row, (size_t)row);
        break;
    }
}

/* A task: some outer indices, one block of outputs. The source indices are computed once for all of them. */
static void resample_rows(void *context, int64_t task, int thread)
{
    const resampling *r = context;
    int64_t first = task % r->blocks * OUTPUT_BLOCK, count = cpu_min(OUTPUT_BLOCK, r->outputs - first);
    int64_t outer = task / r->blocks * r->outer_per_task, last = cpu_min(outer + r->outer_per_task, r->outer);
    int64_t index[OUTPUT_BLOCK];
    (void)thread;
    for (int64_t i = 0; i < count; i++)
        index[i] = sdlf_resample_at(&r->options, r->length, r->outputs, first + i).first;
    for (; outer < last; outer++)
        pick_rows(r->y + (outer * r->outputs + first) * r->row, r->x + outer * r->length * r->row, index, count,
                  r->row);
}

bool cpu_resample_moves(const sdlf_operation *operation)
{
    sdlf_resample_mode mode = operation->resample.mode;
    return !operation->resample.extrapolates && mode != SDLF_RESAMPLE_LINEAR && mode != SDLF_RESAMPLE_CUBIC;
}

sdlf_status cpu_resample(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int axis = operation->resample.axis;
    resampling r = {.x = x->data,
                    .y = y->data,
                    .options = operation->resample,
                    .length = x->shape.dim[axis],
                    .outputs = y->shape.dim[axis],
                    .row = sdlf_shape_span(x->shape, axis + 1, x->shape.rank) * (int64_t)sdlf_dtype_size(x->dtype)};
    if (sdlf_tensor_count(y) == 0) return SDLF_OK;
    r.outer = sdlf_shape_span(x->shape, 0, axis);
    r.blocks = cpu_divide_up(r.outputs, OUTPUT_BLOCK);
    r.outer_per_task = cpu_max(1, TASK_BYTES / (r.row * cpu_min(r.outputs, OUTPUT_BLOCK)));
    int64_t tasks = cpu_divide_up(r.outer, r.outer_per_task) * r.blocks;
    cpu_parallel_exact(cpu_from(calculator), tasks, sdlf_tensor_count(y) + 20 * r.outputs, resample_rows, &r);
    return SDLF_OK;
}
