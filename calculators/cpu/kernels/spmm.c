/* SPDX-License-Identifier: MIT */
/* spmm_csr: y = f(a x + bias), a in CSR. Contract: <sdlf/operation.h>.
 *
 * For each of the E stored elements a row of x is read: E F elements in an order that the hardware prefetcher cannot predict. So
 * the rows of x are prefetched some elements ahead, by their column indices, into the second-level cache, which supports more
 * outstanding requests than the first. They keep that cache's queue so full that the hardware prefetches of a's own columns and
 * values arrive late: so these are prefetched in software too, well before the columns are needed to prefetch rows. Bytes: a
 * once, y once, and the rows of x, from whichever cache holds them. Accumulators stay in registers, a block of columns at a time.
 *
 * The work of a row is its element count plus one. Tasks are cut where the running sum passes multiples of CHUNK: by the matrix,
 * not by the number of threads; a thread's tasks are consecutive, so that it benefits from its own prefetches. A row of more than
 * CHUNK elements is left to a second round, in which the row itself is partitioned, and its parts are added in order: a row with
 * a tenth of all elements costs no more than its share. */
#include "calculators/cpu/kernels/activate.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/log_softmax.h"

enum {
    CHUNK = 8192,      /* elements and rows of a task */
    AHEAD = 64,        /* prefetch distance of the rows of x, in elements of a */
    STREAM = 1024,     /* prefetch distance of columns and values */
    BLOCK_VECTORS = 4, /* vectors of columns whose accumulators are in registers */
    FINISH_ROWS = 64,  /* rows whose epilogue is computed together */
    LINE = 64 / sizeof(element),
    COLUMN_LINE = 64 / sizeof(int32_t),
};

typedef struct spmm_context {
    const int64_t *offsets;
    const int32_t *columns;
    const element *values, *x, *bias;
    element *y;
    int64_t rows, stored, width, x_count;
    bool log_softmax;
    sdlf_activation activation;
    int64_t *long_rows; /* of each task: the row that it skipped; -1: none */
    element *parts;     /* the second round's partial sums: `width` for each part */
    int64_t row;        /* the row of the second round */
} spmm_context;

static int64_t task_count(const sdlf_tensor *a)
{
    return cpu_divide_up(a->stored + a->shape.dim[0], CHUNK);
}

static int64_t part_count(int64_t elements)
{
    return cpu_divide_up(elements, CHUNK);
}

