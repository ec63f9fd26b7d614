/* SPDX-License-Identifier: MIT */
/* gemm for a tall a and a narrow b: c = act(alpha a op(b) + bias), a (m,k) with a large m, b (k,n) with n of a few
 * vectors: the shape of features of many nodes or samples. Contract: <sdlf/operation.h>.
 *
 * 2 m n k FLOPs against (k + n) m elements moved: at n = 16, it is bound by the bandwidth of a. So a is read from
 * memory once, in storage order, and from then on from the first-level cache. Its lines are prefetched twice, one line
 * for each that is used, so that requests are evenly spaced: FAR ahead to the second level, which can hold many
 * requests at once, and NEAR ahead to the first. b is packed once, into panels of whole vectors that stay in the
 * second-level cache; the accumulators of TALL_ROWS rows and a panel's columns stay in registers.
 *
 * A task is a run of rows, and a thread's next task follows it, so that prefetches past a task's end serve the thread
 * itself; the accumulators of every row add in the order of k. */
#include "calculators/cpu/kernels/gemm_tall_skinny.h"

#include "calculators/cpu/kernels/activate.h"

/* The register tile. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { TALL_ROWS = 8, PANEL_VECTORS = 3 };
#else
enum { TALL_ROWS = 4, PANEL_VECTORS = 2 };
#endif
enum {
    PANEL = PANEL_VECTORS * LANES,
    LINE = 64 / sizeof(element),
    NEAR = 4096 / sizeof(element),                /* prefetch distance to the first-level cache */
    FAR = 24576 / sizeof(element),                /* and to the second-level cache */
    TASK_SIZE = (1 << 19) / sizeof(element),      /* of a, for a task */
    COLUMNS_MAXIMUM = 256 / sizeof(element),      /* of b: beyond, the kernel is compute-bound */
    PACKED_MAXIMUM = (1 << 17) / sizeof(element), /* of b, packed */
    TALL = 16,                                    /* minimum m / (n + 64) */
};

typedef struct tall_context {
    const element *a, *packed, *bias; /* bias: padded with zeros to whole vectors */
    element *c;
    int64_t m, n, k, task_rows;
    element alpha;
    sdlf_activation activation;
} tall_context;

static int64_t padded(int64_t columns)
{
    return cpu_round_up(columns, LANES);
}

bool gemm_tall_skinny_fits_cpu(const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *c = &operation->out[0];
    if (operation->gemm.transpose_a || sdlf_tensor_present(&operation->in[3])) return false;
    int64_t n = c->shape.dim[1], k = a->shape.dim[1];
    return n > 0 && k > 0 && n <= COLUMNS_MAXIMUM && k <= PACKED_MAXIMUM / padded(n);
}

bool gemm_tall_skinny_pays_cpu(const sdlf_operation *operation)
{
    const sdlf_tensor *c = &operation->out[0];
    return gemm_tall_skinny_fits_cpu(operation) && c->shape.dim[0] / TALL >= c->shape.dim[1] + 64;
}

int64_t gemm_tall_skinny_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    int64_t k = operation->in[0].shape.dim[1];
    return (k + 1) * padded(operation->out[0].shape.dim[1]) * (int64_t)sizeof(element);
}

/* Packs columns [j, j + PANEL) of b, row by row, then the next panel; zeros past the last column. The bias follows. */
static void pack(element *packed, const sdlf_operation *operation, int64_t n, int64_t k)
{
    const element *b = input(operation, 1), *bias = input(operation, 2);
    int64_t step = operation->gemm.transpose_b ? 1 : n, column = operation->gemm.transpose_b ? k : 1;
    memset(packed, 0, (size_t)((k + 1) * padded(n)) * sizeof *packed);
    for (int64_t first = 0; first < n; first += PANEL) {
        int64_t columns = cpu_min(PANEL, n - first), width = padded(columns);
        element *panel = packed + first * k;
        for (int64_t p = 0; p < k; p++) {
            for (int64_t j = 0; j < columns; j++) panel[p * width + j] = b[p * step + (first + j) * column];
        }
    }
    if (bias != NULL) memcpy(packed + k * padded(n), bias, (size_t)n * sizeof *bias);
}

/* Multiplies element q of each row of a with a row of b. */
static inline __attribute__((always_inline)) void add_products(const int rows, const int vectors,
                                                               vector sum[][PANEL_VECTORS], const element *const *a,
                                                               int q, const element *b)
{
    vector b_row[PANEL_VECTORS];
    for (int v = 0; v < vectors; v++) b_row[v] = load(b + v * LANES);
    for (int i = 0; i < rows; i++) {
        element x = a[i][q];
        for (int v = 0; v < vectors; v++) sum[i][v] += x * b_row[v];
    }
}

