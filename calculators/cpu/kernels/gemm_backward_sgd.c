/* gemm_backward_sgd: a fully connected layer's backward pass and its update in one sweep. Contract: <sdlf/operation.h>.
 *
 * A task takes a stripe of columns of w, all U rows of it. First dx = dy w for these columns: reading w brings the stripe
 * (0.4 MB of 1024 rows) into the second-level cache. Then, tile by tile, the gradient g = dy^T x, which never leaves the
 * first-level cache, and with it the update of w and v. So w and v are read from memory once and written once, and no task
 * shares an output with another. 4 N U I FLOPs (2 N U I without dx), 16 U I bytes: at N = 16 on a machine that moves 60 GB/s and
 * computes 400 GFLOP/s both floors are about the same; above, arithmetic counts. dy^T is packed beforehand. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

enum { STRIPE_COLUMNS = PRODUCT_COLUMNS / 2 };

typedef struct sweep {
    const element *x, *dy;
    element *w, *v, *dx;
    element *dy_blocks, *scratch; /* scratch: scratch_size for each thread */
    int64_t scratch_size, n, inputs, units;
    element rate, momentum, decay;
    bool nesterov;
} sweep;

static sweep sweep_of(const sdlf_operation *operation)
{
    return (sweep){.x = input(operation, 0),
                   .dy = input(operation, 1),
                   .w = output(operation, 0),
                   .v = output(operation, 1),
                   .dx = output(operation, 2),
                   .n = operation->in[0].shape.dim[0],
                   .inputs = operation->in[0].shape.dim[1],
                   .units = operation->in[1].shape.dim[1],
                   .momentum = (element)operation->sgd.momentum,
                   .decay = (element)operation->sgd.decay,
                   .nesterov = operation->sgd.nesterov};
}

static int64_t blocks_size(const sweep *s)
{
    return cpu_round_up(s->units, TILE_ROWS) * cpu_round_up(s->n, LANES);
}

/* A panel of x, a tile of g, and what the product for dx needs. */
static int64_t scratch_size(const sweep *s)
{
    return cpu_round_up(s->n, LANES) * TILE_COLUMNS + TILE_ROWS * TILE_COLUMNS + PRODUCT_SCRATCH;
}

int64_t gemm_backward_sgd_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sweep s = sweep_of(operation);
    return (blocks_size(&s) + cpu_from_const(calculator)->threads * scratch_size(&s)) * (int64_t)sizeof(element);
}

static void pack_gradient(void *context, int64_t index, int thread)
{
    const sweep *s = context;
    int64_t first = index * PRODUCT_INNER;
    (void)thread;
    product_pack_a_cpu(s->dy_blocks + first * TILE_ROWS, s->n * TILE_ROWS, s->dy + first * s->units, s->units,
                       cpu_min(PRODUCT_INNER, s->n - first), s->units);
}

static void input_gradient(const sweep *s, int64_t column, int64_t columns, element *scratch)
{
    product part = {.m = s->n,
                    .n = columns,
                    .k = s->units,
                    .alpha = 1,
                    .a = s->dy,
                    .a_row = s->units,
                    .a_step = 1,
                    .b = s->w + column,
                    .b_step = s->inputs,
                    .b_column = 1,
                    .c = s->dx + column,
                    .c_row = s->inputs};
    product_compute_cpu(&part, scratch);
}

/* One row of a tile: the formulas of sgd_update. */
static inline void update_row(const sweep *s, element *w, element *v, const element *g, int64_t columns)
{
    element rate = s->rate, momentum = s->momentum, decay = s->decay;
    if (!v) {
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) w[j] -= rate * (g[j] + decay * w[j]);
    } else if (s->nesterov) {
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) {
            element gradient = g[j] + decay * w[j];
            v[j] = momentum * v[j] + gradient;
            w[j] -= rate * (gradient + momentum * v[j]);
        }
    } else {
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) {
            v[j] = momentum * v[j] + (g[j] + decay * w[j]);
            w[j] -= rate * v[j];
        }
    }
}

/* Rows of the tiles to come, each on a page of its own: the machine does not foresee them. */
static inline void fetch_rows(const sweep *s, int64_t at)
{
    for (int64_t i = 0; i < TILE_ROWS; i++, at += s->inputs) {
        for (int64_t j = 0; j < TILE_COLUMNS; j += 64 / (int64_t)sizeof(element)) {
            __builtin_prefetch(s->w + at + j, 1);
            if (s->v) __builtin_prefetch(s->v + at + j, 1);
        }
    }
}

/* A panel of at most TILE_COLUMNS columns: gradient and update, tile by tile. */
static void update_panel(const sweep *s, int64_t column, int64_t columns, element *scratch)
{
    element *x = scratch, *g = scratch + cpu_round_up(s->n, LANES) * TILE_COLUMNS;
    int64_t vectors = cpu_divide_up(columns, LANES), rows;
    product_pack_cpu(x, vectors * LANES, s->x + column, s->inputs, 1, s->n, columns);
    for (int64_t u = 0; u < s->units; u += rows) {
        int64_t within = u % TILE_ROWS, at = u * s->inputs + column;
        for (rows = TILE_ROWS; rows > s->units - u;) rows /= 2;
        if (u + 2 * TILE_ROWS < s->units) fetch_rows(s, at + TILE_ROWS * s->inputs);
        micro_step step = {.k = s->n,
                           .alpha = 1,
                           .a = s->dy_blocks + (u - within) * s->n + within,
                           .a_row = 1,
                           .a_step = TILE_ROWS,
                           .b = x,
                           .b_step = vectors * LANES,
                           .c = g,
                           .c_row = TILE_COLUMNS};
        product_tile_cpu(rows, vectors, &step);
        for (int64_t i = 0; i < rows; i++, at += s->inputs) {
            update_row(s, s->w + at, s->v ? s->v + at : NULL, g + i * TILE_COLUMNS, columns);
        }
    }
}

static void sweep_stripe(void *context, int64_t index, int thread)
{
    const sweep *s = context;
    int64_t column = index * STRIPE_COLUMNS, columns = cpu_min(STRIPE_COLUMNS, s->inputs - column);
    element *scratch = s->scratch + thread * s->scratch_size;
    if (s->dx) input_gradient(s, column, columns, scratch + s->scratch_size - PRODUCT_SCRATCH);
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
        update_panel(s, column + j, cpu_min(TILE_COLUMNS, columns - j), scratch);
    }
}

sdlf_status gemm_backward_sgd_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sweep s = sweep_of(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    s.rate = input(operation, 2)[0];
    s.dy_blocks = operation->workspace.data;
    s.scratch_size = scratch_size(&s);
    s.scratch = s.dy_blocks + blocks_size(&s);
    cpu_parallel(cpu, cpu_divide_up(s.n, PRODUCT_INNER), pack_gradient, &s);
    cpu_parallel(cpu, cpu_divide_up(s.inputs, STRIPE_COLUMNS), sweep_stripe, &s);
    return SDLF_OK;
}
