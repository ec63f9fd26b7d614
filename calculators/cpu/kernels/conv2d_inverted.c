/* conv2d_inverted_residual_forward: a 1x1 convolution, the depthwise one behind it and the 1x1 convolution behind that, channels last.
 * Contract: <sdlf/operation.h>.
 *
 * A task takes some rows of an image's outputs. Row by row, it expands the rows of x that the window reaches further than for the row
 * before, filters them into one row, and projects that: what lies between stays in the second-level cache. Rows that the windows of two
 * tasks reach are expanded by both. Products are implicit GEMM's tiles. 2 N M (H W C + P Q R S + P Q K) FLOPs; x and y are moved once.
 *
 * Taken where what lies between is large: else it stays in the cache anyway, and three steps are shared out more evenly. */
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/implicit_panels.h"
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/kernels.h"

enum { LEAST_BETWEEN = 1 << 20, TASKS = 8 }; /* bytes of an image; its tasks */

/* One of the 1x1 convolutions: its sizes, weights, and what follows. */
typedef struct pointwise {
    convolution v;
    implicit_panels panels;
    const element *packed, *bias;
    const sdlf_activation *activation;
} pointwise;

typedef struct block {
    convolution v; /* the depthwise one */
    bool expands;
    pointwise expand, project;
    const element *filters, *filter_bias; /* the depthwise one's */
    sdlf_activation filtered;
    const element *x, *residual;
    element *y, *scratch;
    int64_t tasks, reached; /* of an image; rows of x that a task reaches, at most */
    int64_t each;           /* elements of a thread's scratch space */
} block;

static pointwise pointwise_of(int64_t c, int64_t k)
{
    pointwise one = {.v = {.n = 1, .groups = 1, .c = c, .k = k, .r = 1, .s = 1, .r_s = 1, .taps = c}};
    one.panels = implicit_panels_of(&one.v);
    return one;
}

/* Tasks of an image: TASKS, or more, so that all threads have as many. */
static int64_t tasks_of(const cpu_calculator *cpu, const convolution *v)
{
    int64_t threads = cpu_divide_up(cpu->threads, cpu_max(1, v->n)); /* of an image */
    return cpu_max(1, cpu_min(cpu_round_up(TASKS, threads), v->p));
}

static block block_of(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    int64_t m = o->in[1].shape.dim[0], c = o->in[0].shape.dim[1];
    sdlf_tensor between = {.shape = o->in[0].shape};
    between.shape.dim[1] = m;
    block b = {.v = convolution_make(&between, &o->in[1], &o->conv2d_inverted.window, (int)m)};
    b.expands = sdlf_tensor_present(&o->in[3]);
    b.expand = pointwise_of(c, m);
    b.project = pointwise_of(m, o->out[0].shape.dim[1]);
    b.tasks = tasks_of(cpu_from_const(calculator), &b.v);
    b.reached = cpu_min(b.v.h, (cpu_divide_up(b.v.p, b.tasks) - 1) * b.v.stride[0] + (b.v.r - 1) * b.v.dilation[0] + 1);
    b.each = cpu_round_up(((b.expands ? b.reached * b.v.w : 0) + b.v.q) * m, LANES);
    return b;
}

static bool is_last(const sdlf_operation *o)
{
    return sdlf_tensor_is_channels_last(&o->in[0]) && sdlf_tensor_is_channels_last(&o->out[0]) &&
           (!sdlf_tensor_present(&o->in[7]) || sdlf_tensor_is_channels_last(&o->in[7]));
}

bool conv2d_inverted_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    block b = block_of(calculator, o);
    int64_t between = b.v.groups * (b.expands ? b.v.h * b.v.w : b.v.p_q);
    return depthwise_last_takes_cpu(&b.v) && b.v.n > 0 && b.v.p_q > 0 && b.project.v.k > 0 && b.expand.v.c > 0 &&
           between * (int64_t)sizeof(element) >= LEAST_BETWEEN;
}

/* ---- weights made ready: of the three, one behind the other ---- */

static int64_t expand_size(const block *b)
{
    return b->expands ? cpu_round_up(implicit_packed_size_cpu(&b->expand.v), LANES) : 0;
}

static int64_t filters_size(const block *b)
{
    return cpu_round_up(depthwise_last_packed_size_cpu(&b->v), LANES);
}

static int64_t packed_size(const block *b)
{
    return expand_size(b) + filters_size(b) + cpu_round_up(implicit_packed_size_cpu(&b->project.v), LANES);
}

static void pack(const cpu_calculator *cpu, const block *b, const sdlf_operation *o, element *packed)
{
    if (b->expands) implicit_pack_cpu(cpu, packed, &b->expand.v, input(o, 3));
    depthwise_last_pack_cpu(packed + expand_size(b), &b->v, input(o, 1));
    implicit_pack_cpu(cpu, packed + expand_size(b) + filters_size(b), &b->project.v, input(o, 2));
}

int64_t conv2d_inverted_prepared_cpu(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    block b = block_of(calculator, o);
    return packed_size(&b) * (int64_t)sizeof(element);
}

sdlf_status conv2d_inverted_prepare_cpu(sdlf_calculator *calculator, const sdlf_operation *o)
{
    block b = block_of(calculator, o);
    pack(cpu_from(calculator), &b, o, o->prepared.data);
    return SDLF_OK;
}

int64_t conv2d_inverted_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    block b = block_of(calculator, o);
    int64_t size = cpu_from_const(calculator)->threads * b.each;
    int64_t outputs = sdlf_tensor_count(&o->out[0]);
    if (!sdlf_tensor_present(&o->prepared)) size += packed_size(&b);
    if (!is_last(o)) size += sdlf_tensor_count(&o->in[0]) + (sdlf_tensor_present(&o->in[7]) ? 2 : 1) * outputs;
    return size * (int64_t)sizeof(element);
}

