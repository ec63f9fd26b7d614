/* SPDX-License-Identifier: MIT */
/* conv2d_inverted_residual_forward: a 1x1 convolution, a depthwise convolution and a 1x1 convolution, fused, NHWC. Contract:
 * calculators/fusions/inverted_residual.h.
 *
 * For large images a task computes some rows of the output: for each panel of the intermediate channels it expands and filters,
 * and then it projects the filtered rows of all panels, which stay in the second-level cache. For small images a task processes
 * one panel, so that its weights are read once and the expanded lines are filtered where they were computed; the projection is
 * a second round of tasks, those of implicit GEMM. 2 N M (H W C + P Q R S + P Q K) FLOPs; x and y are moved once. */
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/implicit_panels.h"
#include "calculators/cpu/kernels/interleave.h"
#include "calculators/cpu/kernels/inverted_panel.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/fusions/inverted_residual.h"

enum {
    TASKS = 8,                                 /* of an image */
    FEW_ROWS = 5,                              /* of a thread: each task recomputes up to two more lines */
    MUCH_WEIGHT = (1 << 19) / sizeof(element), /* for the second-level cache, beside the intermediate lines */
};

/* The projection: its sizes, weights and epilogue. */
typedef struct pointwise {
    convolution v;
    implicit_panels panels;
    const element *packed, *bias;
    const sdlf_activation *activation;
} pointwise;

/* The expanded lines that a thread keeps from its last task. */
typedef struct kept_lines {
    int64_t image, next, made; /* the next row of outputs they serve; the first line not yet expanded */
} kept_lines;

typedef struct block {
    inverted_block between;
    pointwise project;
    bool rounds; /* two rounds of tasks */
    const element *x, *residual;
    element *y, *scratch, *filtered; /* filtered: the intermediate of all images, with two rounds */
    int64_t tasks, rows;             /* of an image; maximum rows of a task */
    int64_t each, lines;             /* scratch elements of a thread; those of one panel's lines */
    kept_lines *kept;                /* of each thread */
} block;

static pointwise pointwise_of(const convolution *v, int64_t k)
{
    int64_t m = v->groups;
    pointwise one = {.v = {.n = v->n,
                           .groups = 1,
                           .c = m,
                           .h = v->p,
                           .w = v->q,
                           .k = k,
                           .r = 1,
                           .s = 1,
                           .p = v->p,
                           .q = v->q,
                           .r_s = 1,
                           .p_q = v->p_q,
                           .taps = m,
                           .stride = {1, 1},
                           .dilation = {1, 1}}};
    one.panels = implicit_panels_of(&one.v);
    return one;
}

/* Tasks of an image: at least TASKS, rounded up so that all threads get equally many. */
static int64_t tasks_of(const cpu_calculator *cpu, const convolution *v)
{
    int64_t threads = cpu_divide_up(cpu->threads, cpu_max(1, v->n)); /* for each image */
    return cpu_max(1, cpu_min(cpu_round_up(TASKS, threads), v->p));
}

/* True if threads have few rows, or the weights are too large to read for each task: then panels, if enough, are distributed. */
static bool takes_rounds(const cpu_calculator *cpu, const block *b)
{
    const convolution *v = &b->between.v;
    int64_t weights = v->groups * (b->between.c + v->r_s + b->project.v.k), panels = b->between.panels;
    bool few_rows = v->n * v->p < FEW_ROWS * cpu->threads;
    return weights > MUCH_WEIGHT || (few_rows && cpu->threads > 1 && v->n * panels >= 2 * cpu->threads);
}

static block block_of(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    const cpu_calculator *cpu = cpu_from_const(calculator);
    int64_t m = o->in[1].shape.dim[0], c = o->in[0].shape.dim[1];
    const inverted_residual_options *options = inverted_residual_options_of(o);
    sdlf_tensor between = {.shape = o->in[0].shape};
    between.shape.dim[1] = m;
    convolution v = convolution_make(&between, &o->in[1], &options->window, (int)m);
    block b = {.between = inverted_block_cpu(&v, sdlf_tensor_present(&o->in[3]) ? c : 0)};
    b.between.expanded = options->expanded;
    b.between.filtered = options->filtered;
    b.project = pointwise_of(&v, o->out[0].shape.dim[1]);
    b.project.activation = &options->activation;
    b.lines = cpu_round_up(inverted_kept_size_cpu(&b.between), LANES);
    b.rounds = takes_rounds(cpu, &b);
    b.tasks = b.rounds ? b.between.panels : tasks_of(cpu, &v);
    b.rows = cpu_divide_up(v.p, b.tasks);
    b.each = b.rounds ? b.lines : cpu_round_up(b.lines * b.between.panels + b.rows * v.q * m, LANES);
    return b;
}

static bool is_nhwc(const sdlf_operation *o)
{
    return sdlf_tensor_is_channels_last(&o->in[0]) && sdlf_tensor_is_channels_last(&o->out[0]) &&
           (!sdlf_tensor_present(&o->in[7]) || sdlf_tensor_is_channels_last(&o->in[7]));
}

bool conv2d_inverted_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    block b = block_of(calculator, o);
    const convolution *v = &b.between.v;
    return depthwise_nhwc_takes_cpu(v) && v->n > 0 && v->p_q > 0 && b.project.v.k > 0 && o->in[0].shape.dim[1] > 0 &&
           v->r <= INVERTED_MOST_LINES;
}

/* ---- prepacked weights ---- */

static int64_t between_size(const block *b)
{
    return cpu_round_up(inverted_packed_size_cpu(&b->between), LANES);
}

