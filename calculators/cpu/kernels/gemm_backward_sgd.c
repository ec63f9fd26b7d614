/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: a fully connected layer's backward pass and its update in one sweep. Contract: <sdlf/operation.h>.
 *
 * A task takes a stripe of columns and a range of rows, and goes down w row by row of tiles. For each tile: dx += dy w, while
 * the tile is in registers; the gradient g = dy^T x, which stays in registers and the first-level cache; the update of w and
 * v. So w and v are read once and written once, in runs long enough for the machine to foresee. x's and dx's part of the stripe
 * stay in the second-level cache, packed. The ranges' parts of dx are added up in order. Above SWEEP_ROWS rows of x, where
 * arithmetic is all that counts, dx is a product of its own, which is the faster way to compute it, and w is read twice.
 *
 * 4 N U I FLOPs (2 N U I without dx), 16 U I bytes: at N = 16 on a machine that moves 60 GB/s and computes 400 GFLOP/s both
 * floors are about the same. */
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

enum {
    SWEEP_ROWS = 64,
    STRIPE_ELEMENTS = 3 << 14, /* of x in a stripe, about */
    LEAST_PANELS = 4,
    MOST_PANELS = 32, /* panels of TILE_COLUMNS columns in a stripe */
    WANTED_TASKS = 16,
    RANGE_ROWS = 8 * TILE_ROWS, /* rows of w in a range, at least */
    PRODUCT_STRIPE = PRODUCT_COLUMNS / 2,
};

typedef struct sweep {
    const element *x, *dy;
    element *w, *v, *dx;
    element *dy_blocks, *partial, *scratch; /* partial: (ranges, N, I); scratch: scratch_size for each thread */
    int64_t scratch_size, n, inputs, units;
    int64_t panels, stripes; /* panels of a stripe; stripes of the columns */
    int64_t rows, ranges;    /* rows of a range; ranges of the rows */
    element rate, momentum, decay;
    bool nesterov, fused; /* fused: dx is computed in the sweep */
} sweep;

static sweep sweep_of(const sdlf_operation *operation)
{
    sweep s = {.x = input(operation, 0),
               .dy = input(operation, 1),
               .w = output(operation, 0),
               .v = output(operation, 1),
               .dx = output(operation, 2),
               .n = operation->in[0].shape.dim[0],
               .inputs = operation->in[0].shape.dim[1],
               .units = operation->in[1].shape.dim[1],
               .momentum = (element)operation->gemm_backward.sgd.momentum,
               .decay = (element)operation->gemm_backward.sgd.decay,
               .nesterov = operation->gemm_backward.sgd.nesterov};
    int64_t all_panels = cpu_max(1, cpu_divide_up(s.inputs, TILE_COLUMNS));
    int64_t fitting = STRIPE_ELEMENTS / (cpu_max(1, s.n) * TILE_COLUMNS);
    s.stripes = cpu_divide_up(all_panels, cpu_max(LEAST_PANELS, cpu_min(MOST_PANELS, fitting)));
    s.panels = cpu_divide_up(all_panels, s.stripes);
    s.stripes = cpu_divide_up(all_panels, s.panels);
    int64_t ranges = cpu_min(cpu_divide_up(WANTED_TASKS, s.stripes), s.units / RANGE_ROWS);
    s.rows = cpu_round_up(cpu_max(1, cpu_divide_up(s.units, cpu_max(1, ranges))), TILE_ROWS);
    s.ranges = cpu_divide_up(s.units, s.rows);
    s.fused = sdlf_tensor_present(&operation->out[2]) && s.n <= SWEEP_ROWS;
    /* x and dx of the stripe, and three tiles; or what the product for dx needs */
    int64_t stripe = s.panels * cpu_round_up(s.n, LANES) * TILE_COLUMNS;
    s.scratch_size = cpu_max(2 * stripe + 3 * TILE_ROWS * TILE_COLUMNS, PRODUCT_SCRATCH);
    return s;
}

static int64_t blocks_size(const sweep *s)
{
    return cpu_round_up(s->units, TILE_ROWS) * cpu_round_up(s->n, LANES);
}

static int64_t partial_size(const sweep *s)
{
    return s->fused && s->ranges > 1 ? cpu_round_up(s->ranges * s->n * s->inputs, LANES) : 0;
}

/* The bias's update and the activation's gradient move so little that sweeps of their own cost nothing. */
bool gemm_backward_sgd_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return !sdlf_tensor_present(&operation->out[3]) && operation->gemm_backward.activation.function == SDLF_IDENTITY;
}

int64_t gemm_backward_sgd_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sweep s = sweep_of(operation);
    return (blocks_size(&s) + partial_size(&s) + cpu_from_const(calculator)->threads * s.scratch_size) *
           (int64_t)sizeof(element);
}

/* ---- beforehand ---- */

