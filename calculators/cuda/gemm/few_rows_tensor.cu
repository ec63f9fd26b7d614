/* SPDX-License-Identifier: MIT */
/* gemm for a few rows (gemm/few_rows.cu) on tensor cores: factors rounded to tf32, float16 or bfloat16.
 *
 * A block makes ROWS x 64 numbers of c over a part of k, so that there are enough blocks for the whole device, and its warps
 * share that part: each LANE of HALVES warps has every LANES-th tile, 16 deep, and all rows and columns. So tiles come and go
 * without a barrier of the block: a lane's a and b arrive in shared memory by its own asynchronous copies, STAGES - 1 ahead,
 * in chunks of 16 bytes that are turned from line to line, so that the matrix loads meet every bank once. At the end the
 * lanes' sums meet in shared memory, in order; the blocks' parts go to scratch memory, and a second kernel adds them in order
 * and finishes. b moves once, 4 n k bytes; a once for every 64 columns, from the L2 cache. */
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/mma.cuh"

enum { WARP = 32, DEPTH = 16, COLUMNS = 64, FINISHERS = 128, WAITING = 8 /* lines of b's rows to ask for early */ };

struct product {
    const float *a, *b, *bias, *residual;
    float *c, *parts; /* (splits, blocks, ROWS, 64); c is NULL where the parts are all that is wanted */
    int m, n, k;
    int tiles, splits; /* of DEPTH */
    float alpha;
    sdlf_activation activation;
};

template <int ROWS_, int HALVES_, int LANES_, int STAGES_> struct rows_shape {
    static const int ROWS = ROWS_, HALVES = HALVES_, LANES = LANES_, STAGES = STAGES_;
    static const int THREADS = HALVES * LANES * WARP, MINE = ROWS / HALVES, PITCH = COLUMNS + 8;
};

template <class S> union rows_memory {
    float tiles[S::LANES][S::STAGES][(COLUMNS + S::ROWS) * DEPTH]; /* b, then a */
    float parts[S::LANES][S::ROWS][S::PITCH];
};

/* Where the chunk of 4 numbers of a line is. */
static __device__ __forceinline__ int place_in_tile(int line, int chunk)
{
    return line * DEPTH + (chunk ^ (line >> 1 & 3)) * 4;
}

/* A lane's tile; each of its warps brings every HALVES-th 8 lines. */
template <class S>
static __device__ __forceinline__ void load_tile(float *to, const product &p, int n0, int k0, int part)
{
    int line = threadIdx.x % WARP / 4, chunk = threadIdx.x % 4, k = k0 + chunk * 4;
#pragma unroll
    for (int r = 0; r < COLUMNS; r += 8 * S::HALVES) {
        int n = r + part * 8 + line;
        bool valid = n0 + n < p.n && k < p.k;
        copy_async(to + place_in_tile(n, chunk), p.b + (valid ? static_cast<int64_t>(n0 + n) * p.k + k : 0), valid);
    }
#pragma unroll
    for (int r = 0; r < S::ROWS; r += 8 * S::HALVES) {
        int m = r + part * 8 + line;
        bool valid = m < p.m && k < p.k;
        copy_async(to + COLUMNS * DEPTH + place_in_tile(m, chunk),
                   p.a + (valid ? static_cast<int64_t>(m) * p.k + k : 0), valid);
    }
}

template <sdlf_math MATH> static __device__ __forceinline__ void load_factors(uint32_t (&a)[4], const float *shared)
{
    load_matrices(a, shared);
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = factor_bits<MATH>(__uint_as_float(a[i]));
}

template <sdlf_math MATH, class S>
static __device__ __forceinline__ void multiply(float (&sums)[S::MINE / 16][8][4], const float *tile, int part)
{
    int lane = threadIdx.x % WARP;
    int a_line = lane % 16 + part * S::MINE, a_chunk = lane / 16;
    int b_line = lane / 16 * 8 + lane % 8, b_chunk = lane / 8 % 2;
#pragma unroll
    for (int k = 0; k < DEPTH / 8; k++) {
        uint32_t a[S::MINE / 16][4];
#pragma unroll
        for (int m = 0; m < S::MINE / 16; m++)
            load_factors<MATH>(a[m], tile + (COLUMNS + m * 16) * DEPTH + place_in_tile(a_line, 2 * k + a_chunk));
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            uint32_t b[4];
            load_factors<MATH>(b, tile + j * 8 * DEPTH + place_in_tile(b_line, 2 * k + b_chunk));
            const uint32_t low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
#pragma unroll
            for (int m = 0; m < S::MINE / 16; m++) {
                mma_tf32(sums[m][j], a[m], low);
                mma_tf32(sums[m][j + 1], a[m], high);
            }
        }
    }
}