/* ---- one task ---- */

/* `count` pixels from x on, side by side, as those of y are. */
static void compute_pointwise(const pointwise *one, const element *x, const element *residual, element *y,
                              int64_t count)
{
    int64_t c = one->v.c, k = one->v.k;
    const element *at[1][MOST_PIXELS];
    for (int64_t panel = 0; panel < one->panels.count; panel++) {
        int64_t start = implicit_panel_start(&one->panels, panel);
        int vectors = (int)(implicit_panel_start(&one->panels, panel + 1) - start);
        int64_t tiles = cpu_divide_up(count, implicit_tile_pixels(vectors)), filter = start * LANES;
        element bias[PANEL_VECTORS * LANES] = {0};
        implicit_tile t = {.at = at,
                           .run_count = 1,
                           .run = c,
                           .w = one->packed + filter * c,
                           .bias = bias,
                           .step = k,
                           .filters = cpu_min(vectors * LANES, k - filter),
                           .activation = one->activation};
        implicit_tile_fetch_near(&t, vectors);
        for (int j = 0; j < vectors && one->bias; j++) {
            int64_t from = filter + implicit_vector_start(j, t.filters);
            memcpy(bias + j * LANES, one->bias + from, (size_t)cpu_min(LANES, t.filters) * sizeof *bias);
        }
        for (int64_t i = 0; i < tiles; i++) {
            int64_t first = i * count / tiles;
            t.pixels = (i + 1) * count / tiles - first;
            t.y = y + first * k + filter;
            t.residual = residual ? residual + first * k + filter : NULL;
            for (int64_t j = 0; j < t.pixels; j++) at[0][j] = x + (first + j) * c;
            implicit_tile_cpu(vectors, &t);
        }
    }
}

static void compute_rows(void *argument, int64_t index, int thread)
{
    const block *b = argument;
    const convolution *v = &b->v;
    int64_t n = index / b->tasks, task = index % b->tasks, c = b->expand.v.c, k = b->project.v.k;
    int64_t first = task * v->p / b->tasks, last = (task + 1) * v->p / b->tasks;
    int64_t top = cpu_min(v->h, cpu_max(0, first * v->stride[0] - v->before[0])), made = top;
    element *filtered = b->scratch + thread * b->each, *expanded = filtered + v->q * v->groups;
    const element *x = b->x + n * v->h * v->w * c;
    convolution_forward filter = {.v = *v, .bias = b->filter_bias, .activation = b->filtered};
    for (int64_t p = first; p < last; p++) {
        int64_t bottom = p * v->stride[0] - v->before[0] + (v->r - 1) * v->dilation[0] + 1;
        int64_t rows = cpu_min(v->h, bottom) - made, place = ((n * v->p + p) * v->q) * k;
        if (b->expands && rows > 0) {
            compute_pointwise(&b->expand, x + made * v->w * c, NULL, expanded + (made - top) * v->w * v->groups,
                              rows * v->w);
            made += rows;
        }
        depthwise_last_row_cpu(&filter, b->filters, b->expands ? expanded : x, b->expands ? top : 0, p, filtered);
        compute_pointwise(&b->project, filtered, b->residual ? b->residual + place : NULL, b->y + place, v->q);
    }
}

/* ---- row-major images: through copies ---- */

/* to (N,columns,rows) = from (N,rows,columns) */
static void turn(element *to, const element *from, int64_t n, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < n; i++)
        transpose(to + i * rows * columns, rows, from + i * rows * columns, columns, rows, columns);
}

sdlf_status conv2d_inverted_cpu(sdlf_calculator *calculator, const sdlf_operation *o)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    block b = block_of(calculator, o);
    element *scratch = o->workspace.data, *y = output(o, 0);
    const element *packed = o->prepared.data;
    int64_t n = b.v.n, pixels = b.v.h * b.v.w, c = b.expand.v.c, k = b.project.v.k, outputs = n * b.v.p_q * k;
    b.scratch = scratch;
    scratch += cpu->threads * b.each;
    if (!sdlf_tensor_present(&o->prepared)) {
        pack(cpu, &b, o, scratch);
        packed = scratch;
        scratch += packed_size(&b);
    }
    b.expand.packed = packed;
    b.filters = packed + expand_size(&b);
    b.project.packed = b.filters + filters_size(&b);
    b.expand.bias = input(o, 4);
    b.filter_bias = input(o, 5);
    b.project.bias = input(o, 6);
    b.expand.activation = &o->conv2d_inverted.expanded;
    b.filtered = o->conv2d_inverted.filtered;
    b.project.activation = &o->conv2d_inverted.activation;
    b.x = input(o, 0);
    b.residual = input(o, 7);
    b.y = y;
    if (!is_last(o)) {
        turn(scratch, b.x, n, c, pixels);
        b.x = scratch;
        b.y = scratch + n * pixels * c;
        if (b.residual) turn(b.y + outputs, b.residual, n, k, b.v.p_q);
        if (b.residual) b.residual = b.y + outputs;
    }
    int64_t flops = 2 * n * b.v.groups * ((b.expands ? pixels * c : 0) + b.v.p_q * (b.v.r_s + k));
    cpu_parallel_near(cpu, n * b.tasks, cpu_time_of_flops(flops), compute_rows, &b);
    if (b.y != y) turn(y, b.y, n, b.v.p_q, k);
    return SDLF_OK;
}
