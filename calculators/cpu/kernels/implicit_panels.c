/* SPDX-License-Identifier: MIT */
/* Weights in panels. See implicit_panels.h; implicit.h has what this offers to others. */
#include "calculators/cpu/kernels/implicit_panels.h"

#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/product.h"

int64_t implicit_packed_size_cpu(const convolution *v)
{
    return v->groups * implicit_panels_of(v).vectors * LANES * v->taps;
}

typedef struct packing {
    const convolution *v;
    const implicit_weights *w;
    element *packed;
    implicit_panels p;
} packing;

/* Panel `index` of all groups. */
static void pack_panel(void *context, int64_t index, int thread)
{
    const packing *all = context;
    const convolution *v = all->v;
    const implicit_weights *w = all->w;
    int64_t group = index / all->p.count, panel = index % all->p.count;
    int64_t start = implicit_panel_start(&all->p, panel),
            width = (implicit_panel_start(&all->p, panel + 1) - start) * LANES;
    int64_t first = start * LANES, filters = cpu_min(width, v->k - first);
    int64_t last = width - LANES, shift = last - implicit_vector_start(last / LANES, filters);
    element *to = all->packed + (group * all->p.vectors + start) * LANES * v->taps;
    (void)thread;
    for (int64_t i = 0; i < v->r_s; i++, to += v->c * width) {
        const element *from = w->w + group * w->group + first * w->filter + i / v->s * w->row + i % v->s * w->column;
        if (filters == width && (w->filter == 1 || w->channel == 1)) {
            product_pack_cpu(to, width, from, w->channel, w->filter, v->c, width);
            continue;
        }
        for (int64_t c = 0; c < v->c; c++, from += w->channel) {
            element *row = to + c * width;
            for (int64_t k = 0; k < last; k++) row[k] = from[k * w->filter];
            for (int64_t k = last; k < width; k++) row[k] = k - shift < filters ? from[(k - shift) * w->filter] : 0;
        }
    }
}

void implicit_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const implicit_weights *w)
{
    packing all = {.v = v, .w = w, .packed = packed, .p = implicit_panels_of(v)};
    cpu_parallel_exact(cpu, v->groups * all.p.count, cpu_time_of_elements(8 * implicit_packed_size_cpu(v)), pack_panel,
                       &all);
}
