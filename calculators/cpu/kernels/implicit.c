/* Implicit GEMM, channels last. See implicit.h.
 *
 * A tile of TILE pixels x up to PANEL_VECTORS vectors of filters is accumulated in registers: with 6 pixels x 4 vectors a step
 * does 24 multiply-adds for 4 loads of weights and 6 broadcasts: bound by arithmetic. A task takes one panel, whose weights stay in
 * the second-level cache, over a run of pixels. 2 N K P Q C R S FLOPs at the peak rate is the floor. */
#include "calculators/cpu/kernels/implicit.h"

#include <math.h>

#include "calculators/cpu/kernels/activate.h"

/* Vectors of a panel at most, and the pixels of a tile for each number of vectors: accumulators, one row of weights and one
 * broadcast fill the machine's vector registers. */
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
enum { PANEL_VECTORS = 4, PIXELS_1 = 8, PIXELS_2 = 8, PIXELS_3 = 8, PIXELS_4 = 6 };
#else
enum { PANEL_VECTORS = 3, PIXELS_1 = 8, PIXELS_2 = 6, PIXELS_3 = 4, PIXELS_4 = 1 };
#endif
enum {
    MOST_PIXELS = 8,
    FEW_CHANNELS = 12,          /* below, a row of the window is one run */
    TASK_PIXELS = 96,           /* of a task, about */
    LEAST_TASKS = 48,           /* where there is enough to share */
    STRETCH_ELEMENTS = 1 << 28, /* TODO */
};

static const int tile_pixels[PANEL_VECTORS + 1] = {
    0,        PIXELS_1, PIXELS_2, PIXELS_3,
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
    PIXELS_4,
#endif
};

/* ---- panels ---- */

/* The vectors of a group's filters, spread evenly over as few panels as hold them. */
typedef struct panels {
    int64_t vectors, count;
} panels;

static panels panels_of(const convolution *v)
{
    int64_t vectors = cpu_divide_up(v->k, LANES);
    return (panels){vectors, cpu_divide_up(vectors, PANEL_VECTORS)};
}

/* The first vector of panel `index`; of panel `count`, the number of all. */
static int64_t panel_start(const panels *p, int64_t index)
{
    return index * p->vectors / p->count;
}

int64_t implicit_packed_size_cpu(const convolution *v)
{
    return v->groups * panels_of(v).vectors * LANES * v->taps;
}

typedef struct packing {
    const convolution *v;
    const element *w;
    element *packed;
    panels p;
} packing;

/* Panel `index` of all groups. */
static void pack_panel(void *context, int64_t index, int thread)
{
    const packing *all = context;
    const convolution *v = all->v;
    int64_t group = index / all->p.count, panel = index % all->p.count;
    int64_t start = panel_start(&all->p, panel), width = (panel_start(&all->p, panel + 1) - start) * LANES;
    int64_t first = start * LANES, filters = cpu_min(width, v->k - first);
    element *to = all->packed + (group * all->p.vectors + start) * LANES * v->taps;
    (void)thread;
    for (int64_t i = 0; i < v->r_s; i++) {
        for (int64_t c = 0; c < v->c; c++, to += width) {
            const element *from = all->w + (group * v->k + first) * v->taps + c * v->r_s + i;
            for (int64_t k = 0; k < filters; k++) to[k] = from[k * v->taps];
            for (int64_t k = filters; k < width; k++) to[k] = 0;
        }
    }
}

void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w)
{
    packing all = {.v = v, .w = w, .packed = packed, .p = panels_of(v)};
    cpu_parallel_exact(cpu, v->groups * all.p.count, cpu_time_of_elements(8 * implicit_packed_size_cpu(v)), pack_panel,
                       &all);
}

/* ---- what all tasks share ---- */

