/* SPDX-License-Identifier: MIT */
/* attention_forward without a mask, by wgmma, of operands in 16 bits, or of float32 rounded to them: the algorithm of attention/forward.cu (Dao,
 * "FlashAttention-2", 2023), one warpgroup for 64 queries; one or two warpgroups share the keys and values of a thread block. q, k and v are read
 * from shared memory; exponentials stay in registers, as operand a of the second GEMM. Exponentials are powers of 2 of one multiply-add per score.
 * Compute capability 9.0a. */
#include <algorithm>

#include "calculators/cuda/attention/row_tiles.cuh"

enum { MOST_GROUPS = 2, NARROW = 32 /* keys of a narrow tile, the last one */ };

/* What a thread accumulates for rows g and g + 8 of its warp: y, the largest dot product, and its own share of the sum of exponentials. */
template <int D> struct accumulators {
    float y[D / TILE][4], largest[2], sum[2];
};

/* Dot products become exponentials, and the accumulators are rescaled. scale: of dot products, times log2 e; positive. */
template <int D, int KEYS>
static __device__ __forceinline__ void update_softmax(float (&c)[KEYS / TILE][4], accumulators<D> &all, float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float found = all.largest[half], added = 0;
#pragma unroll
        for (int n = 0; n < KEYS / TILE; n++) found = fmaxf(found, fmaxf(c[n][2 * half], c[n][2 * half + 1]));
        found = quad_max(found);
        const float shift = found == -INFINITY ? 0.0f : __fmul_rn(found, scale);
        /* of the same two products that exponentials are relative to: exactly 1 if the largest is still the same */
        const float factor = power_of_two(__fmul_rn(all.largest[half], scale) - shift);
#pragma unroll
        for (int n = 0; n < KEYS / TILE; n++) {
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                c[n][i] = power_of_two(fmaf(c[n][i], scale, -shift));
                added += c[n][i];
            }
        }
        all.sum[half] = all.sum[half] * factor + added;
        all.largest[half] = found;
#pragma unroll
        for (int n = 0; n < D / TILE; n++) all.y[n][2 * half] *= factor, all.y[n][2 * half + 1] *= factor;
    }
}

/* A warpgroup's tile of KEYS keys from `key` on. first: the first of the warp's 16 queries. */
template <typename T, int D, int KEYS>
static __device__ __forceinline__ void attend(const attention_arguments &p, uint32_t q, uint32_t k, uint32_t v,
                                              int first, int key, accumulators<D> &all)
{
    const int lane = static_cast<int>(threadIdx.x) % WARP, later = p.keys - p.queries;
    float c[KEYS / TILE][4];
    wgmma_clear(c);
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < D / 16; step++)
        wgmma16<T, KEYS, 0, 0>::run(c, row_tile<D>::columns(q, step), row_tile<D>::columns(k, step));
    wgmma_commit();
    wgmma_await<0>();
    if (key + KEYS > p.keys || (p.causal && key + KEYS > first + later + 1)) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int limit = p.causal ? min(p.keys, first + lane / 4 + 8 * half + later + 1) : p.keys;
#pragma unroll
            for (int n = 0; n < KEYS / TILE; n++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    if (key + n * TILE + lane % 4 * 2 + i >= limit) c[n][2 * half + i] = -INFINITY;
        }
    }
    update_softmax<D, KEYS>(c, all, p.scale * 1.44269504f);
    uint32_t a[KEYS / 16][4];
    pack_scores<T, KEYS>(a, c);
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
        wgmma16_of_registers<T, D>::run(all.y, a[step], row_tile<D>::rows(v, step));
    wgmma_commit();
    wgmma_await<0>();
}

/* Blocks per multiprocessor: four warpgroups, as limited by registers, or, with 128 columns, two, as limited by shared memory. */
template <int D, int GROUPS> constexpr int blocks_at_once = (D <= 64 ? 4 : 2) / GROUPS;

