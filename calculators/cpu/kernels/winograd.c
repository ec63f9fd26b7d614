/* SPDX-License-Identifier: MIT */
/* Winograd convolution: its geometry, prepacked filters, and its tasks. See winograd.h.
 *
 * A task multiplies one panel with a run of tiles. Neighbouring tasks handle the panels of one run, whose input each
 * thread transforms itself, once: that costs less than fetching what another core wrote. With large filters and few
 * tiles there is a single run, so that only one thread reads each panel. */
#include "calculators/cpu/kernels/winograd_stages.h"

enum {
    LARGE_FILTERS = (2 << 20) / sizeof(element), /* they leave little space in the second-level cache */
    RUN_ELEMENTS = (1 << 20) / sizeof(element),  /* patches and products of a run of tiles */
    FEW_RUNS = 3,                                /* with large filters, up to so many runs become one */
    LEAST_RUNS = 4,                              /* otherwise */
    LEAST_TILES = 16,
    PANEL_FILTERS = PANEL_VECTORS * LANES,
};

bool winograd_takes_cpu(const convolution *v)
{
    bool depthwise = v->c == 1 && v->groups > 1;
    return !depthwise && v->r == 3 && v->s == 3 && v->stride[0] == 1 && v->stride[1] == 1 && v->dilation[0] == 1 &&
           v->dilation[1] == 1;
}

/* Transforms must be a small part of the work, and transformed filters, 16 / 9 as many elements, need enough tiles. */
bool winograd_pays_cpu(const convolution *v)
{
    return v->c >= LANES && v->k >= LANES && v->n * cpu_divide_up(v->p, 2) * cpu_divide_up(v->q, 2) >= LEAST_TILES;
}

int64_t winograd_packed_size_cpu(const convolution *v, int m)
{
    return v->groups * (m + 2) * (m + 2) * v->c * implicit_panels_of(v).vectors * LANES;
}

static winograd winograd_of(const convolution *v, int m)
{
    winograd all = {.m = m, .points = (m + 2) * (m + 2), .channels = cpu_round_up(v->c, LANES)};
    all.panels = implicit_panels_of(v);
    all.rows = cpu_divide_up(v->p, m);
    all.row = cpu_divide_up(v->q, m);
    all.tiles = v->n * all.rows * all.row;
    int64_t most = cpu_max(1, RUN_ELEMENTS / (all.points * (all.channels + PANEL_FILTERS)));
    bool large = winograd_packed_size_cpu(v, m) / v->groups > LARGE_FILTERS;
    all.runs = cpu_max(LEAST_RUNS, cpu_round_up(cpu_divide_up(all.tiles, most), 2)); /* for an even number of threads */
    if (large && all.tiles <= FEW_RUNS * most) all.runs = 1;
    all.runs = cpu_max(1, cpu_min(all.runs, all.tiles));
    all.run = cpu_divide_up(all.tiles, all.runs);
    all.patch_step = all.run * all.channels + LANES; /* avoids mapping the points to the same cache sets */
    all.product_step = all.run * PANEL_FILTERS + LANES;
    all.patches_size = all.points * all.patch_step;
    all.output_size = all.points * all.product_step;
    return all;
}

im2col_space winograd_space_cpu(const convolution *v, int m)
{
    winograd all = winograd_of(v, m);
    return (im2col_space){.each = all.patches_size + all.output_size, .shared = all.channels};
}

/* ---- filters ---- */

typedef struct packing {
    const convolution *v;
    const element *w;
    element *packed;
    implicit_panels panels;
    int m;
} packing;

