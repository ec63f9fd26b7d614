/* SPDX-License-Identifier: MIT */
/* Implicit GEMM, NHWC: its tasks. See implicit.h.
 *
 * A task multiplies one panel, whose weights stay in the second-level cache, with a run of pixels, tile by tile. Floor:
 * 2 N K P Q C R S FLOPs at the peak rate. */
#include "calculators/cpu/kernels/implicit.h"

#include "calculators/cpu/kernels/implicit_panels.h"
#include "calculators/cpu/kernels/implicit_rows.h"
#include "calculators/cpu/kernels/implicit_tile.h"

enum {
    TASK_PIXELS = 96,                           /* of a task, approximately */
    LEAST_TASKS = 48,                           /* if there is enough work */
    NEAR_WEIGHTS = (1 << 20) / sizeof(element), /* all of them stay in the second-level cache */
    MOST_RUNS = 128,                            /* larger windows use another algorithm */
};

/* ---- shared by all tasks ---- */

/* The runs of the window: the offset of each from the window's first position. */
typedef struct window_runs {
    int64_t count;
    int64_t down[MOST_RUNS], right[MOST_RUNS]; /* pixels */
    int64_t offset[MOST_RUNS];                 /* elements */
} window_runs;

typedef struct context {
    const convolution_forward *forward;
    const convolution *v;
    const element *packed, *image, *zeros; /* the image: x, or its padded copy */
    implicit_panels p;
    bool rows;                        /* runs are rows of the window, in the padded copy */
    bool pixels_follow;               /* 1x1 windows, on every pixel */
    bool reaches_out;                 /* some windows reach outside of the image, where zeros are read */
    int64_t height, width, before[2]; /* of the image; the padding that is not part of it */
    int64_t reach[2];                 /* the extent of a window */
    int64_t pixel, group;             /* elements of the image from one to the next */
    window_runs runs;                 /* of a window */
    int64_t run;                      /* the elements of each */
    int64_t chunks;                   /* of an image's pixels */
    bool near;                        /* loop order: all panels of a chunk in turn; else all chunks of a panel */
} context;

bool implicit_takes_row_major_cpu(const convolution *v)
{
    const convolution joined = implicit_joined_cpu(v);
    return implicit_takes_rows_cpu(&joined) && implicit_takes_cpu(v);
}

int64_t implicit_scratch_size_cpu(const convolution *all, bool row_major)
{
    const convolution v = implicit_joined_cpu(all);
    int64_t copy = implicit_copies_cpu(&v, row_major)
                       ? v.n * v.groups * implicit_reached(&v, 0) * implicit_reached(&v, 1) * v.c
                       : 0;
    return cpu_round_up(v.c, LANES) + copy;
}

/* ---- one task ---- */

static void list_runs(window_runs *runs, const context *all)
{
    const convolution *v = all->v;
    runs->count = all->rows ? v->r : v->r_s;
    for (int64_t i = 0; i < runs->count; i++) {
        int64_t r = all->rows ? i : i / v->s;
        runs->down[i] = r * v->dilation[0];
        runs->right[i] = all->rows ? 0 : i % v->s * v->dilation[1];
        runs->offset[i] = (runs->down[i] * all->width + runs->right[i]) * all->pixel;
    }
}

/* The addresses of the runs of pixel (p, q)'s window: at[run][pixel of the tile]. */
static inline void find_runs(const context *all, const element *image, int64_t p, int64_t q, int pixel,
                             const element *(*at)[MOST_PIXELS])
{
    const convolution *v = all->v;
    const window_runs *runs = &all->runs;
    int64_t top = p * v->stride[0] - all->before[0], left = q * v->stride[1] - all->before[1];
    int64_t start = (top * all->width + left) * all->pixel;
    if (top >= 0 && left >= 0 && top + all->reach[0] <= all->height && left + all->reach[1] <= all->width) {
        for (int64_t i = 0; i < runs->count; i++) at[i][pixel] = image + start + runs->offset[i];
        return;
    }
    for (int64_t i = 0; i < runs->count; i++) {
        int64_t h = top + runs->down[i], w = left + runs->right[i];
        bool inside = h >= 0 && h < all->height && w >= 0 && w < all->width;
        at[i][pixel] = inside ? image + start + runs->offset[i] : all->zeros;
    }
}