template <typename S, typename T, int D, int GROUPS>
static __global__ void __launch_bounds__(GROUP *GROUPS, (blocks_at_once<D, GROUPS>))
    attention_by_warpgroups(attention_arguments p)
{
#ifdef SDLF_HAS_WGMMA
    using tile = row_tile<D>;
    constexpr int THREADS = GROUP * GROUPS;
    extern __shared__ uint8_t unaligned[];
    const uint32_t queries = ring_start(unaligned), stages = queries + GROUPS * tile::BYTES; /* of k and v, two */
    uint8_t *memory = unaligned + (queries - static_cast<uint32_t>(__cvta_generic_to_shared(unaligned)));
    const int first = static_cast<int>(blockIdx.x) * ATTENTION_BLOCK * GROUPS, later = p.keys - p.queries;
    const int group = static_cast<int>(threadIdx.x) / GROUP;
    const int begin = first + group * ATTENTION_BLOCK; /* the group's queries */
    const int row = begin + static_cast<int>(threadIdx.x) / WARP % 4 * WARP_ROWS;
    wait_and_launch_dependent_grids();
    const attention_head at =
        attention_head_of(p, static_cast<int>(blockIdx.y) / p.heads, static_cast<int>(blockIdx.y) % p.heads);
    const attention_rows q = head_rows<S>(p.q, at.sample, at.head);
    const attention_rows k = head_rows<S>(p.k, at.sample, at.group), v = head_rows<S>(p.v, at.sample, at.group);
    auto load = [&](int stage, int key) {
        uint8_t *to = memory + (GROUPS + 2 * stage) * tile::BYTES;
        copy_rows<S, T, D, THREADS>(to, k, key);
        copy_rows<S, T, D, THREADS>(to + tile::BYTES, v, key);
        cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < GROUPS; i++)
        copy_rows<S, T, D, THREADS>(memory + i * tile::BYTES, q, first + i * ATTENTION_BLOCK);
    load(0, 0);
    /* keys that queries before `end` see */
    auto seen_before = [&](int end) { return p.causal ? min(p.keys, end + later) : p.keys; };
    const int all_keys = seen_before(first + GROUPS * ATTENTION_BLOCK);
    const int own_keys = begin < p.queries ? seen_before(begin + ATTENTION_BLOCK) : 0;
    accumulators<D> all = {{}, {-INFINITY, -INFINITY}, {}};
    for (int key = 0, stage = 0; key < all_keys; key += ATTENTION_BLOCK, stage ^= 1) {
        finish_loads();
        __syncthreads(); /* this stage is loaded, and no warp reads the other one any longer */
        if (key + ATTENTION_BLOCK < all_keys) load(stage ^ 1, key + ATTENTION_BLOCK);
        const uint32_t keys = stages + 2 * stage * tile::BYTES, own = queries + group * tile::BYTES;
        if (own_keys - key > NARROW)
            attend<T, D, ATTENTION_BLOCK>(p, own, keys, keys + tile::BYTES, row, key, all);
        else if (own_keys > key)
            attend<T, D, NARROW>(p, own, keys, keys + tile::BYTES, row, key, all);
    }
    cp_async_wait<0>();
    if (begin >= p.queries) return;
    const float largest[2] = {all.largest[0] * p.scale, all.largest[1] * p.scale};
    write_results<S, D>(p, at, row, all.y, largest, all.sum);
#endif
}

template <typename S, typename T, int D, int GROUPS>
static sdlf_status launch(const cuda_calculator *calculator, const attention_arguments &p)
{
    auto *kernel = attention_by_warpgroups<S, T, D, GROUPS>;
    const int shared = (GROUPS + 4) * row_tile<D>::BYTES + 1024;
    const dim3 blocks(static_cast<unsigned>(cuda_ceil_div(p.queries, ATTENTION_BLOCK * GROUPS)),
                      static_cast<unsigned>(p.samples * p.heads));
    sdlf_status status = allow_shared(kernel, shared);
    if (status == SDLF_OK) launch_overlapped(calculator, kernel, blocks, dim3(GROUP * GROUPS), shared, p);
    return status;
}

sdlf_status attention_forward_wgmma(const cuda_calculator *calculator, const attention_arguments *p, sdlf_dtype dtype)
{
    const int64_t pairs =
        cuda_ceil_div(p->queries, static_cast<int>(ATTENTION_BLOCK) * MOST_GROUPS) * p->samples * p->heads;
    const bool in_pairs = p->queries > ATTENTION_BLOCK && pairs >= 2 * calculator->multiprocessors;
    const int depth = std::max(p->q.first.columns, p->v.first.columns);
    sdlf_status status = SDLF_OK;
    with_row_tiles(dtype, calculator->math, depth, [&](auto storage, auto operand, auto columns) {
        using S = decltype(storage);
        using T = decltype(operand);
        status = in_pairs ? launch<S, T, columns.value, MOST_GROUPS>(calculator, *p)
                          : launch<S, T, columns.value, 1>(calculator, *p);
    });
    return status == SDLF_OK ? cuda_check_launch("attention_forward") : status;
}
