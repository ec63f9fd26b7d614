/* SPDX-License-Identifier: MIT */
/* attention_forward: a thread block has 64 queries of a head, and goes through the keys in blocks of 64: scores and their exponentials stay in
 * registers. Each query keeps the largest score and the sum of exponentials so far; where a later block has a larger one, what was added up
 * is scaled down. 2 L S (D + E) FLOPs a head (three times as many on tensor cores in fp32). */
#include <type_traits>

#include "calculators/cuda/attention/attention.cuh"

template <sdlf_math MATH, int D> constexpr int forward_words()
{
    return 2 * ATTENTION_BLOCK * row_words<MATH>(D) + D * row_words<MATH>(ATTENTION_BLOCK);
}

/* Of the four lanes that share a row. */
static __device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

static __device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Scores become exponentials, and what has been added up is scaled: rows g and g + 8. */
template <sdlf_math MATH, int D>
static __device__ __forceinline__ void take_in(float (&scores)[TILES][4], float (&y)[D / TILE][4], float (&largest)[2],
                                               float (&sum)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float found = largest[half];
#pragma unroll
        for (int n = 0; n < TILES; n++) found = fmaxf(found, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
        found = quad_max(found);
        float shift = found == -INFINITY ? 0.0f : found, factor = exponential<MATH>(largest[half] - shift), added = 0;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                scores[n][i] = exponential<MATH>(scores[n][i] - shift);
                added += scores[n][i];
            }
        }
        sum[half] = sum[half] * factor + added; /* of this lane's columns */
        largest[half] = found;
#pragma unroll
        for (int n = 0; n < D / TILE; n++) y[n][2 * half] *= factor, y[n][2 * half + 1] *= factor;
    }
}

template <sdlf_math MATH, int D>
static __global__ void __launch_bounds__(ATTENTION_THREADS) attention_forward(attention_arguments p)
{
    extern __shared__ uint32_t shared[];
    constexpr int LINE = row_words<MATH>(D);
    uint32_t *q = shared, *k = q + ATTENTION_BLOCK * LINE, *v = k + ATTENTION_BLOCK * LINE;
    int first = static_cast<int>(blockIdx.x) * ATTENTION_BLOCK, lane = static_cast<int>(threadIdx.x) % WARP;
    int row = static_cast<int>(threadIdx.x) / WARP * WARP_ROWS, g = lane / 4, t = lane % 4;
    await_kernels();
    const attention_head at =
        attention_head_of(p, static_cast<int>(blockIdx.y) / p.heads, static_cast<int>(blockIdx.y) % p.heads);
    load_block<MATH, D>(q, head_rows(p.q, at.sample, at.head), first);
    float scores[TILES][4], y[D / TILE][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    int visible = p.causal ? min(p.keys, first + ATTENTION_BLOCK + p.keys - p.queries) : p.keys;
    for (int key = 0; key < visible; key += ATTENTION_BLOCK) {
        __syncthreads();
        load_block<MATH, D>(k, head_rows(p.k, at.sample, at.group), key);
        load_transposed<MATH, D>(v, head_rows(p.v, at.sample, at.group), key);
        __syncthreads();
        multiply_rows<MATH, D>(scores, q + row * LINE, k);
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[n][i] =
                    finish_score(p, at, first + row + g + i / 2 * 8, key + n * TILE + 2 * t + i % 2, scores[n][i]);
        take_in<MATH, D>(scores, y, largest, sum);
        multiply_scores<MATH, D>(y, scores, v);
    }
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float all = quad_sum(sum[half]);
        int query = first + row + g + 8 * half;
        factor[half] = 1 / all;
        if (t != 0 || query >= p.queries) continue;
        int64_t number = (static_cast<int64_t>(at.sample) * p.heads + at.head) * p.queries + query;
        if (p.max != nullptr) p.max[number] = largest[half];
        if (p.sum != nullptr) p.sum[number] = all > 0 ? all : NAN;
    }
    store_rows<D>(head_rows(p.y, at.sample, at.head), first + row, y, factor);
}

int attention_forward_shared(sdlf_math math, int depth)
{
    int words = 0;
    with_attention_shape(math, depth,
                         [&](auto mode, auto columns) { words = forward_words<mode.value, columns.value>(); });
    return words * static_cast<int>(sizeof(uint32_t));
}

sdlf_status attention_forward_cuda(sdlf_calculator *base, const sdlf_operation *operation)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    attention_arguments p = attention_arguments_of(operation);
    int depth = attention_depth(operation), shared = attention_forward_shared(calculator->math, depth);
    dim3 blocks(static_cast<unsigned>(cuda_ceil_div(p.queries, ATTENTION_BLOCK)),
                static_cast<unsigned>(p.samples * p.heads));
    sdlf_status status = SDLF_OK;
    with_attention_shape(calculator->math, depth, [&](auto mode, auto columns) {
        auto *kernel = attention_forward<mode.value, columns.value>;
        status = allow_shared(kernel, shared);
        if (status == SDLF_OK) launch_cluster(calculator, kernel, blocks, dim3(ATTENTION_THREADS), shared, dim3(1), p);
    });
    return status == SDLF_OK ? cuda_check_launch("attention_forward") : status;
}