typedef struct context {
    const convolution_forward *forward;
    const convolution *v;
    const element *packed, *image, *zeros; /* the image: x, or its padded copy */
    panels p;
    bool rows;                        /* runs are rows of the window, in the padded copy */
    int64_t height, width, before[2]; /* of the image, and what of its padding is not part of it */
    int64_t reach[2];                 /* of a window */
    int64_t runs, run;                /* of a window, and the elements of each */
    int64_t chunks;                   /* of an image's pixels */
} context;

static bool has_padding(const convolution *v)
{
    for (int i = 0; i < 2; i++) {
        int64_t size = i == 0 ? v->h : v->w, outputs = i == 0 ? v->p : v->q, window = i == 0 ? v->r : v->s;
        int64_t reach = (outputs - 1) * v->stride[i] + (window - 1) * v->dilation[i] + 1;
        if (v->before[i] > 0 || reach > size) return true;
    }
    return false;
}

static bool takes_rows(const convolution *v)
{
    return v->groups == 1 && v->c < FEW_CHANNELS && v->dilation[1] == 1 && v->s > 1;
}

/* The sides of the image that windows reach, padding included. */
static int64_t reached(const convolution *v, int axis)
{
    int64_t outputs = axis == 0 ? v->p : v->q, window = axis == 0 ? v->r : v->s;
    return (outputs - 1) * v->stride[axis] + (window - 1) * v->dilation[axis] + 1;
}

int64_t implicit_scratch_size_cpu(const convolution *v)
{
    int64_t zeros = cpu_round_up(v->c, LANES);
    return zeros + (takes_rows(v) && has_padding(v) ? v->n * reached(v, 0) * reached(v, 1) * v->c : 0);
}

/* ---- the padded copy ---- */

typedef struct padding {
    const convolution *v;
    const element *x;
    element *to;
    int64_t height, width;
} padding;

static void pad_row(void *argument, int64_t index, int thread)
{
    const padding *all = argument;
    const convolution *v = all->v;
    int64_t image = index / all->height, h = index % all->height - v->before[0];
    element *to = all->to + index * all->width * v->c;
    (void)thread;
    if (h < 0 || h >= v->h) {
        memset(to, 0, (size_t)(all->width * v->c) * sizeof *to);
        return;
    }
    int64_t columns = cpu_min(v->w, all->width - v->before[1]), left = cpu_min(v->before[1], all->width);
    columns = cpu_max(columns, 0);
    memset(to, 0, (size_t)(left * v->c) * sizeof *to);
    memcpy(to + left * v->c, all->x + (image * v->h + h) * v->w * v->c, (size_t)(columns * v->c) * sizeof *to);
    memset(to + (left + columns) * v->c, 0, (size_t)((all->width - left - columns) * v->c) * sizeof *to);
}

/* ---- one tile ---- */

typedef struct tile {
    const element *(*at)[MOST_PIXELS]; /* of each run and pixel, where it begins */
    const element *w, *bias;
    int64_t run_count, run;
    bool first, last;        /* of a pixel's stretches: begins with bias and residual, ends with the activation */
    element *y[MOST_PIXELS]; /* where the pixels' results go, and what an unfinished sum is kept in */
    const element *residual[MOST_PIXELS]; /* [0] NULL: there is none */
    int64_t pixels, filters;              /* that are there */
    const sdlf_activation *activation;
    element low, high; /* that it clamps to */
} tile;

/* Functions that only clamp are applied to vectors before they are written; the others to what was written. */
static bool clamps(const sdlf_activation *activation)
{
    return activation->function == SDLF_IDENTITY || activation->function == SDLF_RELU ||
           activation->function == SDLF_CLIP;
}

/* What a tile has summed, where the last vector has lanes too many. */
static void finish_part(const tile *t, int vectors, const element *sums)
{
    for (int64_t i = 0; i < t->pixels; i++) {
        element *y = t->y[i];
        const element *sum = sums + i * vectors * LANES;
        for (int64_t k = 0; k < t->filters; k++) y[k] = sum[k] + (t->residual[0] != NULL ? t->residual[i][k] : 0);
        activate_cpu(y, y, t->filters, t->activation);
    }
}