/* Columns [column, column + vectors LANES) of `rows` rows: compile-time constants at every call. */
static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, const tall_context *tall,
                                                       int64_t row, int64_t column)
{
    /* The k-step consumes one cache line of a, or two in float32, since advancing the row pointers costs time too. */
    const int step = rows > 1 ? (IS_FLOAT ? 2 : 1) * LINE / rows : LINE;
    vector sum[TALL_ROWS][PANEL_VECTORS];
    int64_t k = tall->k, left = k;
    const element *a[TALL_ROWS], *b = tall->packed + column * k, *ahead = tall->a + row * k;
    for (int i = 0; i < rows; i++) {
        a[i] = tall->a + (row + i) * k;
        for (int v = 0; v < vectors; v++) sum[i][v] = (vector){0};
    }
    for (; left >= step; left -= step, b += step * vectors * LANES) {
        for (int i = 0; i < step * rows / LINE; i++, ahead += LINE) {
            __builtin_prefetch(ahead + NEAR);
            __builtin_prefetch(ahead + FAR, 0, 2);
        }
        for (int q = 0; q < step; q++) add_products(rows, vectors, sum, a, q, b + q * vectors * LANES);
        for (int i = 0; i < rows; i++) a[i] += step;
    }
    if (left > 0) {
        for (int i = 0; i < rows; i++) a[i] = tall->a + (row + i) * k + k - left;
        for (int q = 0; q < left; q++, b += vectors * LANES) add_products(rows, vectors, sum, a, q, b);
    }
    const element *bias = tall->bias + column;
    int64_t columns = cpu_min(vectors * LANES, tall->n - column);
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) sum[i][v] = tall->alpha * sum[i][v] + load(bias + v * LANES);
    }
    element *c = tall->c + row * tall->n + column;
    if (columns == vectors * LANES) {
        for (int i = 0; i < rows; i++, c += tall->n) {
            for (int v = 0; v < vectors; v++) store(c + v * LANES, sum[i][v]);
        }
        return;
    }
    for (int i = 0; i < rows; i++, c += tall->n) {
        element whole[PANEL];
        for (int v = 0; v < vectors; v++) store(whole + v * LANES, sum[i][v]);
        memcpy(c, whole, (size_t)columns * sizeof *c);
    }
}

static inline __attribute__((always_inline)) void tile_rows(const int rows, const tall_context *tall, int64_t row)
{
    for (int64_t column = 0; column < tall->n; column += PANEL) {
        int64_t vectors = cpu_divide_up(cpu_min(PANEL, tall->n - column), LANES);
        if (PANEL_VECTORS == 3 && vectors == 3)
            tile(rows, PANEL_VECTORS, tall, row, column);
        else if (vectors == 2)
            tile(rows, 2, tall, row, column);
        else
            tile(rows, 1, tall, row, column);
    }
}

static void tall_task(void *context, int64_t index, int thread)
{
    const tall_context *tall = context;
    int64_t first = index * tall->task_rows, last = cpu_min(first + tall->task_rows, tall->m), row = first;
    (void)thread;
    for (; row + TALL_ROWS <= last; row += TALL_ROWS) tile_rows(TALL_ROWS, tall, row);
    for (; row < last; row++) tile_rows(1, tall, row);
    element *c = tall->c + first * tall->n;
    if (tall->activation.function != SDLF_IDENTITY) activate_cpu(c, c, (last - first) * tall->n, &tall->activation);
}

sdlf_status gemm_tall_skinny_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *a = &operation->in[0], *c = &operation->out[0];
    int64_t m = c->shape.dim[0], n = c->shape.dim[1], k = a->shape.dim[1];
    element *packed = operation->workspace.data;
    if (m == 0) return SDLF_OK;
    pack(packed, operation, n, k);
    tall_context tall = {.a = a->data,
                         .packed = packed,
                         .bias = packed + k * padded(n),
                         .c = c->data,
                         .m = m,
                         .n = n,
                         .k = k,
                         .task_rows = cpu_max(TALL_ROWS, TASK_SIZE / k / TALL_ROWS * TALL_ROWS),
                         .alpha = (element)operation->gemm.alpha,
                         .activation = operation->gemm.activation};
    cpu_parallel_static(cpu_from(calculator), cpu_divide_up(m, tall.task_rows), cpu_time_of_flops(2 * m * n * k),
                        tall_task, &tall);
    return SDLF_OK;
}
