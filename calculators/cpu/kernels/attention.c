/* SPDX-License-Identifier: MIT */
/* attention: softmax(scale q k^T + mask) v. Contract: <sdlf/operations/attention.h>.
 *
 * A task is up to TASK_ROWS queries of one head. It iterates over the keys in blocks, whose panels it packs once, and over the
 * queries in blocks of ATTENTION_ROWS: a block of scores (64 KB in float32), its exponentials and its product with v stay in the
 * caches. Online softmax: each query keeps the running maximum and sum; when the maximum grows, accumulated values are rescaled.
 * Blocks whose keys all follow the queries are skipped. 2 L S (D + E) FLOPs a head, and an exponential for each score. */
#include "calculators/cpu/kernels/attention.h"

/* Queries of a task, which share packed keys: whole blocks of queries, fewer if there are few heads, so that every thread
 * has enough tasks (the result of a block does not depend on it). FEW_QUERIES: so few that packing does not pay. */
enum { TASK_ROWS = 256, TASKS_EACH = 2, FEW_QUERIES = 4 };

/* ---- shared by both passes ---- */

attention_context attention_context_of_cpu(const sdlf_operation *operation)
{
    const sdlf_tensor *in = operation->in;
    const int64_t *q = in[0].shape.dim, *k = in[1].shape.dim;
    attention_context c = {.operation = operation, .q = &in[0], .k = &in[1], .v = &in[2]};
    c.mask = sdlf_tensor_present(&in[3]) ? &in[3] : NULL;
    if (operation->kind == SDLF_ATTENTION_FORWARD) c.unseen = in[4].data; /* NULL if absent */
    c.samples = q[0], c.heads = q[1], c.queries = q[2], c.depth = q[3];
    c.groups = k[1], c.keys = k[2], c.width = in[2].shape.dim[3];
    int64_t blocks = cpu_divide_up(c.keys, operation->attention.causal ? ATTENTION_CAUSAL_KEYS : ATTENTION_KEYS);
    c.block_keys = cpu_round_up(cpu_divide_up(c.keys, blocks), LANES);
    c.scratch = operation->workspace.data;
    return c;
}

int64_t attention_visible_cpu(const attention_context *c, int64_t row, int64_t rows)
{
    return c->operation->attention.causal ? row + rows + c->keys - c->queries : c->keys;
}

int64_t attention_divide_cpu(element *from, element **const *parts, const int64_t *sizes, int count)
{
    int64_t used = 0;
    for (int i = 0; i < count; i++) {
        *parts[i] = from != NULL ? from + used : NULL;
        used += cpu_round_up(sizes[i], LANES);
    }
    return used;
}

void attention_pack_cpu(element *panels, const sdlf_tensor *x, const attention_block *at, bool transposed)
{
    int64_t columns = x->shape.dim[3];
    product b = {.n = transposed ? at->keys : columns,
                 .k = transposed ? columns : at->keys,
                 .b = attention_row(x, at->sample, at->group, at->key),
                 .b_step = transposed ? 1 : x->stride[2],
                 .b_column = transposed ? x->stride[2] : 1};
    product_pack_panels_cpu(panels, &b, 0, b.n);
}

void attention_product_cpu(element *c, element alpha, const sdlf_tensor *x, const element *panels,
                           const attention_block *at, element *edge)
{
    product all = {.m = at->rows,
                   .n = at->keys,
                   .k = x->shape.dim[3],
                   .alpha = alpha,
                   .a = attention_row(x, at->sample, at->head, at->row),
                   .a_row = x->stride[2],
                   .a_step = 1,
                   .c = c,
                   .c_row = ATTENTION_STRIDE,
                   .panels = panels,
                   .panels_columns = cpu_round_up(at->keys, LANES)};
    product_compute_cpu(&all, edge);
}

static void add_mask(element *scores, const element *mask, int64_t step, int64_t count)
{
    if (step == 1) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++) scores[j] += mask[j];
    } else {
        for (int64_t j = 0; j < count; j++) scores[j] += mask[j * step];
    }
}

static void hide_unseen(const attention_context *c, element *scores, const bool *mask, int64_t step, int64_t count)
{
    bool hides = c->operation->attention.mask_hides;
    element unseen = c->unseen != NULL ? *c->unseen : (element)SDLF_ATTENTION_UNSEEN;
    for (int64_t j = 0; j < count; j++) scores[j] = mask[j * step] != hides ? scores[j] : unseen;
}