/* pixels and vectors are constants where this is used. */
static inline __attribute__((always_inline)) void compute_tile(const int pixels, const int vectors, const tile *t)
{
    vector sum[MOST_PIXELS][PANEL_VECTORS];
    const element *w = t->w;
    int64_t run = t->run;
    bool whole = t->filters == vectors * LANES;
    for (int i = 0; i < pixels; i++) {
        for (int j = 0; j < vectors; j++) {
            sum[i][j] = load((t->first ? t->bias : t->y[i]) + j * LANES);
            if (t->first && whole && t->residual[0] != NULL) sum[i][j] += load(t->residual[i] + j * LANES);
        }
    }
    for (int64_t r = 0; r < t->run_count; r++) {
        const element *x[MOST_PIXELS];
        for (int i = 0; i < pixels; i++) x[i] = t->at[r][i];
        for (int64_t c = 0; c < run; c++, w += vectors * LANES) {
            vector row[PANEL_VECTORS];
            for (int j = 0; j < vectors; j++) {
                row[j] = load(w + j * LANES);
                __builtin_prefetch(w + (PREFETCH_STEPS * vectors + j) * LANES);
            }
            for (int i = 0; i < pixels; i++) {
                for (int j = 0; j < vectors; j++) sum[i][j] += x[i][c] * row[j];
            }
        }
    }
    if (!whole) {
        element sums[MOST_PIXELS * PANEL_VECTORS * LANES];
        for (int i = 0; i < pixels; i++) {
            for (int j = 0; j < vectors; j++) store(sums + (i * vectors + j) * LANES, sum[i][j]);
        }
        finish_part(t, vectors, sums);
        return;
    }
    if (t->last) { /* NaN passes */
        vector low = broadcast(t->low), high = broadcast(t->high);
        for (int i = 0; i < pixels; i++) {
            for (int j = 0; j < vectors; j++) {
                vector raised = choose(sum[i][j] < low, low, sum[i][j]);
                sum[i][j] = choose(raised > high, high, raised);
            }
        }
    }
    for (int i = 0; i < pixels; i++) {
        for (int j = 0; j < vectors; j++) store(t->y[i] + j * LANES, sum[i][j]);
    }
    for (int i = 0; i < t->pixels && t->last && !clamps(t->activation); i++)
        activate_cpu(t->y[i], t->y[i], vectors * LANES, t->activation);
}

/* Functions of their own, so that each has all registers. */
typedef void tile_function(const tile *t);

static void compute_1(const tile *t)
{
    compute_tile(PIXELS_1, 1, t);
}

static void compute_2(const tile *t)
{
    compute_tile(PIXELS_2, 2, t);
}

static void compute_3(const tile *t)
{
    compute_tile(PIXELS_3, 3, t);
}

#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
static void compute_4(const tile *t)
{
    compute_tile(PIXELS_4, 4, t);
}
#endif

static tile_function *const compute[PANEL_VECTORS + 1] = {
    NULL,      compute_1, compute_2, compute_3,
#if SDLF_VECTOR_BYTES == 64 || defined(__aarch64__)
    compute_4,
#endif
};

/* ---- one task ---- */

enum { MOST_RUNS = 128 }; /* windows of more positions go elsewhere */

/* Some runs of the window: where each lies, from the window's first position on. */
typedef struct stretch {
    int64_t count;
    int64_t down[MOST_RUNS], right[MOST_RUNS]; /* pixels */
    int64_t offset[MOST_RUNS];                 /* elements */
} stretch;

static void find_stretch(stretch *s, const context *all, int64_t first, int64_t count)
{
    const convolution *v = all->v;
    s->count = count;
    for (int64_t i = 0; i < count; i++) {
        int64_t run = first + i, r = all->rows ? run : run / v->s;
        s->down[i] = r * v->dilation[0];
        s->right[i] = all->rows ? 0 : run % v->s * v->dilation[1];
        s->offset[i] = (s->down[i] * all->width + s->right[i]) * v->groups * v->c;
    }
}

