/* SPDX-License-Identifier: MIT */
/* Cases of attention.
 *
 * Tolerance: scores are scaled dot products of D terms up to 1; an absolute error of a score is a relative error of its exponential. Outputs
 * are means of values up to 1; gradients are sums of such over the queries or keys. With 16-bit storage, exponentials are rounded to it too. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>

typedef enum mask_kind { NO_MASK = 0, DENSE_MASK, BROADCAST_MASK, BOOL_MASK, HIDING_MASK, MASKS } mask_kind;

static const char *const mask_name[MASKS] = {"", " mask", " mask of keys", " bool mask", " hiding mask"};

/* kernel_case.rounding for 16-bit storage: exponentials up to 1 are rounded to bfloat16 by 2^-8, with tolerances of 64 or more. The harness sets
 * it for float32. */
#define STORED_ROUNDING 0x1p-12

typedef struct sizes {
    int64_t n, h, g, t, s, d, e;
} sizes;

/* (N,T,H,D) in memory, seen as (N,H,T,D), or a part of (N,T,3,H,D). */
static sdlf_tensor heads(sdlf_dtype t, sdlf_shape shape, int parts)
{
    sdlf_tensor x = kernel_tensor(t, shape);
    const int64_t *dim = shape.dim;
    if (parts == 0) return x;
    x.stride[2] = parts * dim[1] * dim[3], x.stride[1] = dim[3], x.stride[0] = dim[2] * x.stride[2];
    return x;
}

static sdlf_tensor make_mask(sdlf_dtype t, const sizes *z, mask_kind kind)
{
    sdlf_shape scores = sdlf_shape(z->n, z->h, z->t, z->s);
    switch (kind) {
    case DENSE_MASK: return kernel_tensor(t, scores);
    case BROADCAST_MASK: return sdlf_tensor_broadcast(kernel_tensor(t, sdlf_shape(z->n, 1, 1, z->s)), scores);
    case BOOL_MASK:
    case HIDING_MASK: return sdlf_tensor_broadcast(kernel_tensor(SDLF_BOOL, sdlf_shape(1, z->t, z->s)), scores);
    default: return (sdlf_tensor){.dtype = SDLF_NONE};
    }
}

/* Compute y, max and sum with the forward pass. */
static void run_forward(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_operation forward = {.kind = SDLF_ATTENTION_FORWARD, .attention = operation->attention};
    for (int i = 0; i < 4; i++) forward.in[i] = operation->in[i];
    for (int i = 0; i < 3; i++) forward.out[i] = operation->in[4 + i];
    kernel_prepare(calculator, &forward);
}

/* The same for gradients, times the root of the tolerance: p and ds, of magnitude 1 / S (of the first queries in a
 * causal operation 1), are rounded to bfloat16, and added over keys, or over the queries of a group. */
static double backward_rounding(const sizes *z, bool causal)
{
    double added = (double)(z->s > z->t * (z->h / z->g) ? z->s : z->t * (z->h / z->g));
    return 0x1p-8 * (causal ? 1 : sqrt(added) / (double)z->s);
}

/* The forward pass; and, unless only a device is filled, the backward pass. */
static void attention_pair(kernel_sink *sink, sdlf_dtype t, sizes z, mask_kind mask, bool causal, int parts, bool fills)
{
    sdlf_tensor q = heads(t, sdlf_shape(z.n, z.h, z.t, z.d), parts);
    sdlf_tensor k = heads(t, sdlf_shape(z.n, z.g, z.s, z.d), parts),
                v = heads(t, sdlf_shape(z.n, z.g, z.s, z.e), parts);
    sdlf_tensor y = heads(t, sdlf_shape(z.n, z.h, z.t, z.e), parts > 0),
                row = kernel_tensor(t, sdlf_shape(z.n, z.h, z.t));
    kernel_case made = {.operation = {.kind = SDLF_ATTENTION_FORWARD, .in = {q, k, v}, .out = {y, row, row}},
                        .fills_device = fills};
    sdlf_operation *o = &made.operation;
    o->in[3] = make_mask(t, &z, mask);
    o->attention = (sdlf_attention_options){.scale = 1 / sqrtf((float)z.d), .causal = causal};
    if (mask >= BOOL_MASK) made.in[3] = (kernel_fill){VALUES_INTEGERS, 2};
    o->attention.mask_hides = mask == HIDING_MASK;
    if (mask == HIDING_MASK) o->in[4] = kernel_tensor(t, sdlf_shape(1));
    made.tolerance = 2 * (double)z.d + 6 * (double)z.s + 64; /* sums of S exponentials, of magnitude S */
    if (t == SDLF_FLOAT32) made.rounding = STORED_ROUNDING;
    char text[100];
    snprintf(text, sizeof text, "%dx%dx%dx%d of %dx%dx%d%s%s%s", (int)z.n, (int)z.h, (int)z.t, (int)z.d, (int)z.g,
             (int)z.s, (int)z.e, mask_name[mask], causal ? " causal" : "", parts > 0 ? " interleaved" : "");
    kernel_emit(sink, &made, "%s", text);
    if (fills) return;
    o->kind = SDLF_ATTENTION_BACKWARD;
    o->in[4] = y, o->in[5] = o->in[6] = row, o->in[7] = y;
    o->out[0] = q, o->out[1] = k, o->out[2] = v;
    made.prepare = run_forward;
    made.tolerance = 8 * ((double)z.d + (double)z.e + sqrt((double)(z.t * (z.h / z.g)))) + 64;
    if (t == SDLF_FLOAT32) made.rounding = backward_rounding(&z, causal) / sqrt(made.tolerance);
    kernel_emit(sink, &made, "%s", text);
}

