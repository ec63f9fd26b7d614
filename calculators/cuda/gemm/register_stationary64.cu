/* SPDX-License-Identifier: MIT */
/* c (m,n) = alpha a (m,k) b (k,n) in float64 for tall a, even k up to 128 and n up to 16, on Tensor Cores: all of b stays in registers,
 * and a's fragments are loaded directly from global memory, a tile of 8 rows ahead. Compute capability 9.0 and newer.
 *
 * Moves 8 (m k + m n) bytes: 325 MB for 281,903 x 128 by 128 x 16, 0.077 ms at 4.2 TB/s or 150,000 cycles. The 8 warps of a
 * multiprocessor have 16 loads of 512 bytes each in flight, 64 kB; the Tensor Cores multiply for 34,000 cycles.
 *
 * mma.m8n8k4: lane 4 g + t has element t of row g of a's 8 x 4, element t of column g of b's 4 x 8, and of the accumulators' row g
 * columns 2 t and 2 t + 1. The assignment of k indices to the four is free: lane t reads neighbours 8 s + 2 t and 8 s + 2 t + 1, 16
 * bytes, and uses the first in one mma and the second in the next. Even and odd indices have separate accumulators, so that two mma of a
 * column are in flight; they are added at the end, in a fixed order. A fragment that has been multiplied is loaded anew at once, from
 * the next tile. */
#include "calculators/cuda/gemm/register_stationary.cuh"

enum {
    WARPS = 4,
    RESIDENT = 2 /* blocks per multiprocessor */,
    TILES = 2, /* of 8 columns */
    STEP = 8   /* k indices of two mma */
};
static_assert(TILES * 8 == COLUMNS, "all columns");

/* c += a b. */
[[maybe_unused]] static __device__ __forceinline__ void mma_f64(double (&c)[2], double a, double b)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
#endif
}

/* Volatile, so that the compiler keeps it in place between mma instructions. */
[[maybe_unused]] static __device__ __forceinline__ double2 read_pair(const double *from)
{
    double2 x;
    asm volatile("ld.global.nc.v2.f64 {%0,%1}, [%2];" : "=d"(x.x), "=d"(x.y) : "l"(from));
    return x;
}

/* k is at most 32 CHUNKS; WHOLE: exactly that. */
template <int CHUNKS, bool WHOLE>
static __global__ void __launch_bounds__(WARPS *WARP, RESIDENT)
    gemm_register_stationary64(const __grid_constant__ tall<double> g)
{
#if __CUDA_ARCH__ >= 900
    enum { STEPS = CHUNKS * CHUNK / STEP };
    const int lane = threadIdx.x % WARP, down = lane / 4, across = lane % 4;
    const int step = static_cast<int>(gridDim.x) * WARPS, tiles = static_cast<int>((g.m + ROWS - 1) / ROWS);
    const int k = WHOLE ? CHUNKS * CHUNK : g.k;
    int tile = static_cast<int>(blockIdx.x) * WARPS + threadIdx.x / WARP;
    /* Past the last row, the last row is read again. */
    const auto row_of = [&](int of) {
        const int64_t row = static_cast<int64_t>(of) * ROWS + down;
        return g.a + (row < g.m ? row : g.m - 1) * k + across * 2;
    };
    const auto read = [&](const double *from, int s) {
        return WHOLE || s * STEP + across * 2 < k ? read_pair(from + s * STEP) : make_double2(0, 0);
    };
    launch_dependent_grids();
    if (tile >= tiles) return;
    double2 x[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) x[s] = read(row_of(tile), s);
    double b[STEPS][2][TILES];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) {
            const int p = s * STEP + across * 2 + i / TILES, q = i % TILES * 8 + down;
            b[s][i / TILES][i % TILES] = p < k && q < g.n ? g.alpha * g.b[p * g.n + q] : 0.0;
        }
    }
    for (; tile < tiles; tile += step) {
        const double *next = row_of(tile + step < tiles ? tile + step : tile);
        double sum[2][TILES][2] = {};
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                mma_f64(sum[0][j], x[s].x, b[s][0][j]);
                mma_f64(sum[1][j], x[s].y, b[s][1][j]);
            }
            x[s] = read(next, s);
        }
        const int64_t row = static_cast<int64_t>(tile) * ROWS + down;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            const int column = j * 8 + across * 2;
            const double2 result = make_double2(sum[0][j][0] + sum[1][j][0], sum[0][j][1] + sum[1][j][1]);
            double *to = g.c + row * g.n + column;
            if (row >= g.m || column >= g.n) continue;
            if (g.packs) {
                *reinterpret_cast<double2 *>(to) = result;
            } else {
                to[0] = result.x;
                if (column + 1 < g.n) to[1] = result.y;
            }
        }
    }
#endif
}

/* ---- launching ---- */

extern "C" bool gemm_register_stationary64_fits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return register_stationary_fits<double>(calculator, op, 2);
}

extern "C" sdlf_status gemm_register_stationary64_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    return run_register_stationary<double>(base, op, WARPS, RESIDENT, [](auto chunks, auto whole) {
        return gemm_register_stationary64<chunks(), whole()>;
    });
}
