/* SPDX-License-Identifier: MIT */
/* What the forward and backward passes of attention share. See attention.c. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_ATTENTION_H
#define SDLF_CALCULATORS_CPU_KERNELS_ATTENTION_H

#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/product.h"

/* Maximum queries and keys of a score block; keys of a block under causal masking, where many of them may be masked;
 * elements from one row of a block to the next. */
enum {
    ATTENTION_ROWS = 64,
    ATTENTION_KEYS = 256,
    ATTENTION_CAUSAL_KEYS = 64,
    ATTENTION_STRIDE = ATTENTION_KEYS + LANES
};

typedef struct attention_context {
    const sdlf_operation *operation;
    const sdlf_tensor *q, *k, *v, *mask;                         /* NULL: no mask */
    const element *unseen;                                       /* NULL: SDLF_ATTENTION_UNSEEN */
    int64_t samples, heads, groups, queries, keys, depth, width; /* N, H, G, T, S, D, E */
    int64_t block_keys, task_rows;
    element *scratch; /* scratch_size elements for each thread */
    int64_t scratch_size;
} attention_context;

/* A query head, the key head that it attends to, and a block of its scores: queries from `row`, keys from `key` on. */
typedef struct attention_block {
    int64_t sample, head, group, row, rows, key, keys;
} attention_block;

attention_context attention_context_of_cpu(const sdlf_operation *operation);

/* The number of keys visible to the last of these queries. */
int64_t attention_visible_cpu(const attention_context *c, int64_t row, int64_t rows);

/* Partitions a thread's scratch space into `count` parts of `sizes` elements, each at a multiple of LANES; `from`
 * NULL: only the size is computed. Returns the total number of elements. */
int64_t attention_divide_cpu(element *from, element **const *parts, const int64_t *sizes, int count);

/* Packs a block of k or v into panels, transposed (one column for each key) or not; size: that of the block, with the
 * keys rounded up to LANES if transposed, else the columns. */
void attention_pack_cpu(element *panels, const sdlf_tensor *x, const attention_block *at, bool transposed);

/* c (rows,keys) = alpha x y^T, for the rows of x (N,H,T,.) and the packed panels of a block of k or v, transposed; the
 * rows of c are ATTENTION_STRIDE apart. `edge` has PRODUCT_EDGE elements. */
void attention_product_cpu(element *c, element alpha, const sdlf_tensor *x, const element *panels,
                           const attention_block *at, element *edge);

/* Masks the scores of row `row` of a block. */
void attention_mask_cpu(const attention_context *c, const attention_block *at, int64_t row, element *scores);

/* The address of a row, given its sample, head and index. */
static inline element *attention_row(const sdlf_tensor *x, int64_t sample, int64_t head, int64_t row)
{
    return (element *)x->data + sample * x->stride[0] + head * x->stride[1] + row * x->stride[2];
}

/* exp(x) for x <= 0 and NaN: 0 where x is below -87, including minus infinity. */
static inline vector attention_exponential(vector x)
{
#if SDLF_VECTOR_BYTES / SDLF_LANES == 4
    return (vector)((lanes_mask)exponential_lanes(x) & ~(x < -87));
#else
    element lane[LANES];
    store(lane, x);
    for (int i = 0; i < LANES; i++) lane[i] = exponential(lane[i]);
    return load(lane);
#endif
}

/* The dot product of a and b, summed in an order that depends only on count. */
static inline element attention_dot(const element *a, const element *b, int64_t count)
{
    vector even = {0}, odd = {0}, rest[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + LANES) * load(b + i + LANES);
    }
    if (i + LANES <= count) {
        even += load(a + i) * load(b + i);
        i += LANES;
    }
    if (i == count) return sum_lanes(even + odd);
    memcpy(&rest[0], a + i, (size_t)(count - i) * sizeof *a);
    memcpy(&rest[1], b + i, (size_t)(count - i) * sizeof *b);
    return sum_lanes(even + odd + rest[0] * rest[1]);
}

#endif