/* The same for `count` pixels of a row at once; returns false if some of their windows reach outside of the image. */
static inline bool find_row(const context *all, const element *image, int64_t p, int64_t q, int pixel, int64_t count,
                            const element *(*at)[MOST_PIXELS])
{
    const convolution *v = all->v;
    int64_t top = p * v->stride[0] - all->before[0], left = q * v->stride[1] - all->before[1];
    int64_t last = left + (count - 1) * v->stride[1], step = v->stride[1] * all->pixel;
    if (top < 0 || left < 0 || top + all->reach[0] > all->height || last + all->reach[1] > all->width) return false;
    const element *start = image + (top * all->width + left) * all->pixel;
    for (int64_t r = 0; r < all->runs.count; r++) {
        for (int64_t i = 0; i < count; i++) at[r][pixel + i] = start + all->runs.offset[r] + i * step;
    }
    return true;
}

/* The same for `count` pixels from `first` on. */
static inline void find_pixels(const context *all, const element *image, int64_t first, int64_t count,
                               const element *(*at)[MOST_PIXELS])
{
    const convolution *v = all->v;
    if (all->pixels_follow) {
        for (int64_t i = 0; i < count; i++) at[0][i] = image + (first + i) * all->pixel;
        return;
    }
    for (int64_t i = 0; i < count;) {
        int64_t p = (first + i) / v->q, q = (first + i) % v->q, some = cpu_min(count - i, v->q - q);
        if (!find_row(all, image, p, q, (int)i, some, at)) {
            for (int64_t j = 0; j < some; j++) find_runs(all, image, p, q + j, (int)(i + j), at);
        }
        i += some;
    }
}

/* Lists the runs that are not zeros for all pixels: few are, near an edge or if a dilated window exceeds the image. */
static int64_t find_runs_inside(const context *all, int64_t pixels, const element *(*at)[MOST_PIXELS],
                                unsigned char *inside)
{
    int64_t count = 0;
    for (int64_t r = 0; r < all->runs.count; r++) {
        int64_t i = 0;
        while (i < pixels && at[r][i] == all->zeros) i++;
        if (i < pixels) inside[count++] = (unsigned char)r;
    }
    return count;
}

/* One panel of one group times a chunk of one image's pixels, distributed evenly over the fewest tiles. */
static void compute_chunk(void *argument, int64_t index, int thread)
{
    const context *all = argument;
    const convolution *v = all->v;
    const convolution_forward *forward = all->forward;
    int64_t columns = all->p.count * v->groups, chunks = all->chunks * v->n;
    int64_t part = all->near ? index / columns : index % chunks, column = all->near ? index % columns : index / chunks;
    int64_t n = part / all->chunks, chunk = part % all->chunks, group = column / all->p.count;
    int64_t panel = column % all->p.count, start = implicit_panel_start(&all->p, panel);
    int vectors = (int)(implicit_panel_start(&all->p, panel + 1) - start);
    int64_t first = chunk * v->p_q / all->chunks, last = (chunk + 1) * v->p_q / all->chunks;
    int64_t tiles = cpu_divide_up(last - first, implicit_tile_pixels(vectors)), filter = group * v->k + start * LANES;
    const element *image = all->image + n * all->height * all->width * v->groups * v->c + group * all->group;
    const element *at[MOST_RUNS][MOST_PIXELS];
    unsigned char inside[MOST_RUNS];
    element bias[PANEL_VECTORS * LANES] = {0};
    implicit_tile t = {.at = at,
                       .runs = all->reaches_out ? inside : NULL,
                       .run_count = all->runs.count,
                       .run = all->run,
                       .ahead = all->pixels_follow ? cpu_divide_up(last - first, tiles) * all->pixel : 0,
                       .w = all->packed + (group * all->p.vectors + start) * LANES * v->taps,
                       .bias = bias,
                       .step = v->groups * v->k,
                       .filters = cpu_min(vectors * LANES, v->k - start * LANES),
                       .activation = &forward->activation};
    (void)thread;
    implicit_tile_fetch_near(&t, vectors);
    for (int j = 0; j < vectors && forward->bias; j++) {
        int64_t from = filter + implicit_vector_start(j, t.filters);
        memcpy(bias + j * LANES, forward->bias + from, (size_t)cpu_min(LANES, t.filters) * sizeof *bias);
    }
    for (int64_t i = 0; i < tiles; i++) {
        int64_t pixel = first + i * (last - first) / tiles, place = (n * v->p_q + pixel) * t.step + filter;
        t.pixels = first + (i + 1) * (last - first) / tiles - pixel;
        t.y = forward->y + place;
        t.residual = forward->residual ? forward->residual + place : NULL;
        find_pixels(all, image, pixel, t.pixels, at);
        if (all->reaches_out) t.run_count = find_runs_inside(all, t.pixels, at, inside);
        implicit_tile_cpu(vectors, &t);
    }
}