void attention_mask_cpu(const attention_context *c, const attention_block *at, int64_t row, element *scores)
{
    if (c->mask != NULL) {
        const int64_t *stride = c->mask->stride;
        int64_t first = at->sample * stride[0] + at->head * stride[1] + row * stride[2] + at->key * stride[3];
        if (c->mask->dtype == SDLF_BOOL)
            hide_unseen(c, scores, (const bool *)c->mask->data + first, stride[3], at->keys);
        else
            add_mask(scores, (const element *)c->mask->data + first, stride[3], at->keys);
    }
    for (int64_t j = cpu_max(0, attention_visible_cpu(c, row, 1) - at->key); j < at->keys; j++) scores[j] = -INFINITY;
}

/* ---- forward ---- */

/* A thread's scratch space. */
typedef struct forward_scratch {
    element *scores, *key_panels, *value_panels, *largest, *sum, *product;
} forward_scratch;

static int64_t divide_scratch(const attention_context *c, element *from, forward_scratch *s)
{
    int64_t sizes[] = {ATTENTION_ROWS * ATTENTION_STRIDE,
                       ATTENTION_KEYS * c->depth,
                       ATTENTION_KEYS * cpu_round_up(c->width, LANES),
                       TASK_ROWS,
                       TASK_ROWS,
                       PRODUCT_SCRATCH};
    element **parts[] = {&s->scores, &s->key_panels, &s->value_panels, &s->largest, &s->sum, &s->product};
    return attention_divide_cpu(from, parts, sizes, sizeof sizes / sizeof sizes[0]);
}

/* For few queries: keys are read in place. */
static void compute_few_scores(const attention_context *c, const attention_block *at, element *scores)
{
    element scale = (element)c->operation->attention.scale;
    for (int64_t j = 0; j < at->keys; j++) {
        const element *k = attention_row(c->k, at->sample, at->group, at->key + j);
        for (int64_t i = 0; i < at->rows; i++) {
            const element *q = attention_row(c->q, at->sample, at->head, at->row + i);
            scores[i * ATTENTION_STRIDE + j] = scale * attention_dot(q, k, c->depth);
        }
    }
}

/* The maximum of `before` and of whole vectors. NaN is ignored. */
static element largest_of(const element *scores, int64_t count, element before)
{
    element lane[LANES];
    vector largest = broadcast(before), other = largest;
    int64_t j = 0;
    for (; j + 2 * LANES <= count; j += 2 * LANES) {
        vector next = load(scores + j), second = load(scores + j + LANES);
        largest = choose(next > largest, next, largest);
        other = choose(second > other, second, other);
    }
    if (j < count) other = choose(load(scores + j) > other, load(scores + j), other);
    store(lane, choose(other > largest, other, largest));
    for (int i = 0; i < LANES; i++) before = lane[i] > before ? lane[i] : before;
    return before;
}

/* Replaces a row of scores by their exponentials and updates the running maximum and sum. Returns the factor by which
 * the accumulated values must be multiplied. scores has space for `count` rounded up to LANES. */
static element online_softmax_update(element *scores, int64_t count, element *largest, element *sum)
{
    int64_t padded = cpu_round_up(count, LANES);
    for (int64_t j = count; j < padded; j++) scores[j] = -INFINITY;
    element old = *largest, shift = largest_of(scores, padded, old);
    *largest = shift;
    if (shift == -INFINITY) shift = 0;
    vector total = {0};
    for (int64_t j = 0; j < padded; j += LANES) {
        vector p = attention_exponential(load(scores + j) - shift);
        store(scores + j, p);
        total += p;
    }
    element factor = exponential(old - shift);
    *sum = *sum * factor + sum_lanes(total);
    return factor;
}

static void scale_row(element *y, element factor, int64_t count)
{
    for (int64_t e = 0; e < count; e++) y[e] *= factor;
}