/* The first row for which the work of the rows before it is at least `work`. */
static int64_t row_at(const spmm_context *spmm, int64_t work)
{
    int64_t low = 0, high = spmm->rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (spmm->offsets[middle] + middle < work)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- sums ---- */

static inline __attribute__((always_inline)) void prefetch_row(const element *x, const int count)
{
    for (int i = 0; i < count; i += LINE) __builtin_prefetch(x + i, 0, 2);
}

/* Prefetches the columns and values STREAM elements after [first, last), a row's: consecutive rows leave no gaps. */
static inline __attribute__((always_inline)) void prefetch_elements(const int32_t *columns, const element *values,
                                                                    int64_t first, int64_t last)
{
    for (int64_t e = first + STREAM; e < last + STREAM; e += COLUMN_LINE) __builtin_prefetch(columns + e, 0, 2);
    for (int64_t e = first + STREAM; e < last + STREAM; e += LINE) __builtin_prefetch(values + e, 0, 2);
}

/* Rows [first, last) for an x that is exactly `vectors` (a compile-time constant) vectors wide. */
static inline __attribute__((always_inline)) void sum_whole_rows(const int vectors, const spmm_context *spmm,
                                                                 int64_t first, int64_t last)
{
    enum { MOST = BLOCK_VECTORS };
    vector start[MOST], sum[MOST];
    const int64_t *offsets = spmm->offsets;
    const int32_t *columns = spmm->columns;
    const element *x = spmm->x, *values = spmm->values;
    int64_t e = offsets[first], stored = spmm->stored;
    for (int v = 0; v < vectors; v++) start[v] = spmm->bias ? load(spmm->bias + v * LANES) : (vector){0};
    for (int64_t row = first; row < last; row++) {
        int64_t end = offsets[row + 1];
        prefetch_elements(columns, values, e, end);
        for (int v = 0; v < vectors; v++) sum[v] = start[v];
        for (; e < end; e++) {
            const element *from = x + (int64_t)columns[e] * (vectors * LANES), value = values[e];
            if (e + AHEAD < stored) prefetch_row(x + (int64_t)columns[e + AHEAD] * (vectors * LANES), vectors * LANES);
            for (int v = 0; v < vectors; v++) sum[v] += value * load(from + v * LANES);
        }
        for (int v = 0; v < vectors; v++) store(spmm->y + (row * vectors + v) * LANES, sum[v]);
    }
}

/* Columns [j, j + vectors LANES) of the sum over elements [first, last), added to `start` (NULL: zeros). */
static inline __attribute__((always_inline)) void sum_block(const int vectors, element *to, const spmm_context *spmm,
                                                            int64_t first, int64_t last, int64_t j,
                                                            const element *start)
{
    vector sum[BLOCK_VECTORS];
    const element *x = spmm->x + j;
    const int32_t *columns = spmm->columns;
    int64_t width = spmm->width, end = spmm->stored;
    for (int v = 0; v < vectors; v++) sum[v] = start ? load(start + j + v * LANES) : (vector){0};
    for (int64_t e = first; e < last; e++) {
        const element *row = x + columns[e] * width, value = spmm->values[e];
        if (e + AHEAD < end) prefetch_row(x + columns[e + AHEAD] * width, vectors * LANES);
        for (int v = 0; v < vectors; v++) sum[v] += value * load(row + v * LANES);
    }
    for (int v = 0; v < vectors; v++) store(to + j + v * LANES, sum[v]);
}

/* All columns, if they are fewer than LANES. Lanes past the end of a row hold elements of the next rows and are
 * discarded; where x ends before the vector does, the row is copied. */
static void sum_narrow(element *to, const spmm_context *spmm, int64_t first, int64_t last, const element *start)
{
    vector sum = {0};
    element part[LANES] = {0};
    int64_t width = spmm->width, end = spmm->stored, whole = spmm->x_count - LANES;
    if (start) memcpy(&sum, start, (size_t)width * sizeof *start);
    for (int64_t e = first; e < last; e++) {
        int64_t at = spmm->columns[e] * width;
        const element *row = spmm->x + at, value = spmm->values[e];
        if (e + AHEAD < end) __builtin_prefetch(spmm->x + spmm->columns[e + AHEAD] * width, 0, 2);
        if (at > whole) row = memcpy(part, row, (size_t)width * sizeof *row);
        sum += value * load(row);
    }
    memcpy(to, &sum, (size_t)width * sizeof *to);
}

/* to[0 .. width - 1] = start + the sum over elements [first, last). The last block may overlap the one before it: both
 * compute the same sums. */
static void sum_elements(element *to, const spmm_context *spmm, int64_t first, int64_t last, const element *start)
{
    int64_t j = 0, width = spmm->width;
    if (width < LANES) {
        sum_narrow(to, spmm, first, last, start);
        return;
    }
    for (; j + 4 * LANES <= width; j += 4 * LANES) sum_block(4, to, spmm, first, last, j, start);
    for (; j + 2 * LANES <= width; j += 2 * LANES) sum_block(2, to, spmm, first, last, j, start);
    if (j + LANES <= width) sum_block(1, to, spmm, first, last, j, start), j += LANES;
    if (j < width) sum_block(1, to, spmm, first, last, width - LANES, start);
}

static void sum_row_range(const spmm_context *spmm, int64_t first, int64_t last)
{
    switch (spmm->width) {
    case LANES: sum_whole_rows(1, spmm, first, last); return;
    case 2 * LANES: sum_whole_rows(2, spmm, first, last); return;
    case 4 * LANES: sum_whole_rows(4, spmm, first, last); return;
    default: break;
    }
    for (int64_t row = first; row < last; row++) {
        int64_t e = spmm->offsets[row], end = spmm->offsets[row + 1];
        prefetch_elements(spmm->columns, spmm->values, e, end);
        sum_elements(spmm->y + row * spmm->width, spmm, e, end, spmm->bias);
    }
}

/* ---- epilogues ---- */

static void finish_rows(const spmm_context *spmm, int64_t first, int64_t last)
{
    element *y = spmm->y + first * spmm->width;
    if (spmm->log_softmax)
        log_softmax_rows_cpu(y, y, last - first, spmm->width);
    else if (spmm->activation.function != SDLF_IDENTITY)
        activate_cpu(y, y, (last - first) * spmm->width, &spmm->activation);
}

/* ---- first round: rows of at most CHUNK elements ---- */

static int64_t elements_of(const spmm_context *spmm, int64_t row)
{
    return spmm->offsets[row + 1] - spmm->offsets[row];
}

static void sum_rows(void *context, int64_t index, int thread)
{
    const spmm_context *spmm = context;
    int64_t row = row_at(spmm, index * CHUNK), end = row_at(spmm, (index + 1) * CHUNK);
    int64_t finished = spmm->log_softmax ? LANES : FINISH_ROWS;
    (void)thread;
    spmm->long_rows[index] = -1;
    while (row < end) {
        int64_t first = row;
        while (row < end && row < first + finished && elements_of(spmm, row) <= CHUNK) row++;
        sum_row_range(spmm, first, row);
        finish_rows(spmm, first, row);
        if (row < end && elements_of(spmm, row) > CHUNK)
            spmm->long_rows[index] = row++; /* no other long row begins in this task */
    }
}

/* ---- second round: a long row in parts ---- */

static void sum_part(void *context, int64_t index, int thread)
{
    const spmm_context *spmm = context;
    int64_t first = spmm->offsets[spmm->row] + index * CHUNK;
    (void)thread;
    sum_elements(spmm->parts + index * spmm->width, spmm, first, cpu_min(first + CHUNK, spmm->offsets[spmm->row + 1]),
                 index == 0 ? spmm->bias : NULL);
}

static void compute_long_row(const cpu_calculator *cpu, spmm_context *spmm, int64_t row)
{
    int64_t elements = elements_of(spmm, row), parts = part_count(elements);
    element *y = spmm->y + row * spmm->width;
    spmm->row = row;
    cpu_parallel(cpu, parts, cpu_time_of_elements(elements * spmm->width), sum_part, spmm);
    memcpy(y, spmm->parts, (size_t)spmm->width * sizeof *y);
    for (int64_t part = 1; part < parts; part++) {
        for (int64_t j = 0; j < spmm->width; j++) y[j] += spmm->parts[part * spmm->width + j];
    }
    finish_rows(spmm, row, row + 1);
}

int64_t spmm_csr_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0];
    (void)calculator;
    int64_t parts = a->stored > CHUNK ? part_count(a->stored) : 0;
    return cpu_round_up(task_count(a) * (int64_t)sizeof(int64_t), 64) +
           parts * operation->out[0].shape.dim[1] * (int64_t)sizeof(element);
}

