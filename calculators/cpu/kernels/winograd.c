/* Winograd convolution forward: its geometry, and the order of its stages. See winograd.h and winograd_stages.h.
 *
 * Filters are transformed once a call, or once for all, (m + 2)^2 / 9 times as many numbers as before. Then, chunk by chunk of the tiles,
 * three stages follow: patches are transformed (a task a channel), multiplied (a task a point and a panel), and the products become
 * outputs (a task a filter). 2 (m + 2)^2 K C tiles FLOPs in the products, against 18 m^2 K C tiles of the convolution itself. */
#include "calculators/cpu/kernels/winograd_stages.h"

/* Elements of a chunk's patches and products: 4 MB in float, so that they stay in the caches beside the filters. */
enum { CHUNK_ELEMENTS = 1 << 20 };

bool winograd_takes_cpu(const convolution *v)
{
    return v->r == 3 && v->s == 3 && v->stride[0] == 1 && v->stride[1] == 1 && v->dilation[0] == 1 &&
           v->dilation[1] == 1;
}

static winograd winograd_of(const convolution *v, int m)
{
    winograd all = {.m = m, .side = m + 2, .points = (m + 2) * (m + 2), .channels = cpu_round_up(v->c, LANES)};
    all.rows = cpu_divide_up(v->p, m);
    all.row = cpu_divide_up(v->q, m);
    all.tiles = v->n * all.rows * all.row;
    int64_t most = cpu_max(CHUNK_ELEMENTS / (all.points * (v->c + v->k)) / TILE_COLUMNS * TILE_COLUMNS, TILE_COLUMNS);
    int64_t chunks = cpu_max(cpu_divide_up(all.tiles, most), 1);
    all.chunk = cpu_round_up(cpu_divide_up(all.tiles, chunks), LANES);
    return all;
}

int64_t winograd_filters_size_cpu(const convolution *v, int m)
{
    return v->groups * (m + 2) * (m + 2) * v->k * cpu_round_up(v->c, LANES);
}

static int64_t patches_size(const winograd *all, const convolution *v)
{
    return cpu_round_up(all->points * v->c * all->chunk, LANES);
}

im2col_space winograd_forward_space_cpu(const convolution *v, int m, bool ready)
{
    winograd all = winograd_of(v, m);
    int64_t filters = ready ? 0 : winograd_filters_size_cpu(v, m);
    return (im2col_space){.shared = filters + patches_size(&all, v) + all.points * v->k * all.chunk};
}

/* Filters on their way from w to U. */
typedef struct transformation {
    const convolution *v;
    const element *w;
    element *filters;
    int m;
} transformation;

/* G g G^T of a vector of channels: taps[i], 9 of them, to U[t][k][c] from `to` on, the t `step` elements apart. */
static inline __attribute__((always_inline)) void transform_filter(const int m, element *to, int64_t step,
                                                                   element taps[9][LANES])
{
    vector half[WINOGRAD_SIDE][3];
    for (int s = 0; s < 3; s++) {
        vector g[3], column[WINOGRAD_SIDE];
        for (int r = 0; r < 3; r++) g[r] = load(taps[3 * r + s]);
        winograd_filter(m, column, g);
        for (int i = 0; i < m + 2; i++) half[i][s] = column[i];
    }
    for (int i = 0; i < m + 2; i++) {
        vector line[WINOGRAD_SIDE];
        winograd_filter(m, line, half[i]);
        for (int j = 0; j < m + 2; j++) store(to + (i * (m + 2) + j) * step, line[j]);
    }
}

/* Filter k of a group, a vector of channels at a time; zeros behind the last. */
static void transform_one(void *context, int64_t index, int thread)
{
    const transformation *t = context;
    const convolution *v = t->v;
    int64_t group = index / v->k, k = index % v->k, channels = cpu_round_up(v->c, LANES), step = v->k * channels;
    element *to = t->filters + group * (t->m + 2) * (t->m + 2) * step + k * channels;
    element taps[9][LANES];
    (void)thread;
    for (int64_t c = 0; c < v->c; c += LANES) {
        int64_t some = cpu_min(LANES, v->c - c);
        if (some < LANES) memset(taps, 0, sizeof taps);
        transpose(taps[0], LANES, t->w + index * v->taps + 9 * c, 9, some, 9);
        if (t->m == 2) {
            transform_filter(2, to + c, step, taps);
        } else {
            transform_filter(4, to + c, step, taps);
        }
    }
}

void winograd_filters_cpu(const cpu_calculator *cpu, const convolution *v, const element *w, int m, element *filters)
{
    transformation t = {.v = v, .w = w, .filters = filters, .m = m};
    cpu_parallel(cpu, v->groups * v->k, cpu_time_of_elements(2 * winograd_filters_size_cpu(v, m)), transform_one, &t);
}

/* A panel of the products of one point: M (K,columns) = U (K,C) V (C,columns). */
static void multiply_panel(void *context, int64_t index, int thread)
{
    const winograd *all = context;
    const convolution *v = &all->forward->v;
    int64_t panels = cpu_divide_up(all->wide, TILE_COLUMNS), t = index / panels, column = index % panels * TILE_COLUMNS;
    int64_t width = winograd_run(all, column);
    (void)thread;
    product part = {
        .m = v->k, .k = v->c, .alpha = 1, .padded = true, .a_row = all->channels, .a_step = 1, .b_column = 1};
    part.a = all->filters + (all->group * all->points + t) * v->k * all->channels;
    part.b = winograd_place(all, all->patches, v->c, t, 0, column);
    part.c = winograd_place(all, all->products, v->k, t, 0, column);
    part.n = part.b_step = part.c_row = width;
    product_compute_cpu(&part, NULL);
}

void winograd_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, int m, const element *filters,
                          element *scratch)
{
    const convolution *v = &forward->v;
    winograd all = winograd_of(v, m);
    if (!filters) {
        winograd_filters_cpu(cpu, v, forward->w, m, scratch);
        filters = scratch;
        scratch += winograd_filters_size_cpu(v, m);
    }
    all.forward = forward;
    all.filters = filters;
    all.patches = scratch;
    all.products = scratch + patches_size(&all, v);
    for (all.group = 0; all.group < v->groups; all.group++) {
        for (all.first = 0; all.first < all.tiles; all.first += all.chunk) {
            all.count = cpu_min(all.chunk, all.tiles - all.first);
            all.wide = cpu_round_up(all.count, LANES);
            int64_t numbers = all.points * all.wide, panels = cpu_divide_up(all.wide, TILE_COLUMNS);
            cpu_parallel(cpu, v->c, cpu_time_of_elements(2 * numbers * v->c), winograd_patches_cpu, &all);
            cpu_parallel(cpu, all.points * panels, cpu_time_of_flops(2 * numbers * v->c * v->k), multiply_panel, &all);
            cpu_parallel(cpu, v->k, cpu_time_of_elements(2 * numbers * v->k), winograd_outputs_cpu, &all);
        }
    }
}