/* G g G^T of the filters of panel `index`, one vector of them and one channel at a time; zeros past the last filter. */
static void pack_panel(void *argument, int64_t index, int thread)
{
    const packing *all = argument;
    const convolution *v = all->v;
    int64_t group = index / all->panels.count, panel = index % all->panels.count;
    int64_t start = implicit_panel_start(&all->panels, panel);
    int64_t width = (implicit_panel_start(&all->panels, panel + 1) - start) * LANES,
            points = (all->m + 2) * (all->m + 2);
    element *to = all->packed + (group * all->panels.vectors + start) * LANES * points * v->c;
    element taps[9][LANES] = {{0}}; /* lanes past the last filter stay 0 */
    (void)thread;
    for (int64_t k = 0; k < width; k += LANES) {
        int64_t some = cpu_min(LANES, v->k - start * LANES - k);
        const element *from = all->w + (group * v->k + start * LANES + k) * v->taps;
        if (some < LANES) memset(taps, 0, sizeof taps);
        for (int64_t c = 0; c < v->c; c++) {
            transpose(taps[0], LANES, from + 9 * c, v->taps, some, 9);
            if (all->m == 2) {
                winograd_transform_filter(2, to + c * width + k, v->c * width, taps);
            } else {
                winograd_transform_filter(4, to + c * width + k, v->c * width, taps);
            }
        }
    }
}

void winograd_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w, int m)
{
    packing all = {.v = v, .w = w, .packed = packed, .panels = implicit_panels_of(v), .m = m};
    cpu_parallel(cpu, v->groups * all.panels.count, cpu_time_of_elements(4 * winograd_packed_size_cpu(v, m)),
                 pack_panel, &all);
}

/* ---- products ---- */

/* All points of `count` tiles, one panel: M = V U. */
static void multiply(const winograd *all, int64_t group, int64_t panel, int64_t count, const element *transformed,
                     element *products)
{
    static const sdlf_activation none = {.function = SDLF_IDENTITY};
    static const element no_bias[PANEL_FILTERS] = {0};
    const convolution *v = &all->forward->v;
    int64_t start = implicit_panel_start(&all->panels, panel);
    int vectors = (int)(implicit_panel_start(&all->panels, panel + 1) - start);
    int64_t width = vectors * LANES, tiles = cpu_divide_up(count, implicit_tile_pixels(vectors));
    int64_t some = count / tiles, more = count % tiles;
    const element *w = all->packed + (group * all->panels.vectors + start) * LANES * all->points * v->c;
    implicit_tile t = {.x_step = all->channels,
                       .run_count = 1,
                       .run = v->c,
                       .fetch_step =
                           width / tiles, /* each tile of pixels prefetches its share of the next point's filters */
                       .bias = no_bias,
                       .step = width,
                       .filters = width,
                       .activation = &none};
    for (int point = 0; point < all->points; point++) {
        t.w = w + point * v->c * width;
        t.x = transformed + point * all->patch_step;
        t.y = products + point * all->product_step;
        for (int64_t i = 0; i < tiles; i++, t.x += t.pixels * t.x_step, t.y += t.pixels * width) {
            t.pixels = some + (i < more);
            t.fetch = t.w + v->c * width + i * v->c * t.fetch_step;
            implicit_tile_cpu(vectors, &t);
        }
    }
}

/* One panel over a run of tiles; each thread transforms the run's input itself, when it starts the run. */
static void compute_panel(void *argument, int64_t index, int thread)
{
    winograd *all = argument;
    int64_t panel = index % all->panels.count, run = index / all->panels.count;
    int64_t group = run / all->runs, part = run % all->runs;
    int64_t first = part * all->tiles / all->runs, count = (part + 1) * all->tiles / all->runs - first;
    element *transformed = all->scratch + thread * (all->patches_size + all->output_size);
    element *products = transformed + all->patches_size;
    if (all->held[thread] != run) winograd_input_transform_cpu(all, group, first, count, transformed);
    all->held[thread] = run;
    multiply(all, group, panel, count, transformed, products);
    winograd_output_transform_cpu(all, group, panel, first, count, products);
}

void winograd_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward, int m, const element *packed,
                          element *scratch)
{
    const convolution *v = &forward->v;
    winograd all = winograd_of(v, m);
    if (all.tiles * v->k == 0) return;
    all.forward = forward;
    all.packed = packed;
    all.zeros = scratch;
    all.scratch = scratch + all.channels;
    memset(scratch, 0, (size_t)all.channels * sizeof *scratch);
    for (int i = 0; i < cpu->threads; i++) all.held[i] = -1;
    cpu_parallel_static(cpu, v->groups * all.runs * all.panels.count, convolution_time(v), compute_panel, &all);
}
