/* SPDX-License-Identifier: MIT */
/* attention: the scores of one query at a time, then its weighted sums. Contract: <sdlf/operations/attention.h>. */
#include "calculators/reference/reference.h"

#include <math.h>

static double load(const sdlf_tensor *x, int64_t n, int64_t h, int64_t i, int64_t d)
{
    return get(x, at4(x, n, h, i, d));
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

/* p of a query and a key, and ds = scale p (dy v - dy y). */
typedef struct pair {
    double p, ds;
} pair;

static pair pair_of(const sdlf_operation *operation, query at, int64_t j)
{
    const sdlf_tensor *v = &operation->in[2], *y = &operation->in[4], *dy = &operation->in[7];
    double max = get(&operation->in[5], number_of(operation, at)),
           sum = get(&operation->in[6], number_of(operation, at));
    double dp = 0, projection = 0;
    for (int64_t e = 0; e < v->shape.dim[3]; e++) {
        double gradient = load(dy, at.n, at.h, at.i, e);
        dp += gradient * load(v, at.n, at.g, j, e);
        projection += gradient * load(y, at.n, at.h, at.i, e);
    }
    double p = exp(score(operation, at, j) - max) / sum;
    return (pair){p, operation->attention.scale * p * (dp - projection)};
}

static void backward_query(const sdlf_operation *operation, query at)
{
    const sdlf_tensor *k = &operation->in[1], *dq = &operation->out[0];
    int64_t keys = count_keys(operation, at), depth = k->shape.dim[3];
    for (int64_t first = 0; first < depth; first += PIECE) {
        int64_t count = depth - first < PIECE ? depth - first : PIECE;
        double piece[PIECE] = {0};
        for (int64_t j = 0; j < keys; j++) {
            double ds = pair_of(operation, at, j).ds;
            for (int64_t c = 0; c < count; c++) piece[c] += ds * load(k, at.n, at.g, j, first + c);
        }
        for (int64_t c = 0; c < count; c++) put(dq, at4(dq, at.n, at.h, at.i, first + c), piece[c]);
    }
}

/* Key j of key head g: one piece of its dk and dv. */
static void backward_key(const sdlf_operation *operation, int64_t n, int64_t g, int64_t j, int64_t first)
{
    const sdlf_tensor *q = &operation->in[0], *dy = &operation->in[7], *dk = &operation->out[1],
                      *dv = &operation->out[2];
    int64_t depth = q->shape.dim[3], width = dy->shape.dim[3], heads = group_size(operation);
    double of_key[PIECE] = {0}, of_value[PIECE] = {0};
    for (int64_t h = g * heads; h < (g + 1) * heads; h++) {
        for (int64_t i = 0; i < q->shape.dim[2]; i++) {
            query at = {n, h, g, i};
            if (j >= count_keys(operation, at)) continue;
            pair found = pair_of(operation, at, j);
            for (int64_t c = 0; c < PIECE && first + c < depth; c++)
                of_key[c] += found.ds * load(q, n, h, i, first + c);
            for (int64_t e = 0; e < PIECE && first + e < width; e++)
                of_value[e] += found.p * load(dy, n, h, i, first + e);
        }
    }
    for (int64_t c = 0; c < PIECE && first + c < depth; c++) put(dk, at4(dk, n, g, j, first + c), of_key[c]);
    for (int64_t e = 0; e < PIECE && first + e < width; e++) put(dv, at4(dv, n, g, j, first + e), of_value[e]);
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
    const int64_t *k = operation->in[1].shape.dim, width = operation->in[2].shape.dim[3];
    for_each_query(operation, backward_query);
    for (int64_t n = 0; n < k[0]; n++)
        for (int64_t g = 0; g < k[1]; g++)
            for (int64_t j = 0; j < k[2]; j++)
                for (int64_t first = 0; first < k[3] || first < width; first += PIECE)
                    backward_key(operation, n, g, j, first);
    return SDLF_OK;
}
