/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd for few rows of x: one pass over w. See gemm_backward_sgd.c.
 *
 * A task handles a stripe of columns and a range of rows of w, and iterates over the rows of tiles. For each tile it computes
 * dx += dy w, while the tile is in registers; the gradient g = dy^T x, which stays in registers and the first-level cache;
 * and the update of w and v. So w and v are read once and written once, in runs long enough for the hardware prefetcher. The
 * stripe's part of x and dx is packed and stays in the second-level cache. The ranges' parts of dx are added in order. */
#include "calculators/cpu/kernels/gemm_backward_sgd_skinny.h"

enum {
    STRIPE_ELEMENTS = 3 << 14, /* of x in a stripe, approximately */
    LEAST_PANELS = 4,
    MOST_PANELS = 32, /* panels of TILE_COLUMNS columns in a stripe */
    WANTED_TASKS = 16,
    RANGE_ROWS = 8 * TILE_ROWS, /* minimum rows of w in a range */
};

typedef struct backward_sgd {
    const element *x, *dy;
    element *w, *v, *dx;
    element *dy_blocks, *partial, *scratch; /* partial: (ranges, N, I); scratch: scratch_size for each thread */
    int64_t scratch_size, n, inputs, units;
    int64_t panels, stripes; /* panels of a stripe; stripes of the columns */
    int64_t rows, ranges;    /* rows of a range; ranges of the rows */
    bool wants_dx;           /* dx is not yet known when the workspace size is queried */
    sgd_rule rule;
} backward_sgd;

static backward_sgd backward_sgd_of(const sdlf_operation *operation)
{
    backward_sgd s = {.x = input(operation, 0),
                      .dy = input(operation, 1),
                      .w = output(operation, 0),
                      .v = output(operation, 1),
                      .dx = output(operation, 2),
                      .n = operation->in[0].shape.dim[0],
                      .inputs = operation->in[0].shape.dim[1],
                      .units = operation->in[1].shape.dim[1],
                      .wants_dx = sdlf_tensor_present(&operation->out[2]),
                      .rule = rule_of(operation)};
    int64_t all_panels = cpu_max(1, cpu_divide_up(s.inputs, TILE_COLUMNS));
    int64_t fitting = STRIPE_ELEMENTS / (cpu_max(1, s.n) * TILE_COLUMNS);
    s.stripes = cpu_divide_up(all_panels, cpu_max(LEAST_PANELS, cpu_min(MOST_PANELS, fitting)));
    s.panels = cpu_divide_up(all_panels, s.stripes);
    s.stripes = cpu_divide_up(all_panels, s.panels);
    int64_t ranges = cpu_min(cpu_divide_up(WANTED_TASKS, s.stripes), s.units / RANGE_ROWS);
    s.rows = cpu_round_up(cpu_max(1, cpu_divide_up(s.units, cpu_max(1, ranges))), TILE_ROWS);
    s.ranges = cpu_divide_up(s.units, s.rows);
    /* x and dx of the stripe, and three tiles */
    int64_t stripe = s.panels * cpu_round_up(s.n, LANES) * TILE_COLUMNS;
    s.scratch_size = 2 * stripe + 3 * TILE_ROWS * TILE_COLUMNS;
    return s;
}

static int64_t blocks_size(const backward_sgd *s)
{
    return cpu_round_up(s->units, TILE_ROWS) * cpu_round_up(s->n, LANES);
}

static int64_t partial_size(const backward_sgd *s)
{
    return s->wants_dx && s->ranges > 1 ? cpu_round_up(s->ranges * s->n * s->inputs, LANES) : 0;
}

