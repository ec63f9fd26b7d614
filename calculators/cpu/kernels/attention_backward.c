/* SPDX-License-Identifier: MIT */
/* The gradients of attention. Contract: <sdlf/operations/attention.h>; blocks as in attention.c.
 *
 * A task is a key head with all the query heads that read it, so each element of dq, dk and dv is accumulated by one
 * thread, in a fixed order. For every block of keys, whose panels are packed once, and every block of queries:
 *   p = exp(scores - max) / sum, ds = scale p (dy v^T - sum of dy y), dv += p^T dy, dq += ds k, dk += ds^T q. */
#include "calculators/cpu/kernels/attention.h"

typedef struct backward_scratch {
    element *p, *ds, *key_columns, *value_columns, *keys, *product;
} backward_scratch;

static int64_t divide_scratch(const attention_context *c, element *from, backward_scratch *s)
{
    int64_t sizes[] = {ATTENTION_ROWS * ATTENTION_STRIDE,
                       ATTENTION_ROWS * ATTENTION_STRIDE,
                       ATTENTION_KEYS * c->depth,
                       ATTENTION_KEYS * c->width,
                       ATTENTION_KEYS * cpu_round_up(c->depth, LANES),
                       PRODUCT_SCRATCH};
    element **parts[] = {&s->p, &s->ds, &s->key_columns, &s->value_columns, &s->keys, &s->product};
    return attention_divide_cpu(from, parts, sizes, sizeof sizes / sizeof sizes[0]);
}

/* For one row of a block: computes p from the scores, and ds from dp. */
static void finish_row(const attention_context *c, const attention_block *at, int64_t row, element *p, element *ds)
{
    const sdlf_operation *operation = c->operation;
    int64_t number = (at->sample * c->heads + at->head) * c->queries + row;
    const element *y = attention_row(&operation->in[4], at->sample, at->head, row);
    const element *dy = attention_row(&operation->in[7], at->sample, at->head, row);
    element max = input(operation, 5)[number], factor = 1 / input(operation, 6)[number];
    element scale = (element)operation->attention.scale;
    element projection = attention_dot(dy, y, c->width);
    int64_t padded = cpu_round_up(at->keys, LANES); /* whole vectors: nothing past the last key is read */
    attention_mask_cpu(c, at, row, p);
    for (int64_t j = at->keys; j < padded; j++) p[j] = -INFINITY, ds[j] = 0;
    for (int64_t j = 0; j < padded; j += LANES) {
        vector share = attention_exponential(load(p + j) - max) * factor;
        store(p + j, share);
        store(ds + j, scale * share * (load(ds + j) - projection));
    }
}

/* c (keys,n) += a^T b, with a (rows,keys) in scratch space, b the block's rows of x, c the block's rows of y. */
static void add_to_keys(const attention_block *at, const element *a, const sdlf_tensor *x, const sdlf_tensor *y,
                        bool accumulate, element *scratch)
{
    product all = {.m = at->keys,
                   .n = x->shape.dim[3],
                   .k = at->rows,
                   .alpha = 1,
                   .accumulate = accumulate,
                   .a = a,
                   .a_row = 1,
                   .a_step = ATTENTION_STRIDE,
                   .b = attention_row(x, at->sample, at->head, at->row),
                   .b_step = x->stride[2],
                   .b_column = 1,
                   .c = attention_row(y, at->sample, at->group, at->key),
                   .c_row = y->stride[2]};
    product_compute_cpu(&all, scratch);
}

static void add_block(const attention_context *c, const attention_block *at, const backward_scratch *s, bool accumulate)
{
    const sdlf_operation *operation = c->operation;
    const sdlf_tensor *dy = &operation->in[7], *dq = &operation->out[0];
    attention_product_cpu(s->p, (element)operation->attention.scale, c->q, s->key_columns, at, s->product);
    attention_product_cpu(s->ds, 1, dy, s->value_columns, at, s->product);
    for (int64_t i = 0; i < at->rows; i++)
        finish_row(c, at, at->row + i, s->p + i * ATTENTION_STRIDE, s->ds + i * ATTENTION_STRIDE);
    add_to_keys(at, s->p, dy, &operation->out[2], accumulate, s->product);
    add_to_keys(at, s->ds, c->q, &operation->out[1], accumulate, s->product);
    product all = {.m = at->rows,
                   .n = c->depth,
                   .k = at->keys,
                   .alpha = 1,
                   .accumulate = at->key > 0,
                   .a = s->ds,
                   .a_row = ATTENTION_STRIDE,
                   .a_step = 1,
                   .c = attention_row(dq, at->sample, at->head, at->row),
                   .c_row = dq->stride[2],
                   .panels = s->keys,
                   .panels_columns = cpu_round_up(c->depth, LANES)};
    product_compute_cpu(&all, s->product);
}

static void backward_task(void *context, int64_t index, int thread)
{
    const attention_context *c = context;
    int64_t shared = c->heads / c->groups;
    attention_block at = {.sample = index / c->groups, .group = index % c->groups};
    backward_scratch s;
    (void)divide_scratch(c, c->scratch + thread * c->scratch_size, &s);
    for (at.key = 0; at.key < c->keys; at.key += c->block_keys) {
        bool begun = false;
        at.keys = cpu_min(c->block_keys, c->keys - at.key);
        attention_pack_cpu(s.key_columns, c->k, &at, true);
        attention_pack_cpu(s.value_columns, c->v, &at, true);
        attention_pack_cpu(s.keys, c->k, &at, false);
        for (at.head = at.group * shared; at.head < (at.group + 1) * shared; at.head++) {
            for (at.row = 0; at.row < c->queries; at.row += ATTENTION_ROWS) {
                at.rows = cpu_min(ATTENTION_ROWS, c->queries - at.row);
                if (at.key >= attention_visible_cpu(c, at.row, at.rows)) continue;
                add_block(c, &at, &s, begun);
                begun = true;
            }
        }
    }
}

static attention_context backward_context(const sdlf_operation *operation)
{
    attention_context c = attention_context_of_cpu(operation);
    backward_scratch unused;
    c.scratch_size = divide_scratch(&c, NULL, &unused);
    return c;
}

int64_t attention_backward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return cpu_from_const(calculator)->threads * backward_context(operation).scratch_size * (int64_t)sizeof(element);
}

sdlf_status attention_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    attention_context c = backward_context(operation);
    int64_t scores = c.samples * c.heads * c.queries * c.keys;
    cpu_parallel(cpu_from(calculator), c.samples * c.groups,
                 scores + cpu_time_of_flops(2 * scores * (3 * c.depth + 2 * c.width)), backward_task, &c);
    return SDLF_OK;
}
