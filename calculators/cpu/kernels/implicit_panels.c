/* SPDX-License-Identifier: MIT */
/* Packing of weights into panels. See implicit_panels.h and implicit.h. */
#include "calculators/cpu/kernels/implicit_panels.h"

#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/product.h"

enum { LEAST_LANES = LANES / 2 }; /* lanes that merged groups must fill */

convolution implicit_joined_cpu(const convolution *v)
{
    convolution joined = *v;
    int64_t factor = v->k > 0 ? cpu_max(1, cpu_min(v->groups, LANES / v->k)) : 1;
    while (v->groups % factor != 0) factor--;
    joined.groups /= factor;
    joined.c *= factor;
    joined.k *= factor;
    joined.taps *= factor;
    return joined;
}

bool implicit_fills_cpu(const convolution *v)
{
    const convolution joined = implicit_joined_cpu(v);
    return joined.k != v->k && joined.k >= LEAST_LANES;
}

int64_t implicit_packed_size_cpu(const convolution *v)
{
    convolution joined = implicit_joined_cpu(v);
    return joined.groups * implicit_panels_of(&joined).vectors * LANES * joined.taps;
}

typedef struct packing {
    const convolution *v;
    convolution joined;
    const implicit_weights *w;
    element *packed;
    implicit_panels p;
} packing;

/* Panel `panel` of a group. */
typedef struct panel_place {
    int64_t group, first, filters, width; /* the filters, and their number rounded up to whole vectors */
} panel_place;

/* The filter of column k; the last vector of a panel is aligned to end with its filters. */
static inline int64_t filter_of(const panel_place *at, int64_t k)
{
    int64_t last = at->width - LANES;
    return k < last ? k : k - last + implicit_vector_start(last / LANES, at->filters);
}

/* Packs one position of the window for merged groups: each filter reads only the channels of its own group. */
static void pack_joined(const packing *all, const panel_place *at, int64_t position, element *to)
{
    const convolution *v = all->v, *joined = &all->joined;
    const implicit_weights *w = all->w;
    int64_t together = joined->k / v->k;
    if (joined->c == 0) return;
    memset(to, 0, (size_t)(joined->c * at->width) * sizeof *to);
    for (int64_t k = 0; k < at->width; k++) {
        int64_t filter = filter_of(at, k), here = at->first + filter;
        if (filter >= at->filters) continue;
        const element *from = w->w + (at->group * together + here / v->k) * w->group + here % v->k * w->filter +
                              position / v->s * w->row + position % v->s * w->column;
        element *into = to + here / v->k * v->c * at->width + k;
        for (int64_t c = 0; c < v->c; c++) into[c * at->width] = from[c * w->channel];
    }
}

static void pack_alone(const packing *all, const panel_place *at, int64_t position, element *to)
{
    const convolution *v = all->v;
    const implicit_weights *w = all->w;
    const element *from =
        w->w + at->group * w->group + at->first * w->filter + position / v->s * w->row + position % v->s * w->column;
    if (at->filters == at->width && (w->filter == 1 || w->channel == 1)) {
        product_pack_cpu(to, at->width, from, w->channel, w->filter, v->c, at->width);
        return;
    }
    for (int64_t c = 0; c < v->c; c++) {
        for (int64_t k = 0; k < at->width; k++) {
            int64_t filter = filter_of(at, k);
            to[c * at->width + k] = filter < at->filters ? from[c * w->channel + filter * w->filter] : 0;
        }
    }
}

/* Packs panel `index` of all groups. */
static void pack_panel(void *context, int64_t index, int thread)
{
    const packing *all = context;
    const convolution *v = &all->joined;
    int64_t panel = index % all->p.count, start = implicit_panel_start(&all->p, panel);
    panel_place at = {.group = index / all->p.count,
                      .first = start * LANES,
                      .width = (implicit_panel_start(&all->p, panel + 1) - start) * LANES};
    at.filters = cpu_min(at.width, v->k - at.first);
    element *to = all->packed + (at.group * all->p.vectors + start) * LANES * v->taps;
    bool is_joined = v->k != all->v->k;
    (void)thread;
    for (int64_t i = 0; i < v->r_s; i++, to += v->c * at.width) (is_joined ? pack_joined : pack_alone)(all, &at, i, to);
}

void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const implicit_weights *w)
{
    packing all = {.v = v, .joined = implicit_joined_cpu(v), .w = w, .packed = packed};
    all.p = implicit_panels_of(&all.joined);
    cpu_parallel_exact(cpu, all.joined.groups * all.p.count, cpu_time_of_elements(8 * implicit_packed_size_cpu(v)),
                       pack_panel, &all);
}