/* Packs dy^T in blocks of TILE_ROWS rows. */
static void pack_gradient(void *context, int64_t index, int thread)
{
    const backward_sgd *s = context;
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

static void update_tile(const backward_sgd *s, const tile *t)
{
    for (int i = 0; i < TILE_ROWS; i++)
        update_row(&s->rule, t->w + i * t->row, t->v ? t->v + i * t->row : NULL, t->g + i * TILE_COLUMNS, TILE_COLUMNS);
}

static void compute_tile(const backward_sgd *s, const tile *t)
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

/* A tile that extends past w's edge is computed in copies: aside holds two more tiles. */
static void compute_edge(const backward_sgd *s, tile t, int64_t rows, int64_t columns, element *aside)
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

/* One row of tiles, starting at w's row u, columns [column, column + columns). */
static void backward_sgd_tiles(const backward_sgd *s, int64_t u, int64_t column, int64_t columns, element *x,
                               element *dx, element *tiles)
{
    int64_t rows = cpu_min(TILE_ROWS, s->units - u), panel = cpu_round_up(s->n, LANES) * TILE_COLUMNS;
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS, x += panel, dx += panel) {
        int64_t at = u * s->inputs + column + j, width = cpu_min(TILE_COLUMNS, columns - j);
        tile t = {.w = s->w + at,
                  .v = s->v ? s->v + at : NULL,
                  .row = s->inputs,
                  .x = x,
                  .dy = s->dy_blocks + u * s->n,
                  .dx = s->dx ? dx : NULL,
                  .g = tiles};
        if (rows < TILE_ROWS || width < TILE_COLUMNS) {
            compute_edge(s, t, rows, width, tiles + TILE_ROWS * TILE_COLUMNS);
            continue;
        }
        if (u + 2 * TILE_ROWS <= s->units) /* prefetch the tile below while this one is computed */
            fetch_rows(t.w + TILE_ROWS * t.row, t.v ? t.v + TILE_ROWS * t.row : NULL, t.row, TILE_COLUMNS);
        compute_tile(s, &t);
    }
}

static void backward_sgd_stripe(void *context, int64_t index, int thread)
{
    const backward_sgd *s = context;
    int64_t range = index / s->stripes, last = cpu_min((range + 1) * s->rows, s->units);
    int64_t column = index % s->stripes * s->panels * TILE_COLUMNS, panel = cpu_round_up(s->n, LANES) * TILE_COLUMNS;
    int64_t columns = cpu_min(s->panels * TILE_COLUMNS, s->inputs - column);
    element *x = s->scratch + thread * s->scratch_size, *dx = x + s->panels * panel, *tiles = dx + s->panels * panel;
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
        product_pack_cpu(x + j / TILE_COLUMNS * panel, TILE_COLUMNS, s->x + column + j, s->inputs, 1, s->n,
                         cpu_min(TILE_COLUMNS, columns - j));
    }
    if (s->dx) memset(dx, 0, (size_t)(s->panels * panel) * sizeof *dx);
    for (int64_t u = range * s->rows; u < last; u += TILE_ROWS) backward_sgd_tiles(s, u, column, columns, x, dx, tiles);
    if (!s->dx) return;
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
    const backward_sgd *s = context;
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

int64_t gemm_backward_sgd_skinny_workspace_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    backward_sgd s = backward_sgd_of(operation);
    return (blocks_size(&s) + partial_size(&s) + cpu->threads * s.scratch_size) * (int64_t)sizeof(element);
}

void gemm_backward_sgd_skinny_cpu(const cpu_calculator *cpu, const sdlf_operation *operation)
{
    backward_sgd s = backward_sgd_of(operation);
    s.rule.rate = input(operation, 2)[0];
    s.dy_blocks = operation->workspace.data;
    s.partial = s.dy_blocks + blocks_size(&s);
    s.scratch = s.partial + partial_size(&s);
    cpu_parallel(cpu, cpu_divide_up(s.n, PRODUCT_INNER), s.n * s.units / 2, pack_gradient, &s);
    cpu_parallel(cpu, s.stripes * s.ranges, cpu_time_of_flops(2 * cpu_max(s.n, 8) * s.inputs * s.units),
                 backward_sgd_stripe, &s);
    if (partial_size(&s) > 0)
        cpu_parallel(cpu, cpu_divide_up(s.n * s.inputs, TASK_ELEMENTS), cpu_time_of_elements(s.ranges * s.n * s.inputs),
                     add_ranges, &s);
}
