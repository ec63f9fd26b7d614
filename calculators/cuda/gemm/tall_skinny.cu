/* SPDX-License-Identifier: MIT */
/* c (m,n) = alpha a (m,k) b (k,n) for tall a and n up to 32: the last of the variants that lab/gemm.h begins, bound by the bandwidth of a.
 *
 * Moves T (m k + m n) bytes: 325 MB for 281,903 x 128 by 128 x 16 in double, 0.077 ms at 4.2 TB/s; 2 m n k FLOPs, in double half
 * of that time on the H200's vector units, so that computation and loads must overlap. To saturate memory bandwidth a
 * multiprocessor needs some 25 kB in flight at any time.
 *
 * Every warp is a pipeline of its own, without block-wide barriers. It processes ROWS rows of a, in slabs of 128 bytes of
 * each row, which it copies to shared memory by cp.async, STAGES - 1 slabs ahead. A lane has 4 x 4 accumulators in
 * registers: for each k it reads 4 elements of a and 4 of b for 16 multiply-adds. A slab's 16-byte chunks are swizzled to
 * chunk ^ (row % 8), which avoids bank conflicts between the lanes' rows. b, padded to whole groups of 4 columns, stays in
 * shared memory. */
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/mma.cuh"

enum { WARP = 32, WARPS = 4, STAGES = 4, LANE_ROWS = 4, LANE_COLUMNS = 4, SLAB_BYTES = 128, CHUNKS = SLAB_BYTES / 16 };
enum { B_BYTES = 64 << 10 }; /* at most, for b */

template <typename T> struct tall {
    const T *a, *b;
    T *c, alpha;
    int64_t m, n, k;
    bool aligned; /* rows of a begin at multiples of 16 bytes */
    bool quads;   /* so do groups of 4 columns of c */
};

/* Load slab `slab` of the ROWS rows from `first`, by one warp. */
template <typename T, int ROWS>
static __device__ __forceinline__ void load_slab(const tall<T> &g, char *stage, int64_t first, int64_t slab)
{
    enum { CHUNK = 16 / sizeof(T) };
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / WARP; i++) {
        int index = i * WARP + lane, row = index / CHUNKS, chunk = index % CHUNKS;
        int64_t r = first + row, p = slab * CHUNKS * CHUNK + chunk * CHUNK;
        char *to = stage + row * SLAB_BYTES + (chunk ^ row % 8) * 16;
        const T *from = g.a + r * g.k + p;
        if (g.aligned) {
            bool valid = r < g.m && p < g.k;
            copy_async(to, valid ? from : g.a, valid);
        } else {
            for (int e = 0; e < CHUNK; e++) reinterpret_cast<T *>(to)[e] = r < g.m && p + e < g.k ? from[e] : T(0);
        }
    }
}

/* Four adjacent elements. */
template <typename T> struct alignas(16) quad {
    T at[4];
};
template <typename T> struct alignas(16) chunk {
    T at[16 / sizeof(T)];
};

/* GROUPS adjacent lanes cover 4 GROUPS columns. */
template <typename T, int GROUPS> static __global__ void __launch_bounds__(WARPS *WARP) gemm_tall_skinny(tall<T> g)
{
    enum {
        CHUNK = 16 / sizeof(T),
        INNER = SLAB_BYTES / sizeof(T), /* k indices of a slab */
        DOWN = WARP / GROUPS,           /* lanes along the rows */
        ROWS = DOWN * LANE_ROWS,
        COLUMNS = GROUPS * LANE_COLUMNS,
    };
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, down = lane / GROUPS, across = lane % GROUPS;
    int64_t slabs = (g.k + INNER - 1) / INNER;
    T *b = reinterpret_cast<T *>(shared + WARPS * STAGES * ROWS * SLAB_BYTES);
    char *stages = shared + warp * STAGES * ROWS * SLAB_BYTES;
    for (int64_t i = threadIdx.x; i < slabs * INNER * COLUMNS; i += WARPS * WARP) {
        int64_t p = i / COLUMNS, j = i % COLUMNS;
        b[i] = p < g.k && j < g.n ? g.b[p * g.n + j] : T(0);
    }
    __syncthreads();

    int64_t step = static_cast<int64_t>(gridDim.x) * WARPS, tile = static_cast<int64_t>(blockIdx.x) * WARPS + warp;
    int64_t tiles = (g.m + ROWS - 1) / ROWS, mine = tile < tiles ? (tiles - tile + step - 1) / step : 0;
    int64_t items = mine * slabs, next_tile = tile, next_slab = 0;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < items) {
            load_slab<T, ROWS>(g, stages + s * ROWS * SLAB_BYTES, next_tile * ROWS, next_slab);
            if (++next_slab == slabs) next_slab = 0, next_tile += step;
        }
        cp_async_commit();
    }
    T sum[LANE_ROWS][LANE_COLUMNS] = {};
    int64_t slab = 0;
    int stage = 0;
    for (int64_t item = 0; item < items; item++) {
        cp_async_wait<STAGES - 2>();
        __syncwarp();
        if (item + STAGES - 1 < items) {
            int to = stage == 0 ? STAGES - 1 : stage - 1;
            load_slab<T, ROWS>(g, stages + to * ROWS * SLAB_BYTES, next_tile * ROWS, next_slab);
            if (++next_slab == slabs) next_slab = 0, next_tile += step;
        }
        cp_async_commit();
        const char *from = stages + stage * ROWS * SLAB_BYTES;
        const T *weights = b + slab * INNER * COLUMNS + across * LANE_COLUMNS;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            chunk<T> x[LANE_ROWS];
#pragma unroll
            for (int i = 0; i < LANE_ROWS; i++) {
                int row = i * DOWN + down;
                x[i] = *reinterpret_cast<const chunk<T> *>(from + row * SLAB_BYTES + (c ^ row % 8) * 16);
            }
#pragma unroll
            for (int e = 0; e < CHUNK; e++) {
                quad<T> w = *reinterpret_cast<const quad<T> *>(weights + (c * CHUNK + e) * COLUMNS);
#pragma unroll
                for (int i = 0; i < LANE_ROWS; i++)
#pragma unroll
                    for (int j = 0; j < LANE_COLUMNS; j++) sum[i][j] += x[i].at[e] * w.at[j];
            }
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        if (++slab < slabs) {
            __syncwarp();
            continue;
        }
        slab = 0;
#pragma unroll
        for (int i = 0; i < LANE_ROWS; i++) {
            int64_t r = tile * ROWS + i * DOWN + down, column = across * LANE_COLUMNS;
            quad<T> result;
#pragma unroll
            for (int j = 0; j < LANE_COLUMNS; j++) {
                result.at[j] = g.alpha * sum[i][j];
                sum[i][j] = 0;
            }
            if (r >= g.m) continue;
            T *to = g.c + r * g.n + column;
            if (g.quads) {
                if (column < g.n) *reinterpret_cast<quad<T> *>(to) = result;
            } else {
                for (int j = 0; j < LANE_COLUMNS && column + j < g.n; j++) to[j] = result.at[j];
            }
        }
        tile += step;
        __syncwarp();
    }
}