static void add_block(const attention_context *c, const attention_block *at, const forward_scratch *s, bool few,
                      int64_t first)
{
    const sdlf_tensor *v = c->v, *y = &c->operation->out[0];
    element *y_row = attention_row(y, at->sample, at->head, at->row);
    if (few)
        compute_few_scores(c, at, s->scores);
    else
        attention_product_cpu(s->scores, (element)c->operation->attention.scale, c->q, s->key_panels, at, s->product);
    for (int64_t i = 0; i < at->rows; i++) {
        element *scores = s->scores + i * ATTENTION_STRIDE, *to = y_row + i * y->stride[2];
        int64_t row = at->row + i;
        attention_mask_cpu(c, at, row, scores);
        element factor = online_softmax_update(scores, at->keys, &s->largest[row - first], &s->sum[row - first]);
        if (at->key == 0 || factor == 1) continue;
        scale_row(to, factor, c->width);
    }
    product all = {.m = at->rows,
                   .n = c->width,
                   .k = at->keys,
                   .alpha = 1,
                   .accumulate = at->key > 0,
                   .a = s->scores,
                   .a_row = ATTENTION_STRIDE,
                   .a_step = 1,
                   .b = attention_row(v, at->sample, at->group, at->key),
                   .b_step = v->stride[2],
                   .b_column = 1,
                   .c = y_row,
                   .c_row = y->stride[2],
                   .panels = few ? NULL : s->value_panels,
                   .panels_columns = cpu_round_up(c->width, LANES)};
    product_compute_cpu(&all, s->product);
}

static void finish_row(const attention_context *c, const attention_block *at, int64_t row, element largest, element sum)
{
    const sdlf_tensor *out = c->operation->out;
    int64_t number = (at->sample * c->heads + at->head) * c->queries + row;
    element *y = attention_row(&out[0], at->sample, at->head, row), factor = 1 / sum;
    scale_row(y, factor, c->width);
    if (sdlf_tensor_present(&out[1])) output(c->operation, 1)[number] = largest;
    if (sdlf_tensor_present(&out[2])) output(c->operation, 2)[number] = sum == 0 ? (element)NAN : sum;
}

static void forward_task(void *context, int64_t index, int thread)
{
    const attention_context *c = context;
    int64_t tasks = cpu_divide_up(c->queries, c->task_rows), first = index % tasks * c->task_rows;
    int64_t rows = cpu_min(c->task_rows, c->queries - first), head = index / tasks % c->heads;
    bool few = c->queries <= FEW_QUERIES;
    attention_block at = {.sample = index / tasks / c->heads, .head = head, .group = head / (c->heads / c->groups)};
    forward_scratch s;
    (void)divide_scratch(c, c->scratch + thread * c->scratch_size, &s);
    for (int64_t i = 0; i < rows; i++) s.largest[i] = -INFINITY, s.sum[i] = 0;
    int64_t visible = attention_visible_cpu(c, first, rows);
    for (at.key = 0; at.key < visible; at.key += c->block_keys) {
        at.keys = cpu_min(c->block_keys, c->keys - at.key);
        if (!few) attention_pack_cpu(s.key_panels, c->k, &at, true);
        if (!few) attention_pack_cpu(s.value_panels, c->v, &at, false);
        for (at.row = first; at.row < first + rows; at.row += ATTENTION_ROWS) {
            at.rows = cpu_min(ATTENTION_ROWS, first + rows - at.row);
            if (at.key < attention_visible_cpu(c, at.row, at.rows)) add_block(c, &at, &s, few, first);
        }
    }
    for (int64_t i = 0; i < rows; i++) finish_row(c, &at, first + i, s.largest[i], s.sum[i]);
}

static attention_context forward_context(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    attention_context c = attention_context_of_cpu(operation);
    forward_scratch unused;
    int64_t wanted = (int64_t)TASKS_EACH * cpu_from_const(calculator)->threads;
    c.scratch_size = divide_scratch(&c, NULL, &unused);
    for (c.task_rows = TASK_ROWS; c.task_rows > ATTENTION_ROWS; c.task_rows /= 2)
        if (c.samples * c.heads * cpu_divide_up(c.queries, c.task_rows) >= wanted) break;
    return c;
}

int64_t attention_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return cpu_from_const(calculator)->threads * forward_context(calculator, operation).scratch_size *
           (int64_t)sizeof(element);
}

sdlf_status attention_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    attention_context c = forward_context(calculator, operation);
    int64_t tasks = c.samples * c.heads * cpu_divide_up(c.queries, c.task_rows);
    int64_t scores = c.samples * c.heads * c.queries * c.keys;
    cpu_parallel(cpu_from(calculator), tasks, scores + cpu_time_of_flops(2 * scores * (c.depth + c.width)),
                 forward_task, &c);
    return SDLF_OK;
}
