/* SPDX-License-Identifier: MIT */
/* attention_backward without a mask, by wgmma, of operands in 16 bits, or of float32 rounded to them: the algorithm of attention/backward.cu, one
 * warpgroup for 64 queries (dq), or for 64 keys (dk and dv). Both compute the scores and dy v^T of a tile from shared memory, and keep p and ds in
 * registers, as operand a of the next GEMMs. A query's maximum, sum and delta are two numbers, computed by a kernel into the workspace. Compute
 * capability 9.0a. */
#include <algorithm>

#include "calculators/cuda/attention/row_tiles.cuh"

enum { QUERY_LANES = 8 /* threads of a query */ };

static constexpr float LOG2_E = 1.44269504f;

/* p = 2^(scale log2 e q k - exponent), ds = p (scale dy v - slope). */
typedef struct query_statistics {
    float exponent, slope;
} query_statistics;

/* ---- statistics: 8 threads per query, 16 bytes at a time ---- */

template <typename S>
static __device__ __forceinline__ float dot_pieces(const attention_rows &y, const attention_rows &dy, int row, int lane)
{
    constexpr int PIECE = 16 / static_cast<int>(sizeof(S));
    const S *y_row = static_cast<const S *>(y.data) + row * y.stride;
    const S *dy_row = static_cast<const S *>(dy.data) + row * dy.stride;
    float sum = 0;
    for (int column = lane * PIECE; column < y.columns; column += QUERY_LANES * PIECE) {
        alignas(16) S a[PIECE], b[PIECE];
        *reinterpret_cast<uint4 *>(a) = *reinterpret_cast<const uint4 *>(y_row + column);
        *reinterpret_cast<uint4 *>(b) = *reinterpret_cast<const uint4 *>(dy_row + column);
#pragma unroll
        for (int i = 0; i < PIECE; i++) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
    }
    for (int step = QUERY_LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

template <typename S>
static __global__ void __launch_bounds__(GROUP)
    attention_statistics(attention_arguments p, query_statistics *statistics)
{
    const int64_t all = static_cast<int64_t>(p.samples) * p.heads * p.queries, place = grid_first() / QUERY_LANES;
    const int64_t number = min(place, all - 1); /* every lane of a warp shuffles */
    const int lane = static_cast<int>(threadIdx.x) % QUERY_LANES;
    wait_and_launch_dependent_grids();
    const int row = static_cast<int>(number % p.queries), head = static_cast<int>(number / p.queries % p.heads);
    const int sample = static_cast<int>(number / p.queries / p.heads);
    const float delta = dot_pieces<S>(head_rows<S>(p.y, sample, head), head_rows<S>(p.dy, sample, head), row, lane);
    if (lane == 0 && place < all) statistics[number] = {p.max[number] * LOG2_E + log2f(p.sum[number]), p.scale * delta};
}

/* ---- a tile of scores ---- */

/* The accumulators are complete: no use of theirs may be moved before this. */
template <int N> static __device__ __forceinline__ void use_after_await(float (&c)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+f"(c[n][i])::"memory");
}

/* c (64,64) = a b^T over D elements, asynchronously, committed as a group. */
template <typename T, int D>
static __device__ __forceinline__ void begin_rows(float (&c)[TILES][4], uint32_t a, uint32_t b)
{
#pragma unroll
    for (int step = 0; step < D / 16; step++)
        wgmma16<T, ATTENTION_BLOCK, 0, 0>::run(c, row_tile<D>::columns(a, step), row_tile<D>::columns(b, step));
    wgmma_commit();
}

/* c (64,D) += a b over 64 rows of b, asynchronously; the caller commits. */
template <typename T, int D>
static __device__ __forceinline__ void begin_scores(float (&c)[D / TILE][4],
                                                    const uint32_t (&a)[ATTENTION_BLOCK / 16][4], uint32_t b)
{
#pragma unroll
    for (int step = 0; step < ATTENTION_BLOCK / 16; step++)
        wgmma16_of_registers<T, D>::run(c, a[step], row_tile<D>::rows(b, step));
}

/* Dot products of what their queries do not see become minus infinity. row, column: those of c[0][0]; BY_KEY: rows are keys. */
template <bool BY_KEY>
static __device__ __forceinline__ void hide(const attention_arguments &p, int row, int column, float (&c)[TILES][4])
{
    const int later = p.keys - p.queries;
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int down = row + i / 2 * 8, across = column + n * TILE + i % 2;
            const int query = BY_KEY ? across : down, key = BY_KEY ? down : across;
            if (query >= p.queries || key >= p.keys || (p.causal && key > query + later)) c[n][i] = -INFINITY;
        }
}

/* ---- both kernels ---- */

template <int D> constexpr int backward_blocks = D <= 64 ? 3 : 2; /* per multiprocessor, as limited by registers */

/* The block's rows are queries, and it iterates over tiles of keys; or, BY_KEY, keys, and it iterates over the queries of all heads that read them.
 * Tiles in shared memory: q and dy, or k and v, of the block's rows; and two stages of the others. */
template <typename S, typename T, int D, bool BY_KEY>
static __global__ void __launch_bounds__(GROUP, backward_blocks<D>)
    attention_backward_by_warpgroup(attention_arguments p, const query_statistics *statistics)
{
#ifdef SDLF_HAS_WGMMA
    constexpr int BYTES = row_tile<D>::BYTES;
    extern __shared__ uint8_t unaligned[];
    const uint32_t own = ring_start(unaligned);
    uint8_t *memory = unaligned + (own - static_cast<uint32_t>(__cvta_generic_to_shared(unaligned)));
    query_statistics *columns = reinterpret_cast<query_statistics *>(memory + 6 * BYTES); /* BY_KEY: two stages */
    /* blocks with most tiles first */
    const int block = static_cast<int>(p.causal && !BY_KEY ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    const int first = block * ATTENTION_BLOCK, later = p.keys - p.queries, thread = static_cast<int>(threadIdx.x);
    const int row = first + thread / WARP * WARP_ROWS, lane = thread % WARP;
    const int heads = BY_KEY ? p.groups : p.heads, shared_by = p.heads / p.groups;
    const int sample = static_cast<int>(blockIdx.y) / heads, head = static_cast<int>(blockIdx.y) % heads;
    const int group = BY_KEY ? head : head / shared_by;
    const int begin = BY_KEY && p.causal ? max(0, first - later) / ATTENTION_BLOCK * ATTENTION_BLOCK : 0;
    const int end = BY_KEY ? p.queries : p.causal ? min(p.keys, first + ATTENTION_BLOCK + later) : p.keys;
    const int tiles = max(0, end - begin + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    const int turns = BY_KEY ? tiles * shared_by : tiles;
    wait_and_launch_dependent_grids();
    const attention_rows k = head_rows<S>(p.k, sample, group), v = head_rows<S>(p.v, sample, group);
    auto of_head = [&](int number) {
        return statistics + (static_cast<int64_t>(sample) * p.heads + number) * p.queries;
    };
    auto load = [&](int turn) {
        const int stage = turn % 2;
        uint8_t *to = memory + (2 + 2 * stage) * BYTES;
        if constexpr (BY_KEY) {
            const int of = head * shared_by + turn / tiles, query = begin + turn % tiles * ATTENTION_BLOCK;
            copy_rows<S, T, D, GROUP>(to, head_rows<S>(p.q, sample, of), query);
            copy_rows<S, T, D, GROUP>(to + BYTES, head_rows<S>(p.dy, sample, of), query);
            if (thread < ATTENTION_BLOCK)
                columns[stage * ATTENTION_BLOCK + thread] =
                    query + thread < p.queries ? of_head(of)[query + thread] : query_statistics{INFINITY, 0};
        } else {
            copy_rows<S, T, D, GROUP>(to, k, turn * ATTENTION_BLOCK);
            copy_rows<S, T, D, GROUP>(to + BYTES, v, turn * ATTENTION_BLOCK);
        }
        cp_async_commit();
    };
    copy_rows<S, T, D, GROUP>(memory, BY_KEY ? k : head_rows<S>(p.q, sample, head), first);
    copy_rows<S, T, D, GROUP>(memory + BYTES, BY_KEY ? v : head_rows<S>(p.dy, sample, head), first);
    query_statistics of_row[2] = {{INFINITY, 0}, {INFINITY, 0}};
    for (int half = 0; half < 2 && !BY_KEY; half++) {
        const int query = row + lane / 4 + 8 * half;
        if (query < p.queries) of_row[half] = of_head(head)[query];
    }
    if (turns > 0) load(0);
    float gradient[D / TILE][4] = {}, of_values[BY_KEY ? D / TILE : 1][4] = {}; /* dq or dk; dv */
    for (int turn = 0; turn < turns; turn++) {
        const int stage = turn % 2, column = begin + turn % tiles * ATTENTION_BLOCK;
        const uint32_t other = own + (2 + 2 * stage) * BYTES;
        finish_loads();
        __syncthreads(); /* this stage is loaded, and no warp reads the other one any longer */
        if (turn + 1 < turns) load(turn + 1);
        float c[TILES][4], d[TILES][4]; /* scores, then p; dy v^T, then ds: or both transposed */
        wgmma_clear(c);
        wgmma_clear(d);
        wgmma_begin();
        begin_rows<T, D>(c, own, other);
        begin_rows<T, D>(d, own + BYTES, other + BYTES);
        wgmma_await<1>();
        use_after_await(c);
        const bool edge = BY_KEY ? column + ATTENTION_BLOCK > p.queries : column + ATTENTION_BLOCK > p.keys;
        const bool diagonal = p.causal && (BY_KEY ? first + ATTENTION_BLOCK - 1 > column + later
                                                  : column + ATTENTION_BLOCK - 1 > first + later);
        if (edge || diagonal) hide<BY_KEY>(p, row + lane / 4, column + lane % 4 * 2, c);
        const query_statistics *of_column = columns + stage * ATTENTION_BLOCK + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float exponent = BY_KEY ? of_column[n * TILE + i % 2].exponent : of_row[i / 2].exponent;
                c[n][i] = power_of_two(fmaf(c[n][i], p.scale * LOG2_E, -exponent));
            }
        wgmma_await<0>();
        use_after_await(d);
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float slope = BY_KEY ? of_column[n * TILE + i % 2].slope : of_row[i / 2].slope;
                d[n][i] = c[n][i] * fmaf(d[n][i], p.scale, -slope);
            }
        uint32_t a[ATTENTION_BLOCK / 16][4], b[ATTENTION_BLOCK / 16][4];
        if constexpr (BY_KEY) pack_scores<T, ATTENTION_BLOCK>(a, c);
        pack_scores<T, ATTENTION_BLOCK>(b, d);
        wgmma_begin();
        if constexpr (BY_KEY) begin_scores<T, D>(of_values, a, other + BYTES);
        begin_scores<T, D>(gradient, b, other);
        wgmma_commit();
        wgmma_await<0>();
    }
    cp_async_wait<0>();
    use_after_await(gradient);
    use_after_await(of_values);
    const float one[2] = {1, 1};
    store_rows<S, D>(BY_KEY ? head_rows<S>(p.dk, sample, head) : head_rows<S>(p.dq, sample, head), row, gradient, one);
    if constexpr (BY_KEY) store_rows<S, D>(head_rows<S>(p.dv, sample, head), row, of_values, one);
#endif
}

/* ---- launching ---- */

template <typename S, typename T, int D, bool BY_KEY>
static sdlf_status launch(const cuda_calculator *calculator, const attention_arguments &p)
{
    auto *kernel = attention_backward_by_warpgroup<S, T, D, BY_KEY>;
    const int shared =
        6 * row_tile<D>::BYTES + 1024 + (BY_KEY ? 2 * static_cast<int>(ATTENTION_BLOCK * sizeof(query_statistics)) : 0);
    const dim3 blocks(static_cast<unsigned>(cuda_ceil_div(BY_KEY ? p.keys : p.queries, ATTENTION_BLOCK)),
                      static_cast<unsigned>(p.samples * (BY_KEY ? p.groups : p.heads)));
    sdlf_status status = allow_shared(kernel, shared);
    if (status == SDLF_OK)
        launch_overlapped(calculator, kernel, blocks, dim3(GROUP), shared, p,
                          reinterpret_cast<const query_statistics *>(p.delta));
    return status;
}

sdlf_status attention_backward_wgmma(const cuda_calculator *calculator, const attention_arguments *p, sdlf_dtype dtype)
{
    const int depth = std::max(p->q.first.columns, p->v.first.columns);
    const int64_t threads = static_cast<int64_t>(p->samples) * p->heads * p->queries * QUERY_LANES;
    sdlf_status status = SDLF_OK;
    with_row_tiles(dtype, calculator->math, depth, [&](auto storage, auto operand, auto columns) {
        using S = decltype(storage);
        using T = decltype(operand);
        launch_overlapped(calculator, attention_statistics<S>,
                          dim3(static_cast<unsigned>(cuda_ceil_div(threads, GROUP))), dim3(GROUP), 0, *p,
                          reinterpret_cast<query_statistics *>(p->delta));
        status = launch<S, T, columns.value, false>(calculator, *p);
        if (status == SDLF_OK) status = launch<S, T, columns.value, true>(calculator, *p);
    });
    return status == SDLF_OK ? cuda_check_launch("attention_backward") : status;
}
