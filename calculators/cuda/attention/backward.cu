/* SPDX-License-Identifier: MIT */
/* attention_backward: recomputes p from max and sum, ds = scale p (dy v^T - delta), where delta, the dot product of dy and y, is precomputed by
 * a kernel into the workspace. Then one kernel's blocks have 64 queries, iterate over the keys, and accumulate dq = ds k; another's have 64
 * keys, iterate over the queries of all heads that read them, transposed, and accumulate dv = p^T dy and dk = ds^T q. This needs no atomics, and
 * every order is fixed, at the cost of computing scores and dy v^T twice: 14 L S D FLOPs a head instead of 10. */
#include <type_traits>

#include "calculators/cuda/attention/attention.cuh"

/* Shared memory of a kernel, in words: four tiles of rows, and statistics of the queries. */
template <sdlf_math MATH, int D> constexpr int backward_words()
{
    return 4 * ATTENTION_BLOCK * row_words<MATH>(D) + 3 * ATTENTION_BLOCK;
}

/* ---- delta: one warp per query ---- */

static __global__ void __launch_bounds__(ATTENTION_THREADS) attention_delta(attention_arguments p)
{
    int64_t query = grid_first() / WARP, lane = threadIdx.x % WARP;
    wait_and_launch_dependent_grids();
    if (query >= static_cast<int64_t>(p.samples) * p.heads * p.queries) return;
    int row = static_cast<int>(query % p.queries), head = static_cast<int>(query / p.queries % p.heads);
    int sample = static_cast<int>(query / p.queries / p.heads);
    attention_rows y = head_rows(p.y, sample, head), dy = head_rows(p.dy, sample, head);
    const float *y_row = static_cast<const float *>(y.data) + row * y.stride;
    const float *dy_row = static_cast<const float *>(dy.data) + row * dy.stride;
    float sum = 0;
    for (int64_t column = lane; column < y.columns; column += WARP) sum += y_row[column] * dy_row[column];
    for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) p.delta[query] = sum;
}

/* ---- what both kernels compute from scores ---- */

/* What the gradient of a query needs. Past the last query: scores are minus infinity, so p = 0. */
typedef struct query_statistics {
    float max, inverse, delta;
} query_statistics;

static __device__ __forceinline__ query_statistics statistics_of(const attention_arguments &p, const attention_head &at,
                                                                 int query)
{
    if (query >= p.queries) return {0, 0, 0};
    int64_t number = (static_cast<int64_t>(at.sample) * p.heads + at.head) * p.queries + query;
    return {p.max[number], 1 / p.sum[number], p.delta[number]};
}

/* The dot product becomes p, and dp becomes ds. */
template <sdlf_math MATH>
static __device__ __forceinline__ void finish_pair(const attention_arguments &p, const attention_head &at, int query,
                                                   int key, const query_statistics &s, float &product, float &dp)
{
    product = exponential<MATH>(finish_score(p, at, query, key, product) - s.max) * s.inverse;
    dp = p.scale * product * (dp - s.delta);
}

/* ---- dq ---- */

template <sdlf_math MATH, int D>
static __global__ void __launch_bounds__(ATTENTION_THREADS) attention_backward_queries(attention_arguments p)
{
    extern __shared__ uint32_t shared[];
    constexpr int LINE = row_words<MATH>(D), BLOCK = ATTENTION_BLOCK * LINE;
    uint32_t *q = shared, *dy = q + BLOCK, *k = dy + BLOCK, *v = k + BLOCK;
    int first = static_cast<int>(blockIdx.x) * ATTENTION_BLOCK, lane = static_cast<int>(threadIdx.x) % WARP;
    int row = static_cast<int>(threadIdx.x) / WARP * WARP_ROWS, g = lane / 4, t = lane % 4;
    wait_and_launch_dependent_grids();
    const attention_head at =
        attention_head_of(p, static_cast<int>(blockIdx.y) / p.heads, static_cast<int>(blockIdx.y) % p.heads);
    load_block<MATH, D>(q, head_rows(p.q, at.sample, at.head), first);
    load_block<MATH, D>(dy, head_rows(p.dy, at.sample, at.head), first);
    const query_statistics own[2] = {statistics_of(p, at, first + row + g), statistics_of(p, at, first + row + g + 8)};
    float scores[TILES][4], dp[TILES][4], dq[D / TILE][4] = {};
    int visible = p.causal ? min(p.keys, first + ATTENTION_BLOCK + p.keys - p.queries) : p.keys;
    for (int key = 0; key < visible; key += ATTENTION_BLOCK) {
        __syncthreads();
        load_block<MATH, D>(k, head_rows(p.k, at.sample, at.group), key);
        load_block<MATH, D>(v, head_rows(p.v, at.sample, at.group), key);
        __syncthreads();
        multiply_rows<MATH, D>(scores, q + row * LINE, k);
        multiply_rows<MATH, D>(dp, dy + row * LINE, v);
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                finish_pair<MATH>(p, at, first + row + g + i / 2 * 8, key + n * TILE + 2 * t + i % 2, own[i / 2],
                                  scores[n][i], dp[n][i]);
        multiply_scores<MATH, D>(dq, dp, k);
    }
    const float one[2] = {1, 1};
    store_rows<float, D>(head_rows(p.dq, at.sample, at.head), first + row, dq, one);
}