/* ---- launching ---- */

/* The shared memory of a block whose lanes cover `groups` times 4 columns. */
static int64_t shared_bytes(int64_t k, int groups, int64_t size)
{
    int64_t inner = SLAB_BYTES / size, padded = (k + inner - 1) / inner * inner;
    int64_t rows = WARP / groups * LANE_ROWS;
    return (int64_t)WARPS * STAGES * rows * SLAB_BYTES + padded * groups * LANE_COLUMNS * size;
}

static int groups_for(int64_t n)
{
    return n <= 16 ? 4 : 8;
}

extern "C" bool gemm_tall_skinny_fits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int64_t k = op->in[1].shape.dim[0], n = op->in[1].shape.dim[1], size = (int64_t)sdlf_dtype_size(op->out[0].dtype);
    if (calculator->capability < 80 || n < 1 || n > 32 || k < 1) return false;
    if (shared_bytes(k, groups_for(n), size) > calculator->shared_most) return false;
    return k <= B_BYTES / size / (groups_for(n) * LANE_COLUMNS) - SLAB_BYTES / size;
}

template <typename T, int GROUPS> static sdlf_status launch(const cuda_calculator *calculator, const tall<T> &g)
{
    int shared = static_cast<int>(shared_bytes(g.k, GROUPS, sizeof(T))), blocks = 0;
    sdlf_status status = allow_shared(gemm_tall_skinny<T, GROUPS>, shared);
    if (status == SDLF_OK)
        status = cuda_check(
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gemm_tall_skinny<T, GROUPS>, WARPS * WARP, shared),
            "gemm");
    if (status != SDLF_OK) return status;
    int64_t rows = WARPS * (WARP / GROUPS) * LANE_ROWS, wanted = (g.m + rows - 1) / rows;
    int64_t most = static_cast<int64_t>(blocks > 0 ? blocks : 1) * calculator->multiprocessors;
    gemm_tall_skinny<T, GROUPS>
        <<<static_cast<unsigned>(wanted < most ? wanted : most), WARPS * WARP, shared, calculator->stream>>>(g);
    return cuda_check_launch("gemm");
}

extern "C" sdlf_status gemm_tall_skinny_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    sdlf_status status = SDLF_OK;
    with_float(op->out[0].dtype, [&](auto zero) {
        using T = decltype(zero);
        tall<T> g = {};
        g.a = data_of<T>(op->in[0]);
        g.b = data_of<T>(op->in[1]);
        g.c = data_of<T>(op->out[0]);
        g.alpha = static_cast<T>(op->gemm.alpha);
        g.m = op->out[0].shape.dim[0];
        g.n = op->out[0].shape.dim[1];
        g.k = op->in[0].shape.dim[1];
        g.aligned = reinterpret_cast<uintptr_t>(g.a) % 16 == 0 && g.k * sizeof(T) % 16 == 0;
        g.quads = reinterpret_cast<uintptr_t>(g.c) % 16 == 0 && g.n % LANE_COLUMNS == 0;
        status = groups_for(g.n) == 4 ? launch<T, 4>(calculator, g) : launch<T, 8>(calculator, g);
    });
    return status;
}
