/* SPDX-License-Identifier: MIT */
/* attention: the scores of one query at a time, then its weighted sums. Contract: <sdlf/operations/attention.h>. */
#include "calculators/reference/reference.h"

#include <math.h>
#include <string.h>

static double load(const sdlf_tensor *x, int64_t n, int64_t h, int64_t i, int64_t d)
{
    return get(x, at4(x, n, h, i, d));
}

static void add_to(const sdlf_tensor *x, int64_t n, int64_t h, int64_t i, int64_t d, double value)
{
    int64_t at = at4(x, n, h, i, d);
    put(x, at, get(x, at) + value);
}

/* A query: its sample, its head, the key head that it attends to, its index. */
typedef struct query {
    int64_t n, h, g, i;
} query;

static int64_t group_size(const sdlf_operation *operation)
{
    return operation->in[0].shape.dim[1] / operation->in[1].shape.dim[1];
}

/* Its index among all queries. */
static int64_t number_of(const sdlf_operation *operation, query at)
{
    const int64_t *q = operation->in[0].shape.dim;
    return (at.n * q[1] + at.h) * q[2] + at.i;
}

/* The number of keys that it may attend to. */
static int64_t count_keys(const sdlf_operation *operation, query at)
{
    int64_t queries = operation->in[0].shape.dim[2], keys = operation->in[1].shape.dim[2];
    return operation->attention.causal ? at.i + keys - queries + 1 : keys;
}

/* Rounded to T, or to float32 if operands are stored in 16 bits: adding a large mask rounds a score away. */
static double rounded(const sdlf_operation *operation, double value)
{
    return operation->in[0].dtype != SDLF_FLOAT64 ? (double)(float)value : value;
}

static double score(const sdlf_operation *operation, query at, int64_t j)
{
    const sdlf_tensor *q = &operation->in[0], *k = &operation->in[1], *mask = &operation->in[3];
    double sum = 0;
    for (int64_t d = 0; d < q->shape.dim[3]; d++) sum += load(q, at.n, at.h, at.i, d) * load(k, at.n, at.g, j, d);
    sum *= operation->attention.scale;
    if (!sdlf_tensor_present(mask)) return sum;
    if (mask->dtype != SDLF_BOOL) return rounded(operation, sum + load(mask, at.n, at.h, at.i, j));
    bool value = ((const bool *)mask->data)[at4(mask, at.n, at.h, at.i, j)];
    if (value != operation->attention.mask_hides) return sum;
    bool given = operation->kind == SDLF_ATTENTION_FORWARD && sdlf_tensor_present(&operation->in[4]);
    return given ? get(&operation->in[4], 0) : SDLF_ATTENTION_UNSEEN;
}

/* p[j] = exp(score[j] - max) / sum */
typedef struct softmax {
    double max, sum;
} softmax;

static softmax sum_exponentials(const sdlf_operation *operation, query at)
{
    int64_t keys = count_keys(operation, at);
    softmax s = {.max = -INFINITY};
    for (int64_t j = 0; j < keys; j++) {
        double found = score(operation, at, j);
        if (found > s.max) s.max = found;
    }
    s.max = rounded(operation, s.max); /* as the backward pass will read it */
    for (int64_t j = 0; j < keys; j++) s.sum += exp(score(operation, at, j) - s.max);
    return s;
}

/* Channels of a query's output that are accumulated at a time, in float64. Its scores are recomputed for each piece. */
enum { PIECE = 64 };

static void forward_query(const sdlf_operation *operation, query at)
{
    const sdlf_tensor *v = &operation->in[2], *y = operation->out, *max = y + 1, *sum = y + 2;
    softmax s = sum_exponentials(operation, at);
    int64_t keys = count_keys(operation, at), width = v->shape.dim[3];
    for (int64_t first = 0; first < width; first += PIECE) {
        int64_t count = width - first < PIECE ? width - first : PIECE;
        double piece[PIECE] = {0};
        for (int64_t j = 0; j < keys; j++) {
            double p = exp(score(operation, at, j) - s.max) / s.sum;
            for (int64_t e = 0; e < count; e++) piece[e] += p * load(v, at.n, at.g, j, first + e);
        }
        for (int64_t e = 0; e < count; e++) put(y, at4(y, at.n, at.h, at.i, first + e), piece[e]);
    }
    if (sdlf_tensor_present(max)) put(max, number_of(operation, at), s.max);
    if (sdlf_tensor_present(sum)) put(sum, number_of(operation, at), s.sum);
}

static void backward_query(const sdlf_operation *operation, query at)
{
    const sdlf_tensor *q = &operation->in[0], *k = &operation->in[1], *v = &operation->in[2];
    const sdlf_tensor *y = &operation->in[4], *dy = &operation->in[7], *d = operation->out;
    softmax s = {get(&operation->in[5], number_of(operation, at)), get(&operation->in[6], number_of(operation, at))};
    double scale = operation->attention.scale, projection = 0;
    int64_t depth = q->shape.dim[3], width = v->shape.dim[3];
    for (int64_t e = 0; e < width; e++) projection += load(dy, at.n, at.h, at.i, e) * load(y, at.n, at.h, at.i, e);
    for (int64_t j = 0; j < count_keys(operation, at); j++) {
        double p = exp(score(operation, at, j) - s.max) / s.sum, dp = 0;
        for (int64_t e = 0; e < width; e++) {
            dp += load(dy, at.n, at.h, at.i, e) * load(v, at.n, at.g, j, e);
            add_to(&d[2], at.n, at.g, j, e, p * load(dy, at.n, at.h, at.i, e));
        }
        double ds = scale * p * (dp - projection);
        for (int64_t c = 0; c < depth; c++) {
            add_to(&d[0], at.n, at.h, at.i, c, ds * load(k, at.n, at.g, j, c));
            add_to(&d[1], at.n, at.g, j, c, ds * load(q, at.n, at.h, at.i, c));
        }
    }
}

static void for_each_query(const sdlf_operation *operation, void (*compute)(const sdlf_operation *, query))
{
    const int64_t *q = operation->in[0].shape.dim;
    for (int64_t n = 0; n < q[0]; n++)
        for (int64_t h = 0; h < q[1]; h++)
            for (int64_t i = 0; i < q[2]; i++) compute(operation, (query){n, h, h / group_size(operation), i});
}

sdlf_status attention_forward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    for_each_query(operation, forward_query);
    return SDLF_OK;
}

sdlf_status attention_backward_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    for (int i = 0; i < 3; i++) {
        int64_t count = sdlf_tensor_count(&operation->out[i]);
        for (int64_t e = 0; e < count; e++)
            memset(element_address(&operation->out[i], e), 0, sdlf_dtype_size(operation->out[i].dtype));
    }
    for_each_query(operation, backward_query);
    return SDLF_OK;
}