static __device__ __forceinline__ float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* Four sums of row m, from column n on. */
static __device__ __forceinline__ void store(const product &p, int m, int n, float4 four)
{
    int64_t at = static_cast<int64_t>(m) * p.n + n;
    const float sums[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if (m >= p.m || n + e >= p.n) break;
        float sum = p.alpha * sums[e];
        if (p.bias != nullptr) sum += p.bias[n + e];
        if (p.residual != nullptr) sum += p.residual[at + e];
        p.c[at + e] = activate(p.activation, sum);
    }
}

/* The lanes' sums meet, and the block's leave. */
template <class S>
static __device__ __forceinline__ void gather_sums(const float (&sums)[S::MINE / 16][8][4],
                                                   float (&parts)[S::LANES][S::ROWS][S::PITCH], const product &p,
                                                   int n0)
{
    const int chunks = COLUMNS / 4;
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int part = threadIdx.x / WARP % S::HALVES, which = threadIdx.x / WARP / S::HALVES;
#pragma unroll
    for (int m = 0; m < S::MINE / 16; m++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float *to = &parts[which][part * S::MINE + m * 16 + g][j * 8 + 2 * t];
            *reinterpret_cast<float2 *>(to) = make_float2(sums[m][j][0], sums[m][j][1]);
            *reinterpret_cast<float2 *>(to + 8 * S::PITCH) = make_float2(sums[m][j][2], sums[m][j][3]);
        }
    }
    __syncthreads();
    int64_t mine = (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * S::ROWS * COLUMNS;
    for (int e = threadIdx.x; e < S::ROWS * chunks; e += S::THREADS) {
        int m = e / chunks, c = e % chunks * 4;
        float4 sum = *reinterpret_cast<const float4 *>(&parts[0][m][c]);
#pragma unroll
        for (int l = 1; l < S::LANES; l++) sum = plus(sum, *reinterpret_cast<const float4 *>(&parts[l][m][c]));
        if (p.splits == 1)
            store(p, m, n0 + c, sum);
        else
            *reinterpret_cast<float4 *>(p.parts + mine + e * 4) = sum;
    }
}

/* The warps of a lane wait for each other. */
template <class S> static __device__ __forceinline__ void await_lane(int which)
{
    asm volatile("bar.sync %0, %1;" ::"r"(which + 1), "n"(S::HALVES * WARP) : "memory");
}

template <sdlf_math MATH, class S> static __global__ void __launch_bounds__(S::THREADS, 1) few_rows_tensor(product p)
{
    extern __shared__ __align__(128) unsigned char bytes[];
    rows_memory<S> &memory = *reinterpret_cast<rows_memory<S> *>(bytes);
    int part = threadIdx.x / WARP % S::HALVES, which = threadIdx.x / WARP / S::HALVES, n0 = blockIdx.x * COLUMNS;
    int first = static_cast<int>(static_cast<int64_t>(p.tiles) * blockIdx.y / p.splits);
    int count = static_cast<int>(static_cast<int64_t>(p.tiles) * (blockIdx.y + 1) / p.splits) - first;
    for (int e = threadIdx.x; e < COLUMNS * WAITING; e += S::THREADS) {
        int n = n0 + e / WAITING, k = first * DEPTH + e % WAITING * 32;
        if (n < p.n && k < p.k) prefetch_line(p.b + static_cast<int64_t>(n) * p.k + k);
    }
    await_kernels();
    float sums[S::MINE / 16][8][4] = {};
#pragma unroll
    for (int ahead = 0; ahead < S::STAGES - 1; ahead++) {
        int tile = ahead * S::LANES + which;
        if (tile < count) load_tile<S>(memory.tiles[which][ahead], p, n0, (first + tile) * DEPTH, part);
        close_copies();
    }
    int stage = 0, fill = S::STAGES - 1;
    int tile = which;
    for (; tile < count; tile += S::LANES) {
        int ahead = tile + (S::STAGES - 1) * S::LANES;
        await_copies<S::STAGES - 2>();
        if (S::HALVES == 1)
            __syncwarp();
        else
            await_lane<S>(which);
        if (ahead < count) load_tile<S>(memory.tiles[which][fill], p, n0, (first + ahead) * DEPTH, part);
        close_copies();
        multiply<MATH, S>(sums, memory.tiles[which][stage], part);
        stage = stage + 1 == S::STAGES ? 0 : stage + 1;
        fill = fill + 1 == S::STAGES ? 0 : fill + 1;
    }
    /* lanes without a last tile: racecheck names hazards where warps pass barriers unequally often */
    if (S::HALVES > 1 && tile - which < count) await_lane<S>(which);
    __syncthreads();
    gather_sums<S>(sums, memory.parts, p, n0);
}

