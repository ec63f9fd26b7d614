/* SPDX-License-Identifier: MIT */
/* gemm for a few rows: c (m,n) = act(alpha a (m,k) b^T + bias + residual), b (n,k), m up to 128, float32: a fully connected
 * layer's forward pass at small batches, bound by the memory traffic of b, 4 n k bytes, and, from some 30 rows on, by
 * multiplications.
 *
 * A block computes ROWS x 64 elements of c over a split of k (split-K), so that there are enough blocks for the whole device; k-tiles
 * of a and b, 64 deep, are loaded by cp.async, three ahead. A thread has 8 x 8 accumulators (4 x 8 with 16 rows), strided over the
 * rows, for a slice of each tile's depth: for four k it reads 16 vectors from shared memory for 256 FMAs. The slices' sums are added
 * in shared memory, in order; the splits' go to a workspace, and a second kernel adds them in order and applies the epilogue. From 17
 * rows on another kernel computes the splits on compute capability 9.0 (gemm/skinny_m_slices.cu). */
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/gemm/skinny_m.cuh"
#include "calculators/cuda/launch.cuh"
#include "calculators/cuda/mma.cuh"

enum { DEPTH = 64, LINE = DEPTH + 4, STAGES = 4 };
enum { LANES = 8 /* threads that share the columns */, ACROSS = COLUMNS / LANES, FINISH_THREADS = 256 };

/* How the computation of a tile is divided between threads. */
template <int ROWS> struct work {
    static const int rows = ROWS < 64 ? 4 : 8, lines = ROWS / rows; /* of a thread; threads that share the rows */
    static const int slices = THREADS / (lines * LANES), depth = DEPTH / slices;
};

/* Rows are padded to avoid bank conflicts. */
template <int ROWS> struct stage {
    float a[ROWS][LINE], b[COLUMNS][LINE];
};

template <int ROWS> static __device__ __forceinline__ void fetch(stage<ROWS> &to, const product &p, int n0, int k0)
{
    const int chunks = DEPTH / 4, step = THREADS / chunks;
    int first = threadIdx.x / chunks, column = threadIdx.x % chunks * 4, k = k0 + column;
#pragma unroll
    for (int line = first; line < ROWS; line += step) {
        bool valid = line < p.m && k < p.k;
        copy_async(&to.a[line][column], p.a + (valid ? static_cast<int64_t>(line) * p.k + k : 0), valid);
    }
#pragma unroll
    for (int line = first; line < COLUMNS; line += step) {
        bool valid = n0 + line < p.n && k < p.k;
        copy_async(&to.b[line][column], p.b + (valid ? static_cast<int64_t>(n0 + line) * p.k + k : 0), valid);
    }
}

template <int ROWS>
static __device__ __forceinline__ void multiply(float (&sums)[work<ROWS>::rows][ACROSS], const stage<ROWS> &tile,
                                                int line, int lane, int first)
{
    using share = work<ROWS>;
#pragma unroll
    for (int k = first; k < first + share::depth; k += 4) {
        float4 b[ACROSS];
#pragma unroll
        for (int j = 0; j < ACROSS; j++) b[j] = *reinterpret_cast<const float4 *>(&tile.b[lane + LANES * j][k]);
#pragma unroll
        for (int r = 0; r < share::rows; r++) {
            float4 a = *reinterpret_cast<const float4 *>(&tile.a[line + share::lines * r][k]);
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                sums[r][j] += a.x * b[j].x;
                sums[r][j] += a.y * b[j].y;
                sums[r][j] += a.z * b[j].z;
                sums[r][j] += a.w * b[j].w;
            }
        }
    }
}

