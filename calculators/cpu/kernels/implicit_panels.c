/* SPDX-License-Identifier: MIT */
/* Weights in panels. See implicit_panels.h; implicit.h has what this offers to others. */
#include "calculators/cpu/kernels/implicit_panels.h"

#include "calculators/cpu/kernels/implicit.h"

int64_t implicit_packed_size_cpu(const convolution *v)
{
    convolution joined = implicit_joined(v);
    return joined.groups * implicit_panels_of(&joined).vectors * LANES * joined.taps;
}

typedef struct packing {
    const convolution *v;
    convolution joined;
    const element *w;
    element *packed;
    implicit_panels p;
} packing;

/* Of a filter and a channel, both counted in groups that have been joined. */
static inline element weight_of(const packing *all, int64_t group, int64_t filter, int64_t channel, int64_t tap)
{
    const convolution *v = all->v;
    if (filter / v->k != channel / v->c) return 0;
    return all->w[((group * all->joined.k + filter) * v->c + channel % v->c) * v->r_s + tap];
}

/* Panel `index` of all groups. */
static void pack_panel(void *context, int64_t index, int thread)
{
    const packing *all = context;
    const convolution *v = &all->joined;
    int64_t group = index / all->p.count, panel = index % all->p.count;
    int64_t start = implicit_panel_start(&all->p, panel),
            width = (implicit_panel_start(&all->p, panel + 1) - start) * LANES;
    int64_t first = start * LANES, filters = cpu_min(width, v->k - first);
    int64_t last = width - LANES, shift = last - implicit_vector_start(last / LANES, filters);
    element *to = all->packed + (group * all->p.vectors + start) * LANES * v->taps;
    (void)thread;
    for (int64_t i = 0; i < v->r_s; i++) {
        for (int64_t c = 0; c < v->c; c++, to += width) {
            for (int64_t k = 0; k < width; k++) {
                int64_t filter = k < last ? k : k - shift;
                to[k] = filter < filters ? weight_of(all, group, first + filter, c, i) : 0;
            }
        }
    }
}

void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w)
{
    packing all = {.v = v, .joined = implicit_joined(v), .w = w, .packed = packed};
    all.p = implicit_panels_of(&all.joined);
    cpu_parallel_exact(cpu, all.joined.groups * all.p.count, cpu_time_of_elements(8 * implicit_packed_size_cpu(v)),
                       pack_panel, &all);
}
