/* SPDX-License-Identifier: MIT */
/* c (m,n) = alpha a (m,k) b (k,n) in float32 for tall a, k up to 128 and n up to 16: all of b stays in registers, and a's rows are
 * loaded by bulk copies, 8 at a time. Compute capability 9.0 and newer.
 *
 * Moves 4 (m k + m n) bytes: 162 MB for 281,903 x 128 by 128 x 16, 0.039 ms at 4.2 TB/s. Counting the bytes that lanes receive from
 * shared memory, at 128 bytes a cycle for a multiprocessor, 4 x 4 accumulators a lane (tall_skinny.cu) take 256 cycles for 8 rows; this
 * kernel takes 128, and 28 more to exchange the sums, while memory takes 190 cycles.
 *
 * A warp's lanes are arranged as 8 along k by 4 along n: a lane has 4 adjacent columns of b, and of these the k indices 4 q to 4 q + 3
 * of every 32, at most 64 elements. It multiplies the same k indices of each of 8 rows, which are contiguous in memory, so that one bulk
 * copy loads them, a tile ahead. 8 lanes along k then have partial sums of the same 32 results: three times, each sends half of them to
 * a lane that keeps the other half, after which it has 4 columns of one row. The order of summation is fixed.
 *
 * Rows of a are evicted first from the L2 cache: none is read again, and c, which the next kernel reads, stays. */
#include "calculators/cuda/gemm/register_stationary.cuh"
#include "calculators/cuda/mbarrier.cuh"

enum { WARPS = 4, RESIDENT = 4 /* blocks per multiprocessor */, STAGES = 2 };

/* copy_bulk of data that is not read again. */
[[maybe_unused]] static __device__ __forceinline__ void copy_bulk_once(void *shared, const void *from, int bytes,
                                                                       uint64_t *barrier)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared)),
                   full = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
                 "[%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(full), "l"(policy)
                 : "memory");
#endif
}

/* Reduces rows 0 to 2 HALF - 1 of partial sums to HALF rows: lanes with bit HALF set in `place` keep the upper ones. */
template <int HALF> static __device__ __forceinline__ void fold(float (&sum)[ROWS][4], int place)
{
    const bool upper = (place & HALF) != 0;
#pragma unroll
    for (int r = 0; r < HALF; r++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float given = upper ? sum[r][j] : sum[r + HALF][j], kept = upper ? sum[r + HALF][j] : sum[r][j];
            sum[r][j] = kept + __shfl_xor_sync(0xffffffffu, given, HALF);
        }
    }
}

/* k is at most 32 CHUNKS; WHOLE: exactly that. */
template <int CHUNKS, bool WHOLE>
static __global__ void __launch_bounds__(WARPS *WARP, RESIDENT)
    gemm_register_stationary(const __grid_constant__ tall<float> g)
{
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) float ring[WARPS][STAGES][ROWS * CHUNK * CHUNKS];
    __shared__ uint64_t barriers[WARPS][STAGES];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, place = lane % 8, first = lane / 8 * 4;
    const int step = static_cast<int>(gridDim.x) * WARPS, tiles = static_cast<int>((g.m + ROWS - 1) / ROWS);
    const int k = WHOLE ? CHUNKS * CHUNK : g.k;
    const bool in_last_chunk = WHOLE || (CHUNKS - 1) * CHUNK + place * 4 < k;
    uint64_t *full = barriers[warp];
    const auto ask = [&](int tile, int stage) {
        if (lane != 0 || tile >= tiles) return;
        const int64_t row = static_cast<int64_t>(tile) * ROWS, rows = g.m - row < ROWS ? g.m - row : ROWS;
        copy_bulk_once(ring[warp][stage], g.a + row * k, static_cast<int>(rows) * k * 4, full + stage);
    };
    if (lane == 0) {
        for (int s = 0; s < STAGES; s++) barrier_init(full + s, 1);
        fence_mbarrier_init();
    }
    __syncwarp();
    launch_dependent_grids();
    int tile = static_cast<int>(blockIdx.x) * WARPS + warp;
    for (int s = 0; s < STAGES - 1; s++) ask(tile + s * step, s);
    float b[CHUNKS][4][4];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int p = c * CHUNK + place * 4 + i / 4, q = first + i % 4;
            b[c][i / 4][i % 4] = p < k && q < g.n ? g.alpha * g.b[p * g.n + q] : 0.0f;
        }
    }
    int stage = 0, parity = 0;
    for (; tile < tiles; tile += step) {
        barrier_await(full + stage, parity);
        __syncwarp();
        ask(tile + (STAGES - 1) * step, stage == 0 ? STAGES - 1 : stage - 1);
        const float *from = ring[warp][stage] + place * 4;
        float sum[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int j = 0; j < 4; j++) sum[r][j] = 0;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                float4 x = make_float4(0, 0, 0, 0);
                if (c < CHUNKS - 1 || in_last_chunk) x = *reinterpret_cast<const float4 *>(from + r * k + c * CHUNK);
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sum[r][j] += x.x * b[c][0][j];
                    sum[r][j] += x.y * b[c][1][j];
                    sum[r][j] += x.z * b[c][2][j];
                    sum[r][j] += x.w * b[c][3][j];
                }
            }
        }
        fold<4>(sum, place);
        fold<2>(sum, place);
        fold<1>(sum, place);
        const int64_t row = static_cast<int64_t>(tile) * ROWS + place;
        float *to = g.c + row * g.n + first;
        if (row < g.m && g.packs) {
            if (first < g.n) *reinterpret_cast<float4 *>(to) = make_float4(sum[0][0], sum[0][1], sum[0][2], sum[0][3]);
        } else if (row < g.m) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (first + j < g.n) to[j] = sum[0][j];
        }
        __syncwarp();
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
#endif
}

/* ---- launching ---- */

extern "C" bool gemm_register_stationary_fits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return register_stationary_fits<float>(calculator, op, 4);
}

extern "C" bool gemm_register_stationary_aligned(const sdlf_operation *op)
{
    return reinterpret_cast<uintptr_t>(op->in[0].data) % 16 == 0;
}

extern "C" sdlf_status gemm_register_stationary_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return run_register_stationary<float>(
        base, op, WARPS, RESIDENT, [](auto chunks, auto whole) { return gemm_register_stationary<chunks(), whole()>; });
}