/* The blocks' parts in order; a thread four neighbours. */
template <int ROWS> static __global__ void few_rows_finish(product p, int blocks)
{
    const int chunks = COLUMNS / 4, each = ROWS * chunks;
    await_kernels();
    int i = blockIdx.x * blockDim.x + threadIdx.x, block = i / each, e = i % each;
    if (block >= blocks || e / chunks >= p.m) return;
    const float4 *parts = reinterpret_cast<const float4 *>(p.parts) + i;
    int64_t step = static_cast<int64_t>(blocks) * each;
    float4 sum = *parts;
#pragma unroll 8
    for (int k = 1; k < p.splits; k++) sum = plus(sum, parts[k * step]);
    store(p, e / chunks, block * COLUMNS + e % chunks * 4, sum);
}

template <sdlf_math MATH, class S> static sdlf_status launch(const cuda_calculator *calculator, product p)
{
    const int blocks = (p.n + COLUMNS - 1) / COLUMNS;
    const int64_t one = static_cast<int64_t>(blocks) * S::ROWS * COLUMNS * (int64_t)sizeof(float);
    p.splits = calculator->multiprocessors / blocks;
    if (p.splits > p.tiles / (2 * S::LANES)) p.splits = p.tiles / (2 * S::LANES);
    if (p.splits > CUDA_BLAS_WORKSPACE / one) p.splits = (int)(CUDA_BLAS_WORKSPACE / one);
    if (p.splits < 1) p.splits = 1;
    const dim3 grid((unsigned)blocks, (unsigned)p.splits);
    const int shared = (int)shared_alone(calculator, static_cast<int64_t>(grid.x) * grid.y, sizeof(rows_memory<S>));
    sdlf_status status = allow_shared(few_rows_tensor<MATH, S>, shared);
    if (status != SDLF_OK) return status;
    launch_overlapped(calculator, few_rows_tensor<MATH, S>, grid, S::THREADS, shared, p);
    status = cuda_check_launch("gemm");
    if (status != SDLF_OK || p.splits == 1) return status;
    launch_overlapped(calculator, few_rows_finish<S::ROWS>, (unsigned)(blocks * (S::ROWS * COLUMNS / 4 / FINISHERS)),
                      FINISHERS, 0, p, blocks);
    return cuda_check_launch("gemm");
}

template <sdlf_math MATH> static sdlf_status launch_rows(const cuda_calculator *calculator, const product &p)
{
    if (p.m <= 16) return launch<MATH, rows_shape<16, 1, 8, 3>>(calculator, p);
    if (p.m <= 64) return launch<MATH, rows_shape<64, 2, 4, 3>>(calculator, p);
    return launch<MATH, rows_shape<128, 2, 4, 3>>(calculator, p);
}

extern "C" sdlf_status cuda_gemm_few_rows_tensor(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &c = op->out[0];
    product p = {.a = data_of<float>(op->in[0]),
                 .b = data_of<float>(op->in[1]),
                 .bias = optional<float>(op->in[2]),
                 .residual = optional<float>(op->in[3]),
                 .c = data_of<float>(c)};
    p.parts = static_cast<float *>(calculator->blas_workspace);
    p.m = (int)c.shape.dim[0];
    p.n = (int)c.shape.dim[1];
    p.k = (int)op->in[0].shape.dim[1];
    p.tiles = (p.k + DEPTH - 1) / DEPTH;
    p.alpha = op->gemm.alpha;
    p.activation = op->gemm.activation;
    switch (calculator->math) {
    case SDLF_MATH_FP16: return launch_rows<SDLF_MATH_FP16>(calculator, p);
    case SDLF_MATH_BF16: return launch_rows<SDLF_MATH_BF16>(calculator, p);
    default: return launch_rows<SDLF_MATH_TF32>(calculator, p);
    }
}
