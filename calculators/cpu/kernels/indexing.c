/* SPDX-License-Identifier: MIT */
/* arg_reduce, gather_backward and top_k: x seen as (outer, L, inner). Contracts: <sdlf/operation.h>.
 *
 * arg_reduce reads x once, some lines a task. gather_backward clears dx and adds dy's rows in the order of the indices;
 * a task owns whole outer indices and a block of the inner elements, so that no two tasks add to the same element. */
#include "calculators/cpu/kernels/kernels.h"

enum { INNER_BLOCK = 1024 };

typedef struct lines {
    const element *x;
    int64_t *y;
    int64_t count, length, inner, per_task;
    sdlf_arg_reduce_options options;
} lines;

/* True if x replaces the best so far. NaN beats every number. */
static inline bool wins(const sdlf_arg_reduce_options *options, element x, element best)
{
    if (best != best) return x != x && options->last;
    if (x != x) return true;
    if (x == best) return options->last;
    return options->smallest ? x < best : x > best;
}

static void search_lines(void *context, int64_t task, int thread)
{
    const lines *all = context;
    int64_t last = cpu_min((task + 1) * all->per_task, all->count);
    (void)thread;
    for (int64_t line = task * all->per_task; line < last; line++) {
        const element *x = all->x + line / all->inner * all->length * all->inner + line % all->inner;
        int64_t best = 0;
        for (int64_t j = 1; j < all->length; j++) {
            if (wins(&all->options, x[j * all->inner], x[best * all->inner])) best = j;
        }
        all->y[line] = best;
    }
}

sdlf_status arg_reduce_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    int axis = operation->arg_reduce.axis;
    lines all = {.x = x->data,
                 .y = operation->out[0].data,
                 .length = x->shape.dim[axis],
                 .inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank),
                 .options = operation->arg_reduce};
    all.count = sdlf_shape_span(x->shape, 0, axis) * all.inner;
    all.per_task = cpu_max(1, TASK_ELEMENTS / all.length);
    cpu_parallel_exact(cpu_from(calculator), cpu_divide_up(all.count, all.per_task), sdlf_tensor_count(x), search_lines,
                       &all);
    return SDLF_OK;
}

typedef struct scattering {
    const element *dy;
    element *dx;
    const sdlf_tensor *index;
    int64_t length, indices, inner, blocks;
} scattering;

static void scatter(void *context, int64_t task, int thread)
{
    const scattering *s = context;
    int64_t outer = task / s->blocks, first = task % s->blocks * INNER_BLOCK;
    int64_t width = cpu_min(INNER_BLOCK, s->inner - first);
    element *dx = s->dx + outer * s->length * s->inner + first;
    (void)thread;
    for (int64_t l = 0; l < s->length; l++) memset(dx + l * s->inner, 0, (size_t)width * sizeof *dx);
    for (int64_t m = 0; m < s->indices; m++) {
        int64_t target = cpu_index_target(s->index, m, s->length);
        const element *dy = s->dy + (outer * s->indices + m) * s->inner + first;
        if (target < 0) continue;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) dx[target * s->inner + i] += dy[i];
    }
}

sdlf_status gather_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *dx = &operation->out[0];
    int axis = operation->index.axis;
    scattering s = {.dy = input(operation, 0),
                    .dx = output(operation, 0),
                    .index = &operation->in[1],
                    .length = dx->shape.dim[axis],
                    .indices = sdlf_tensor_count(&operation->in[1]),
                    .inner = sdlf_shape_span(dx->shape, axis + 1, dx->shape.rank)};
    s.blocks = cpu_divide_up(s.inner, INNER_BLOCK);
    cpu_parallel(cpu_from(calculator), sdlf_shape_span(dx->shape, 0, axis) * s.blocks,
                 cpu_time_of_elements(sdlf_tensor_count(dx) + sdlf_tensor_count(&operation->in[0])), scatter, &s);
    return SDLF_OK;
}

/* ---- top_k: a heap of the first k, which is then sorted ---- */

typedef struct ranking {
    const element *x;
    element *y;
    int64_t *index;
    int64_t count, length, k, inner;
    bool smallest;
} ranking;

/* True if element (b, at j) precedes (a, at i). The order is total: equal elements are ordered by their indices. */
static inline bool stands_before(bool smallest, element b, int64_t j, element a, int64_t i)
{
    if (a != a || b != b) return (a != a) == (b != b) ? j < i : b != b;
    if (a != b) return smallest ? b < a : b > a;
    return j < i;
}

/* A heap of the indices kept from a line, with the last in the order at its root. It is stored in the output. */
typedef struct heap {
    const ranking *r;
    const element *x;
    int64_t *index; /* every `inner`-th */
} heap;

static inline bool in_front(const heap *h, int64_t a, int64_t b)
{
    return stands_before(h->r->smallest, h->x[a * h->r->inner], a, h->x[b * h->r->inner], b);
}

/* Inserts index `i` at position `at` of a heap of `size`, or below (sift down). */
static void sink(const heap *h, int64_t at, int64_t size, int64_t i)
{
    int64_t inner = h->r->inner;
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && in_front(h, h->index[child * inner], h->index[(child + 1) * inner])) child++;
        if (!in_front(h, i, h->index[child * inner])) break;
        h->index[at * inner] = h->index[child * inner];
        at = child;
    }
    h->index[at * inner] = i;
}

static void rank_line(void *context, int64_t line, int thread)
{
    const ranking *r = context;
    int64_t to = line / r->inner * r->k * r->inner + line % r->inner;
    heap h = {.r = r, .x = r->x + line / r->inner * r->length * r->inner + line % r->inner, .index = r->index + to};
    (void)thread;
    for (int64_t i = 0; i < r->k; i++) h.index[i * r->inner] = i;
    for (int64_t at = r->k / 2 - 1; at >= 0; at--) sink(&h, at, r->k, at);
    for (int64_t i = r->k; i < r->length; i++)
        if (in_front(&h, i, h.index[0])) sink(&h, 0, r->k, i);
    for (int64_t size = r->k - 1; size > 0; size--) {
        int64_t last = h.index[size * r->inner];
        h.index[size * r->inner] = h.index[0];
        sink(&h, 0, size, last);
    }
    for (int64_t rank = 0; rank < r->k; rank++) r->y[to + rank * r->inner] = h.x[h.index[rank * r->inner] * r->inner];
}

sdlf_status top_k_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0];
    int axis = operation->top_k.axis;
    ranking r = {.x = x->data,
                 .y = output(operation, 0),
                 .index = operation->out[1].data,
                 .length = x->shape.dim[axis],
                 .k = operation->out[0].shape.dim[axis],
                 .inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank),
                 .smallest = operation->top_k.smallest};
    r.count = sdlf_shape_span(x->shape, 0, axis) * r.inner;
    cpu_parallel_exact(cpu_from(calculator), r.count, r.count * r.length * r.k, rank_line, &r);
    return SDLF_OK;
}