/* Where the runs of pixel (p, q)'s window begin: at[run][pixel of the tile]. */
static inline void find_runs(const context *all, const stretch *s, const element *image, int64_t p, int64_t q,
                             int pixel, const element *(*at)[MOST_PIXELS])
{
    const convolution *v = all->v;
    int64_t top = p * v->stride[0] - all->before[0], left = q * v->stride[1] - all->before[1];
    const element *window = image + (top * all->width + left) * v->groups * v->c;
    if (top >= 0 && left >= 0 && top + all->reach[0] <= all->height && left + all->reach[1] <= all->width) {
        for (int64_t i = 0; i < s->count; i++) at[i][pixel] = window + s->offset[i];
        return;
    }
    for (int64_t i = 0; i < s->count; i++) {
        int64_t h = top + s->down[i], w = left + s->right[i];
        bool inside = h >= 0 && h < all->height && w >= 0 && w < all->width;
        at[i][pixel] = inside ? window + s->offset[i] : all->zeros;
    }
}

/* One panel of one group over a chunk of one image's pixels. */
typedef struct work {
    int64_t n, group, first, last; /* pixels */
    int64_t filter;                /* the panel's first, of all groups */
    int vectors;
    const element *image; /* the group's first channel of pixel (0,0) */
} work;

/* A stretch of the inner dimension, over all pixels of the chunk: of each run the channels from `channel` on. */
static void compute_stretch(const context *all, const work *chunk, tile *t, const stretch *s, int64_t channel)
{
    const convolution *v = all->v;
    const convolution_forward *forward = all->forward;
    int size = tile_pixels[chunk->vectors];
    int64_t p = chunk->first / v->q, q = chunk->first % v->q, filters = v->groups * v->k;
    element spare[PANEL_VECTORS * LANES]; /* where pixels that are not there are written to */
    for (int64_t pixel = chunk->first; pixel < chunk->last; pixel += size) {
        t->pixels = cpu_min(size, chunk->last - pixel);
        for (int i = 0; i < size; i++) {
            int64_t place = (chunk->n * v->p_q + pixel + i) * filters + chunk->filter;
            if (i >= t->pixels) { /* the first one again */
                for (int64_t r = 0; r < s->count; r++) t->at[r][i] = t->at[r][0];
                t->y[i] = spare;
                t->residual[i] = t->residual[0] != NULL ? t->bias : NULL;
                continue;
            }
            find_runs(all, s, chunk->image + channel, p, q, i, t->at);
            t->y[i] = forward->y + place;
            t->residual[i] = forward->residual ? forward->residual + place : NULL;
            if (++q == v->q) {
                q = 0;
                p++;
            }
        }
        compute[chunk->vectors](t);
    }
}

/* The inner dimension is cut into stretches whose weights stay in the first-level cache for all pixels of the chunk; a panel
 * whose last vector is not full has sums that do not fit y, and is done in one. */
