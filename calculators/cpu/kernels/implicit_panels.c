/* SPDX-License-Identifier: MIT */
/* Weights in panels. See implicit_panels.h; implicit.h has what this offers to others. */
#include "calculators/cpu/kernels/implicit_panels.h"

#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/product.h"

int64_t implicit_packed_size_cpu(const convolution *v)
{
    convolution joined = implicit_joined(v);
    return joined.groups * implicit_panels_of(&joined).vectors * LANES * joined.taps;
}

typedef struct packing {
    const convolution *v;
    convolution joined;
    const implicit_weights *w;
    element *packed;
    implicit_panels p;
} packing;

/* Of a filter and a channel, both counted in groups that have been joined; from: the tap of group 0. */
static inline element weight_of(const packing *all, const element *from, int64_t group, int64_t filter, int64_t channel)
{
    const convolution *v = all->v;
    const implicit_weights *w = all->w;
    if (filter / v->k != channel / v->c) return 0;
    return from[(group * (all->joined.k / v->k) + filter / v->k) * w->group + filter % v->k * w->filter +
                channel % v->c * w->channel];
}

/* Panel `index` of all groups. */
static void pack_panel(void *context, int64_t index, int thread)
{
    const packing *all = context;
    const convolution *v = &all->joined;
    const implicit_weights *w = all->w;
    int64_t group = index / all->p.count, panel = index % all->p.count;
    int64_t start = implicit_panel_start(&all->p, panel),
            width = (implicit_panel_start(&all->p, panel + 1) - start) * LANES;
    int64_t first = start * LANES, filters = cpu_min(width, v->k - first);
    int64_t last = width - LANES, shift = last - implicit_vector_start(last / LANES, filters);
    element *to = all->packed + (group * all->p.vectors + start) * LANES * v->taps;
    bool is_joined = v->groups != all->v->groups;
    (void)thread;
    for (int64_t i = 0; i < v->r_s; i++, to += v->c * width) {
        const element *from = w->w + i / v->s * w->row + i % v->s * w->column;
        if (!is_joined && filters == width && (w->filter == 1 || w->channel == 1)) {
            product_pack_cpu(to, width, from + group * w->group + first * w->filter, w->channel, w->filter, v->c,
                             width);
            continue;
        }
        for (int64_t c = 0; c < v->c; c++) {
            const element *alone = from + group * w->group + first * w->filter + c * w->channel;
            for (int64_t k = 0; k < width; k++) {
                int64_t filter = k < last ? k : k - shift;
                element weight = 0;
                if (filter < filters)
                    weight = is_joined ? weight_of(all, from, group, first + filter, c) : alone[filter * w->filter];
                to[c * width + k] = weight;
            }
        }
    }
}

void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const implicit_weights *w)
{
    packing all = {.v = v, .joined = implicit_joined(v), .w = w, .packed = packed};
    all.p = implicit_panels_of(&all.joined);
    cpu_parallel_exact(cpu, all.joined.groups * all.p.count, cpu_time_of_elements(8 * implicit_packed_size_cpu(v)),
                       pack_panel, &all);
}