/* A mask of minus infinity that hides all keys of some queries, and scores of which one is infinite or NaN. */
static void strange_scores(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *mask = &operation->in[3];
    int64_t queries = mask->shape.dim[2], keys = mask->shape.dim[3];
    (void)calculator;
    for (int64_t i = 0; i < queries * keys; i++) {
        int64_t row = i / keys, j = i % keys;
        double value = row % 4 == 0 ? -(double)INFINITY : 0;
        if (row % 4 == 1 && j < keys - 1) value = -(double)INFINITY;
        if (row % 4 == 2 && j == keys / 2) value = row % 8 == 2 ? (double)NAN : (double)INFINITY;
        if (mask->dtype == SDLF_FLOAT32)
            ((float *)mask->data)[i] = (float)value;
        else
            ((double *)mask->data)[i] = value;
    }
}

void attention_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const sizes all[] = {
        {1, 1, 1, 1, 1, 1, 1},     {2, 2, 2, 5, 5, 3, 3},     {1, 4, 2, 3, 9, 16, 8},     {2, 3, 1, 1, 300, 32, 32},
        {1, 1, 1, 256, 256, 8, 8}, {1, 2, 2, 70, 70, 64, 64}, {1, 2, 1, 97, 200, 20, 33}, {1, 1, 1, 300, 410, 8, 8},
        {3, 8, 8, 4, 40, 16, 16},  {1, 2, 2, 65, 65, 40, 40}, {1, 2, 1, 66, 130, 80, 80}, {1, 1, 1, 67, 193, 128, 128},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int mask = 0; mask < MASKS; mask++)
            for (int causal = 0; causal < 2; causal++)
                attention_pair(sink, t, all[i], (mask_kind)mask, causal, ((int)i + mask) % 3 == 0 ? 0 : 3, false);
    /* enough heads for blocks of 128 queries on a device with 132 multiprocessors */
    static const sizes filling[] = {
        {34, 8, 8, 65, 65, 40, 16}, {17, 8, 2, 130, 200, 64, 64}, {11, 12, 12, 130, 140, 128, 72}};
    for (size_t i = 0; i < sizeof filling / sizeof filling[0]; i++)
        for (int causal = 0; causal < 2; causal++)
            attention_pair(sink, t, filling[i], NO_MASK, causal, i == 1 ? 0 : 3, true);
    for (int causal = 0; causal < 2; causal++) /* samples, groups of heads, tiles of queries and of keys */
        attention_pair(sink, t, (sizes){2, 6, 2, 130, 200, 32, 16}, NO_MASK, causal, 3, false);
    for (int64_t keys = 9; keys <= 409; keys += 400) {
        sdlf_tensor q = kernel_tensor(t, sdlf_shape(1, 1, 17, 8)), k = kernel_tensor(t, sdlf_shape(1, 1, keys, 8));
        kernel_case made = {
            .operation = {.kind = SDLF_ATTENTION_FORWARD,
                          .in = {q, k, k, kernel_tensor(t, sdlf_shape(1, 1, 17, keys))},
                          .out = {q, kernel_tensor(t, sdlf_shape(1, 1, 17)), kernel_tensor(t, sdlf_shape(1, 1, 17))}},
            .prepare = strange_scores,
            .tolerance = 80 + 6 * (double)keys, /* sums of as many exponentials */
            .rounding = t == SDLF_FLOAT32 ? STORED_ROUNDING : 0};
        made.operation.attention.scale = 1;
        kernel_emit(sink, &made, "%d keys, NaN and infinities", (int)keys);
        made.prepare = NULL;
        made.in[0].values = made.in[1].values = VALUES_WIDE;
        made.in[3].values = VALUES_GRID;
        made.operation.attention.scale = 1.0f / 64;
        made.tolerance = 1 << 20; /* scores of some thousands, whose rounding error is amplified by the exponential */
        kernel_emit(sink, &made, "%d keys, wide scores", (int)keys);
    }
    /* equal scores of about 1000: every exponential is 1 */
    sdlf_tensor one = kernel_tensor(t, sdlf_shape(1, 1, 1, 8)), q = kernel_tensor(t, sdlf_shape(1, 1, 17, 8));
    sdlf_tensor k = kernel_tensor(t, sdlf_shape(1, 1, 4100, 8)), row = kernel_tensor(t, sdlf_shape(1, 1, 17));
    kernel_case made = {
        .operation = {.kind = SDLF_ATTENTION_FORWARD,
                      .in = {sdlf_tensor_broadcast(one, q.shape), sdlf_tensor_broadcast(one, k.shape), k},
                      .out = {q, row, row}},
        .tolerance = 6 * 4100 + 64,
        .rounding = t == SDLF_FLOAT32 ? STORED_ROUNDING : 0};
    made.operation.attention.scale = 1000;
    kernel_emit(sink, &made, "4100 equal scores");
}

void attention_bench(kernel_sink *sink, sdlf_dtype t)
{
    attention_pair(sink, t, (sizes){1, 12, 12, 197, 197, 64, 64}, NO_MASK, false, 3, false);
    attention_pair(sink, t, (sizes){32, 4, 4, 128, 128, 32, 32}, NO_MASK, true, 3, false);
    attention_pair(sink, t, (sizes){1, 8, 8, 1024, 1024, 64, 64}, NO_MASK, true, 3, false);
    attention_pair(sink, t, (sizes){1, 8, 2, 1, 2048, 64, 64}, NO_MASK, false, 0, false);
}