static void compute_chunk(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution *v = all->v;
    int64_t chunk = index % all->chunks, rest = index / all->chunks;
    int64_t panel = rest / v->n % all->p.count, start = panel_start(&all->p, panel);
    work w = {.n = rest % v->n, .group = rest / v->n / all->p.count};
    w.vectors = (int)(panel_start(&all->p, panel + 1) - start);
    w.filter = w.group * v->k + start * LANES;
    w.image = all->image + w.n * all->height * all->width * v->groups * v->c + w.group * v->c;
    int64_t size = tile_pixels[w.vectors], tiles = cpu_divide_up(v->p_q, size);
    w.first = chunk * tiles / all->chunks * size;
    w.last = cpu_min((chunk + 1) * tiles / all->chunks * size, v->p_q);
    element bias[PANEL_VECTORS * LANES] = {0};
    const element *weights = all->packed + (w.group * all->p.vectors + start) * LANES * v->taps;
    const element *at[MOST_RUNS][MOST_PIXELS];
    stretch s;
    tile t = {.at = at,
              .bias = bias,
              .filters = cpu_min(w.vectors * LANES, v->k - start * LANES),
              .activation = &all->forward->activation,
              .low = -INFINITY,
              .high = INFINITY};
    (void)thread;
    if (t.activation->function == SDLF_RELU) t.low = 0;
    if (t.activation->function == SDLF_CLIP) {
        t.low = (element)t.activation->low;
        t.high = (element)t.activation->high;
    }
    if (all->forward->bias) memcpy(bias, all->forward->bias + w.filter, (size_t)t.filters * sizeof *bias);
    int64_t width = w.vectors * LANES, steps = STRETCH_ELEMENTS / width;
    bool one = t.filters < width || all->runs * all->run <= steps;
    int64_t runs = one ? all->runs : cpu_max(1, steps / all->run);
    int64_t parts = one || all->run <= steps ? 1 : cpu_divide_up(all->run, steps);
    for (int64_t run = 0; run < all->runs; run += runs) {
        find_stretch(&s, all, run, cpu_min(runs, all->runs - run));
        t.run_count = s.count;
        for (int64_t part = 0; part < parts; part++) { /* of a run's channels */
            int64_t from = part * all->run / parts, to = (part + 1) * all->run / parts;
            t.run = to - from;
            t.first = run == 0 && part == 0;
            t.last = run + runs >= all->runs && part == parts - 1;
            t.w = weights + (run * all->run + from) * width;
            compute_stretch(all, &w, &t, &s, from);
        }
    }
}

/* Chunks of an image's pixels: enough tasks to share, none of them small. */
static int64_t chunks_of(const convolution *v, const panels *p)
{
    int64_t chunks = cpu_divide_up(v->p_q, TASK_PIXELS), others = v->n * v->groups * p->count;
    int64_t wanted = cpu_divide_up(LEAST_TASKS, others);
    return cpu_max(1, cpu_min(cpu_max(chunks, wanted), v->p_q / (2 * MOST_PIXELS)));
}

bool implicit_takes_cpu(const convolution *v)
{
    return (takes_rows(v) ? v->r : v->r_s) <= MOST_RUNS;
}

void implicit_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                          element *scratch)
{
    const convolution *v = &forward->v;
    context all = {.forward = forward,
                   .v = v,
                   .packed = packed,
                   .image = forward->x,
                   .zeros = scratch,
                   .p = panels_of(v),
                   .rows = takes_rows(v),
                   .height = v->h,
                   .width = v->w};
    if (v->n * v->p_q == 0) return;
    for (int i = 0; i < 2; i++) {
        all.before[i] = v->before[i];
        all.reach[i] = ((i == 0 ? v->r : v->s) - 1) * v->dilation[i] + 1;
    }
    all.runs = all.rows ? v->r : v->r_s;
    all.run = all.rows ? v->s * v->c : v->c;
    all.chunks = chunks_of(v, &all.p);
    memset(scratch, 0, (size_t)cpu_round_up(v->c, LANES) * sizeof *scratch);
    if (all.rows && has_padding(v)) {
        all.height = reached(v, 0);
        all.width = reached(v, 1);
        padding copy = {.v = v,
                        .x = forward->x,
                        .to = scratch + cpu_round_up(v->c, LANES),
                        .height = all.height,
                        .width = all.width};
        all.image = copy.to;
        all.before[0] = all.before[1] = 0;
        cpu_parallel_exact(cpu, v->n * all.height, cpu_time_of_elements(v->n * all.height * all.width * v->c), pad_row,
                           &copy);
    }
    cpu_parallel(cpu, all.chunks * v->n * all.p.count * v->groups, convolution_time(v), compute_chunk, &all);
}