/* dy^T in blocks of TILE_ROWS rows. */
static void pack_gradient(void *context, int64_t index, int thread)
{
    const sweep *s = context;
    int64_t first = index * PRODUCT_INNER, left_over = s->units % TILE_ROWS;
    int64_t rows = cpu_min(PRODUCT_INNER, s->n - first);
    (void)thread;
    if (left_over) {
        memset(s->dy_blocks + ((s->units - left_over) * s->n + first * TILE_ROWS), 0,
               (size_t)(rows * TILE_ROWS) * sizeof(element));
    }
    product_pack_a_cpu(s->dy_blocks + first * TILE_ROWS, s->n * TILE_ROWS, s->dy + first * s->units, s->units, rows,
                       s->units);
}

static void input_gradient(void *context, int64_t index, int thread)
{
    const sweep *s = context;
    int64_t column = index * PRODUCT_STRIPE;
    product part = {.m = s->n,
                    .n = cpu_min(PRODUCT_STRIPE, s->inputs - column),
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
    product_compute_cpu(&part, s->scratch + thread * s->scratch_size);
}

/* ---- one tile: TILE_ROWS rows of TILE_COLUMNS columns ---- */

typedef struct tile {
    element *w, *v; /* v may be NULL */
    int64_t row;    /* elements from a row to the next */
    const element *x, *dy;
    element *dx; /* may be NULL */
    element *g;
} tile;

/* dx[n,:] += sum over the tile's rows of dy[n,i] w[i,:] */
static void spread_tile(const tile *t, int64_t n)
{
    vector w[TILE_ROWS][TILE_VECTORS];
    const element *dy = t->dy;
    element *dx = t->dx;
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < TILE_VECTORS; j++) w[i][j] = load(t->w + i * t->row + j * LANES);
    }
    for (int64_t k = 0; k < n; k++, dy += TILE_ROWS, dx += TILE_COLUMNS) {
        vector sum[TILE_VECTORS];
        for (int j = 0; j < TILE_VECTORS; j++) sum[j] = load(dx + j * LANES);
        for (int i = 0; i < TILE_ROWS; i++) {
            for (int j = 0; j < TILE_VECTORS; j++) sum[j] += dy[i] * w[i][j];
        }
        for (int j = 0; j < TILE_VECTORS; j++) store(dx + j * LANES, sum[j]);
    }
}

/* The formulas of sgd_update. */
static void update_tile(const sweep *s, const tile *t)
{
    vector rate = broadcast(s->rate), momentum = broadcast(s->momentum), decay = broadcast(s->decay);
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < TILE_VECTORS; j++) {
            element *w = t->w + i * t->row + j * LANES, *v = t->v ? t->v + i * t->row + j * LANES : NULL;
            vector weight = load(w), step = load(t->g + i * TILE_COLUMNS + j * LANES) + decay * weight;
            if (t->v) {
                vector velocity = momentum * load(v) + step;
                store(v, velocity);
                step = s->nesterov ? step + momentum * velocity : velocity;
            }
            store(w, weight - rate * step);
        }
    }
}

static void compute_tile(const sweep *s, const tile *t)
{
    if (t->dx) spread_tile(t, s->n);
    micro_step gradient = {.k = s->n,
                           .alpha = 1,
                           .a = t->dy,
                           .a_row = 1,
                           .a_step = TILE_ROWS,
                           .b = t->x,
                           .b_step = TILE_COLUMNS,
                           .c = t->g,
                           .c_row = TILE_COLUMNS};
    product_tile_cpu(TILE_ROWS, TILE_VECTORS, &gradient);
    update_tile(s, t);
}

/* A tile that hangs over w's edge is computed in copies: aside holds two more tiles. */
static void compute_edge(const sweep *s, tile t, int64_t rows, int64_t columns, element *aside)
{
    element *w = t.w, *v = t.v, *copy_w = aside, *copy_v = aside + TILE_ROWS * TILE_COLUMNS;
    memset(aside, 0, 2 * TILE_ROWS * TILE_COLUMNS * sizeof *aside);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(copy_w + i * TILE_COLUMNS, w + i * t.row, (size_t)columns * sizeof *w);
        if (v) memcpy(copy_v + i * TILE_COLUMNS, v + i * t.row, (size_t)columns * sizeof *v);
    }
    int64_t row = t.row;
    t.w = copy_w;
    t.v = v ? copy_v : NULL;
    t.row = TILE_COLUMNS;
    compute_tile(s, &t);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(w + i * row, copy_w + i * TILE_COLUMNS, (size_t)columns * sizeof *w);
        if (v) memcpy(v + i * row, copy_v + i * TILE_COLUMNS, (size_t)columns * sizeof *v);
    }
}

/* ---- a stripe ---- */