/* Chunks of an image's pixels: enough tasks to share, none smaller than a tile; an even number, for an even number of threads. */
static int64_t chunks_of(const convolution *v, const implicit_panels *p)
{
    int64_t chunks = cpu_divide_up(v->p_q, TASK_PIXELS), others = v->n * v->groups * p->count;
    int64_t wanted = cpu_divide_up(LEAST_TASKS, others);
    chunks = cpu_max(1, cpu_min(cpu_max(chunks, wanted), v->p_q / MOST_PIXELS));
    return chunks < 4 ? chunks == 3 ? 2 : chunks : chunks / 4 * 4;
}

/* True if each thread should read all weights and some of the pixels, rather than the reverse. */
static bool is_near(const convolution *v)
{
    int64_t weights = v->groups * implicit_panels_of(v).vectors * LANES * v->taps;
    return weights <= NEAR_WEIGHTS && weights <= v->n * v->groups * (v->c * v->h * v->w + v->k * v->p_q);
}

bool implicit_takes_cpu(const convolution *v)
{
    const convolution joined = implicit_joined_cpu(v);
    return (implicit_takes_rows_cpu(&joined) ? v->r : v->r_s) <= MOST_RUNS;
}

void implicit_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, const element *packed,
                          element *scratch, bool row_major)
{
    const convolution joined = implicit_joined_cpu(&forward->v), *v = &joined;
    context all = {.forward = forward,
                   .v = v,
                   .packed = packed,
                   .image = forward->x,
                   .zeros = scratch,
                   .p = implicit_panels_of(v),
                   .rows = implicit_takes_rows_cpu(v),
                   .height = v->h,
                   .width = v->w,
                   .pixel = v->groups * v->c,
                   .group = v->c};
    if (v->n * v->p_q * v->groups * v->k == 0) return;
    for (int i = 0; i < 2; i++) {
        all.before[i] = v->before[i];
        all.reach[i] = ((i == 0 ? v->r : v->s) - 1) * v->dilation[i] + 1;
    }
    all.run = all.rows ? v->s * v->c : v->c;
    all.chunks = chunks_of(v, &all.p);
    if (v->c > 0) memset(scratch, 0, (size_t)cpu_round_up(v->c, LANES) * sizeof *scratch);
    if (implicit_copies_cpu(v, row_major)) {
        all.height = implicit_reached(v, 0);
        all.width = implicit_reached(v, 1);
        element *copy = scratch + cpu_round_up(v->c, LANES);
        implicit_copy_cpu(cpu, v, forward->x, copy, row_major);
        all.image = copy;
        all.pixel = v->c;
        all.group = all.height * all.width * v->c;
        all.before[0] = all.before[1] = 0;
    }
    list_runs(&all.runs, &all);
    all.pixels_follow = v->r_s == 1 && v->stride[0] == 1 && v->stride[1] == 1 && !implicit_has_padding(v) &&
                        v->p == v->h && v->q == v->w;
    all.reaches_out = !all.rows && v->r_s > 1 && implicit_has_padding(v);
    all.near = is_near(v);
    cpu_parallel_static(cpu, all.chunks * v->n * all.p.count * v->groups, convolution_time(v), compute_chunk, &all);
}