sdlf_status spmm_csr_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    const sdlf_tensor *a = &operation->in[0], *y = &operation->out[0];
    int64_t tasks = task_count(a);
    if (sdlf_tensor_count(y) == 0) return SDLF_OK;
    spmm_context spmm = {.offsets = sdlf_csr_offsets(a),
                         .columns = sdlf_csr_columns(a),
                         .values = sdlf_csr_values(a),
                         .x = input(operation, 1),
                         .bias = input(operation, 2),
                         .y = output(operation, 0),
                         .rows = a->shape.dim[0],
                         .stored = a->stored,
                         .width = y->shape.dim[1],
                         .x_count = sdlf_tensor_count(&operation->in[1]),
                         .log_softmax = operation->spmm.log_softmax,
                         .activation = operation->spmm.activation,
                         .long_rows = operation->workspace.data};
    spmm.parts = (element *)((char *)spmm.long_rows + cpu_round_up(tasks * (int64_t)sizeof(int64_t), 64));
    cpu_parallel_static(cpu, tasks, cpu_time_of_elements((spmm.stored + spmm.rows) * spmm.width), sum_rows, &spmm);
    for (int64_t task = 0; task < tasks; task++) {
        if (spmm.long_rows[task] >= 0) compute_long_row(cpu, &spmm, spmm.long_rows[task]);
    }
    return SDLF_OK;
}