/* ---- dk and dv ---- */

template <sdlf_math MATH, int D>
static __global__ void __launch_bounds__(ATTENTION_THREADS) attention_backward_keys(attention_arguments p)
{
    extern __shared__ uint32_t shared[];
    constexpr int LINE = row_words<MATH>(D), BLOCK = ATTENTION_BLOCK * LINE;
    uint32_t *k = shared, *v = k + BLOCK, *q = v + BLOCK, *dy = q + BLOCK;
    query_statistics *statistics = reinterpret_cast<query_statistics *>(dy + BLOCK);
    int first = static_cast<int>(blockIdx.x) * ATTENTION_BLOCK, lane = static_cast<int>(threadIdx.x) % WARP;
    int row = static_cast<int>(threadIdx.x) / WARP * WARP_ROWS, g = lane / 4, t = lane % 4;
    int sample = static_cast<int>(blockIdx.y) / p.groups, group = static_cast<int>(blockIdx.y) % p.groups;
    int shared_by = p.heads / p.groups, earliest = p.causal ? max(0, first - (p.keys - p.queries)) : 0;
    wait_and_launch_dependent_grids();
    load_block<MATH, D>(k, head_rows(p.k, sample, group), first);
    load_block<MATH, D>(v, head_rows(p.v, sample, group), first);
    float scores[TILES][4], dp[TILES][4], dk[D / TILE][4] = {}, dv[D / TILE][4] = {};
    for (int head = group * shared_by; head < (group + 1) * shared_by; head++) {
        attention_head at = attention_head_of(p, sample, head);
        for (int query = earliest / ATTENTION_BLOCK * ATTENTION_BLOCK; query < p.queries; query += ATTENTION_BLOCK) {
            __syncthreads();
            load_block<MATH, D>(q, head_rows(p.q, sample, head), query);
            load_block<MATH, D>(dy, head_rows(p.dy, sample, head), query);
            if (threadIdx.x < ATTENTION_BLOCK)
                statistics[threadIdx.x] = statistics_of(p, at, query + static_cast<int>(threadIdx.x));
            __syncthreads();
            multiply_rows<MATH, D>(scores, k + row * LINE, q);
            multiply_rows<MATH, D>(dp, v + row * LINE, dy);
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int column = n * TILE + 2 * t + i % 2;
                    finish_pair<MATH>(p, at, query + column, first + row + g + i / 2 * 8, statistics[column],
                                      scores[n][i], dp[n][i]);
                }
            multiply_scores<MATH, D>(dv, scores, dy);
            multiply_scores<MATH, D>(dk, dp, q);
        }
    }
    const float one[2] = {1, 1};
    store_rows<float, D>(head_rows(p.dk, sample, group), first + row, dk, one);
    store_rows<float, D>(head_rows(p.dv, sample, group), first + row, dv, one);
}

int attention_backward_shared(sdlf_math math, int depth)
{
    int words = 0;
    with_attention_shape(math, depth,
                         [&](auto mode, auto columns) { words = backward_words<mode.value, columns.value>(); });
    return words * static_cast<int>(sizeof(uint32_t));
}

sdlf_status attention_backward_cuda(sdlf_calculator *base, const sdlf_operation *operation)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    if (operation->in[0].shape.dim[0] == 0) return SDLF_OK;
    attention_arguments p = attention_arguments_of(operation);
    sdlf_dtype dtype = operation->in[0].dtype;
    if (attention_suits_wgmma(calculator, &p, dtype)) return attention_backward_wgmma(calculator, &p, dtype);
    int depth = attention_depth(operation), shared = attention_backward_shared(calculator->math, depth);
    int64_t rows = static_cast<int64_t>(p.samples) * p.heads * p.queries;
    dim3 queries(static_cast<unsigned>(cuda_ceil_div(p.queries, ATTENTION_BLOCK)),
                 static_cast<unsigned>(p.samples * p.heads));
    dim3 keys(static_cast<unsigned>(cuda_ceil_div(p.keys, ATTENTION_BLOCK)),
              static_cast<unsigned>(p.samples * p.groups));
    launch_cluster(calculator, attention_delta,
                   dim3(static_cast<unsigned>(cuda_ceil_div(rows * WARP, ATTENTION_THREADS))), dim3(ATTENTION_THREADS),
                   0, dim3(1), p);
    sdlf_status status = cuda_check_launch("attention_delta");
    with_attention_shape(calculator->math, depth, [&](auto mode, auto columns) {
        auto *of_queries = attention_backward_queries<mode.value, columns.value>;
        auto *of_keys = attention_backward_keys<mode.value, columns.value>;
        if (status == SDLF_OK) status = allow_shared(of_queries, shared);
        if (status == SDLF_OK) status = allow_shared(of_keys, shared);
        if (status != SDLF_OK) return;
        launch_cluster(calculator, of_queries, queries, dim3(ATTENTION_THREADS), shared, dim3(1), p);
        launch_cluster(calculator, of_keys, keys, dim3(ATTENTION_THREADS), shared, dim3(1), p);
    });
    return status == SDLF_OK ? cuda_check_launch("attention_backward") : status;
}
