/* gather and resample of single elements: rows of `inner` elements of any type, moved as bytes. Contracts: <sdlf/operation.h>.
 * Moves y once each way. */
#include "calculators/cpu/cpu.h"
#include "framework/operations/resample_taps.h"

#include <string.h>

enum { TASK_BYTES = 1 << 16 };

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

static void gather_rows(void *context, int64_t task, int thread)
{
    const gathering *g = context;
    int64_t last = cpu_min((task + 1) * g->rows_per_task, g->rows);
    (void)thread;
    for (int64_t row = task * g->rows_per_task; row < last; row++) {
        int64_t from = cpu_index_target(g->index, row % g->indices, g->length);
        if (from < 0) {
            memset(g->y + row * g->row, 0, (size_t)g->row);
        } else {
            memcpy(g->y + row * g->row, g->x + (row / g->indices * g->length + from) * g->row, (size_t)g->row);
        }
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

/* ---- resample, where each output is one input: rows are moved as they are ---- */

typedef struct resampling {
    const char *x;
    char *y;
    sdlf_resample_options options;
    int64_t length, outputs, row, rows, rows_per_task;
} resampling;

static void resample_rows(void *context, int64_t task, int thread)
{
    const resampling *r = context;
    int64_t last = cpu_min((task + 1) * r->rows_per_task, r->rows);
    (void)thread;
    for (int64_t row = task * r->rows_per_task; row < last; row++) {
        sdlf_resample_taps taps = sdlf_resample_at(&r->options, r->length, r->outputs, row % r->outputs);
        memcpy(r->y + row * r->row, r->x + (row / r->outputs * r->length + taps.first) * r->row, (size_t)r->row);
    }
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
    r.rows = sdlf_shape_span(x->shape, 0, axis) * r.outputs;
    r.rows_per_task = cpu_max(1, TASK_BYTES / 8 / r.row);
    cpu_parallel_exact(cpu_from(calculator), cpu_divide_up(r.rows, r.rows_per_task), 20 * r.rows, resample_rows, &r);
    return SDLF_OK;
}