/* Grid: x over columns, y over splits of k. */
template <int ROWS> static __global__ void __launch_bounds__(THREADS, 1) skinny_m_fp32(product p)
{
    using share = work<ROWS>;
    extern __shared__ __align__(16) unsigned char memory[];
    stage<ROWS> *stages = reinterpret_cast<stage<ROWS> *>(memory);
    int lane = threadIdx.x % LANES, line = threadIdx.x / LANES % share::lines,
        slice = threadIdx.x / LANES / share::lines;
    int n0 = blockIdx.x * COLUMNS, first = blockIdx.y * p.tiles_each, count = min(p.tiles_each, p.tiles - first);
    float sums[share::rows][ACROSS] = {};
    wait_and_launch_dependent_grids();
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {
        if (ahead < count) fetch(stages[ahead], p, n0, (first + ahead) * DEPTH);
        cp_async_commit();
    }
    for (int tile = 0; tile < count; tile++) {
        int next = tile + STAGES - 1;
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        if (next < count) fetch(stages[next % STAGES], p, n0, (first + next) * DEPTH);
        cp_async_commit();
        multiply<ROWS>(sums, stages[tile % STAGES], line, lane, slice * share::depth);
    }
    float *shared = reinterpret_cast<float *>(memory); /* (slices, ROWS, COLUMNS) */
    __syncthreads();
#pragma unroll
    for (int r = 0; r < share::rows; r++) {
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
            shared[(slice * ROWS + line + share::lines * r) * COLUMNS + lane + LANES * j] = sums[r][j];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * COLUMNS; e += THREADS) {
        int m = e / COLUMNS, n = n0 + e % COLUMNS;
        float sum = shared[e];
#pragma unroll
        for (int other = 1; other < share::slices; other++) sum += shared[other * ROWS * COLUMNS + e];
        if (m < p.m && n < p.n) p.parts[(static_cast<int64_t>(blockIdx.y) * p.m + m) * p.n + n] = sum;
    }
}

/* ---- split-K reduction and epilogue ---- */

struct ending {
    const float *parts, *bias, *residual;
    float *c;
    int64_t count, columns;
    int splits;
    float alpha;
    sdlf_activation activation;
};

static __global__ void skinny_m_epilogue(ending e)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < e.count; i += grid_step()) {
        float sum = 0;
        for (int s = 0; s < e.splits; s++) sum += e.parts[s * e.count + i];
        sum *= e.alpha;
        if (e.bias != nullptr) sum += e.bias[i % e.columns];
        if (e.residual != nullptr) sum += e.residual[i];
        e.c[i] = activate(e.activation, sum);
    }
}

/* ---- launching ---- */

template <int ROWS> static sdlf_status launch(const cuda_calculator *calculator, const product &p, int splits)
{
    const dim3 blocks((unsigned)((p.n + COLUMNS - 1) / COLUMNS), (unsigned)splits);
    const int shared =
        (int)shared_alone(calculator, static_cast<int64_t>(blocks.x) * blocks.y, STAGES * (int64_t)sizeof(stage<ROWS>));
    sdlf_status status = allow_shared(skinny_m_fp32<ROWS>, shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, skinny_m_fp32<ROWS>, blocks, THREADS, shared, p);
    return cuda_check_launch("gemm");
}

extern "C" sdlf_status cuda_gemm_skinny_m(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &c = op->out[0];
    product p = {.a = data_of<float>(op->in[0]), .b = data_of<float>(op->in[1])};
    p.parts = static_cast<float *>(calculator->blas_workspace);
    p.m = (int)c.shape.dim[0];
    p.n = (int)c.shape.dim[1];
    p.k = (int)op->in[0].shape.dim[1];
    const bool slices = p.m > 16 && p.n % 4 == 0 && cuda_is_built_for(calculator, 90);
    const int depth = slices ? SLICES_DEPTH : (int)DEPTH,
              least = slices ? SLICES_STAGES : (int)STAGES; /* least k-tiles of a split */
    p.tiles = (p.k + depth - 1) / depth;
    int64_t count = static_cast<int64_t>(p.m) * p.n, most = CUDA_BLAS_WORKSPACE / (count * (int64_t)sizeof(float));
    int splits = calculator->multiprocessors / ((p.n + COLUMNS - 1) / COLUMNS);
    if (splits > p.tiles / least) splits = p.tiles / least;
    if (splits > most) splits = (int)most;
    if (splits < 1) splits = 1;
    p.tiles_each = (p.tiles + splits - 1) / splits;
    splits = (p.tiles + p.tiles_each - 1) / p.tiles_each;
    sdlf_status status = slices      ? cuda_skinny_m_slices(calculator, p, splits)
                         : p.m <= 16 ? launch<16>(calculator, p, splits)
                         : p.m <= 64 ? launch<64>(calculator, p, splits)
                                     : launch<128>(calculator, p, splits);
    if (status != SDLF_OK) return status;
    const ending e = {.parts = p.parts,
                      .bias = optional<float>(op->in[2]),
                      .residual = optional<float>(op->in[3]),
                      .c = data_of<float>(c),
                      .count = count,
                      .columns = p.n,
                      .splits = splits,
                      .alpha = op->gemm.alpha,
                      .activation = op->gemm.activation};
    launch_overlapped(calculator, skinny_m_epilogue, cuda_blocks(calculator, e.count, FINISH_THREADS), FINISH_THREADS,
                      0, e);
    return cuda_check_launch("gemm");
}