static int64_t packed_size(const block *b)
{
    return between_size(b) + cpu_round_up(implicit_packed_size_cpu(&b->project.v), LANES);
}

static void pack(const cpu_calculator *cpu, const block *b, const sdlf_operation *o, element *packed)
{
    inverted_pack_cpu(packed, &b->between, input(o, 3), input(o, 4), input(o, 1), input(o, 5));
    implicit_weights project = implicit_weights_of(&b->project.v, input(o, 2));
    implicit_pack_cpu(cpu, packed + between_size(b), &b->project.v, &project);
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

/* Elements between the two rounds, and of the second round's scratch space. */
static int64_t filtered_size(const block *b)
{
    return b->rounds ? cpu_round_up(b->project.v.n * b->project.v.p_q * b->project.v.c, LANES) : 0;
}

static int64_t second_size(const block *b)
{
    return b->rounds ? cpu_round_up(implicit_scratch_size_cpu(&b->project.v, false), LANES) : 0;
}

int64_t conv2d_inverted_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *o)
{
    block b = block_of(calculator, o);
    int64_t size = cpu_from_const(calculator)->threads * b.each + filtered_size(&b) + second_size(&b);
    int64_t outputs = sdlf_tensor_count(&o->out[0]);
    if (!sdlf_tensor_present(&o->prepared)) size += packed_size(&b);
    if (!is_nhwc(o)) size += sdlf_tensor_count(&o->in[0]) + (sdlf_tensor_present(&o->in[7]) ? 2 : 1) * outputs;
    return size * (int64_t)sizeof(element);
}

/* ---- one task ---- */

/* Projects `count` contiguous pixels from x on, to contiguous pixels of y. */
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

/* A task of the first round: one panel of a whole image. */
static void compute_panel(void *argument, int64_t index, int thread)
{
    const block *b = argument;
    const convolution *v = &b->between.v;
    int64_t n = index % v->n, c = b->between.c > 0 ? b->between.c : v->groups;
    inverted_panel_cpu(&b->between, index / v->n, b->x + n * v->h * v->w * c, b->scratch + thread * b->each,
                       INVERTED_NONE_MADE, 0, v->p, b->filtered + n * v->p_q * v->groups);
}

/* All panels, for some rows. */
static void compute_rows(void *argument, int64_t index, int thread)
{
    const block *b = argument;
    const convolution *v = &b->between.v;
    int64_t n = index / b->tasks, task = index % b->tasks, c = b->between.c > 0 ? b->between.c : v->groups;
    int64_t first = task * v->p / b->tasks, last = (task + 1) * v->p / b->tasks, k = b->project.v.k;
    int64_t place = (n * v->p + first) * v->q * k, made = INVERTED_NONE_MADE;
    element *lines = b->scratch + thread * b->each, *filtered = lines + b->lines * b->between.panels;
    kept_lines *kept = &b->kept[thread];
    if (kept->image == n && kept->next == first) made = kept->made;
    *kept = (kept_lines){.image = n, .next = last};
    for (int64_t panel = 0; panel < b->between.panels; panel++) {
        kept->made = inverted_panel_cpu(&b->between, panel, b->x + n * v->h * v->w * c, lines + panel * b->lines, made,
                                        first, last, filtered);
    }
    compute_pointwise(&b->project, filtered, b->residual ? b->residual + place : NULL, b->y + place,
                      (last - first) * v->q);
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
    const convolution *v = &b.between.v;
    kept_lines kept[CPU_MAX_THREADS];
    element *scratch = o->workspace.data, *y = output(o, 0);
    const element *packed = o->prepared.data;
    int64_t n = v->n, pixels = v->h * v->w, c = o->in[0].shape.dim[1], k = b.project.v.k, outputs = n * v->p_q * k;
    b.scratch = scratch;
    scratch += cpu->threads * b.each;
    b.filtered = scratch;
    scratch += filtered_size(&b) + second_size(&b);
    if (!sdlf_tensor_present(&o->prepared)) {
        pack(cpu, &b, o, scratch);
        packed = scratch;
        scratch += packed_size(&b);
    }
    b.between.packed = packed;
    b.project.packed = packed + between_size(&b);
    b.project.bias = input(o, 6);
    b.x = input(o, 0);
    b.residual = input(o, 7);
    b.y = y;
    for (int i = 0; i < cpu->threads; i++) kept[i] = (kept_lines){.next = -1};
    b.kept = kept;
    if (!is_nhwc(o)) {
        turn(scratch, b.x, n, c, pixels);
        b.x = scratch;
        b.y = scratch + n * pixels * c;
        if (b.residual) turn(b.y + outputs, b.residual, n, k, v->p_q);
        if (b.residual) b.residual = b.y + outputs;
    }
    int64_t flops = 2 * n * v->groups * (pixels * b.between.c + v->p_q * v->r_s);
    if (b.rounds) {
        convolution_forward project = {.v = b.project.v,
                                       .x = b.filtered,
                                       .bias = b.project.bias,
                                       .residual = b.residual,
                                       .y = b.y,
                                       .activation = *b.project.activation};
        cpu_parallel_static(cpu, n * b.tasks, cpu_time_of_flops(flops), compute_panel, &b);
        implicit_forward_cpu(cpu, &project, b.project.packed, b.filtered + filtered_size(&b), false);
    } else {
        flops += 2 * n * v->groups * v->p_q * k;
        cpu_parallel_static(cpu, n * b.tasks, cpu_time_of_flops(flops), compute_rows, &b);
    }
    if (b.y != y) turn(y, b.y, n, v->p_q, k);
    return SDLF_OK;
}