/* The tile below, while this one is computed: its rows are wide apart, and the machine does not foresee them. */
static inline void fetch_tile(const sweep *s, int64_t at)
{
    for (int64_t i = 0; i < TILE_ROWS; i++, at += s->inputs) {
        for (int64_t j = 0; j < TILE_COLUMNS; j += 64 / (int64_t)sizeof(element)) {
            __builtin_prefetch(s->w + at + j, 1);
            if (s->v) __builtin_prefetch(s->v + at + j, 1);
        }
    }
}

/* One row of tiles, from w's row u on, columns [column, column + columns). */
static void sweep_tiles(const sweep *s, int64_t u, int64_t column, int64_t columns, element *x, element *dx,
                        element *tiles)
{
    int64_t rows = cpu_min(TILE_ROWS, s->units - u), panel = cpu_round_up(s->n, LANES) * TILE_COLUMNS;
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS, x += panel, dx += panel) {
        int64_t at = u * s->inputs + column + j, width = cpu_min(TILE_COLUMNS, columns - j);
        tile t = {.w = s->w + at,
                  .v = s->v ? s->v + at : NULL,
                  .row = s->inputs,
                  .x = x,
                  .dy = s->dy_blocks + u * s->n,
                  .dx = s->fused ? dx : NULL,
                  .g = tiles};
        if (rows < TILE_ROWS || width < TILE_COLUMNS) {
            compute_edge(s, t, rows, width, tiles + TILE_ROWS * TILE_COLUMNS);
            continue;
        }
        if (u + 2 * TILE_ROWS <= s->units) fetch_tile(s, at + TILE_ROWS * s->inputs);
        compute_tile(s, &t);
    }
}

static void sweep_stripe(void *context, int64_t index, int thread)
{
    const sweep *s = context;
    int64_t range = index / s->stripes, last = cpu_min((range + 1) * s->rows, s->units);
    int64_t column = index % s->stripes * s->panels * TILE_COLUMNS, panel = cpu_round_up(s->n, LANES) * TILE_COLUMNS;
    int64_t columns = cpu_min(s->panels * TILE_COLUMNS, s->inputs - column);
    element *x = s->scratch + thread * s->scratch_size, *dx = x + s->panels * panel, *tiles = dx + s->panels * panel;
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
        product_pack_cpu(x + j / TILE_COLUMNS * panel, TILE_COLUMNS, s->x + column + j, s->inputs, 1, s->n,
                         cpu_min(TILE_COLUMNS, columns - j));
    }
    if (s->fused) memset(dx, 0, (size_t)(s->panels * panel) * sizeof *dx);
    for (int64_t u = range * s->rows; u < last; u += TILE_ROWS) sweep_tiles(s, u, column, columns, x, dx, tiles);
    if (!s->fused) return;
    element *to = s->ranges > 1 ? s->partial + range * s->n * s->inputs : s->dx;
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS, dx += panel) {
        for (int64_t n = 0; n < s->n; n++) {
            memcpy(to + n * s->inputs + column + j, dx + n * TILE_COLUMNS,
                   (size_t)cpu_min(TILE_COLUMNS, columns - j) * sizeof *dx);
        }
    }
}

static void add_ranges(void *context, int64_t index, int thread)
{
    const sweep *s = context;
    int64_t first = index * TASK_ELEMENTS, all = s->n * s->inputs, count = cpu_min(TASK_ELEMENTS, all - first);
    element *dx = s->dx + first;
    (void)thread;
    memcpy(dx, s->partial + first, (size_t)count * sizeof *dx);
    for (int64_t range = 1; range < s->ranges; range++) {
        const element *more = s->partial + range * all + first;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) dx[i] += more[i];
    }
}

sdlf_status gemm_backward_sgd_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sweep s = sweep_of(operation);
    const cpu_calculator *cpu = cpu_from(calculator);
    s.rate = input(operation, 2)[0];
    s.dy_blocks = operation->workspace.data;
    s.partial = s.dy_blocks + blocks_size(&s);
    s.scratch = s.partial + partial_size(&s);
    if (s.units == 0) {
        if (s.dx) memset(s.dx, 0, (size_t)(s.n * s.inputs) * sizeof *s.dx);
        return SDLF_OK;
    }
    int64_t product_time = cpu_time_of_flops(2 * cpu_max(s.n, 8) * s.inputs * s.units);
    cpu_parallel(cpu, cpu_divide_up(s.n, PRODUCT_INNER), s.n * s.units / 2, pack_gradient, &s);
    if (s.dx && !s.fused) cpu_parallel(cpu, cpu_divide_up(s.inputs, PRODUCT_STRIPE), product_time, input_gradient, &s);
    cpu_parallel(cpu, s.stripes * s.ranges, product_time, sweep_stripe, &s);
    if (partial_size(&s) > 0)
        cpu_parallel(cpu, cpu_divide_up(s.n * s.inputs, TASK_ELEMENTS), cpu_time_of_elements(s.ranges * s.n * s.inputs),
                     add_ranges, &s);
    return SDLF_OK;
}
