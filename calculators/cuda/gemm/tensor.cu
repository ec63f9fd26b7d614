/* SPDX-License-Identifier: MIT */
/* gemm on tensor cores: c (m,n) = act(alpha op(a) op(b) + bias + residual), float32, factors rounded to float16 or bfloat16 on
 * their way from shared memory to the product: for shapes whose factors are used too seldom to be worth rounding beforehand.
 *
 * A block makes 128 x 64 numbers of c, a warp 32 x 32; tiles of a and b, 32 deep, arrive as they are stored, by asynchronous
 * copies, one or two ahead; in pieces of 16 bytes where addresses and lines allow that. Moves 4 (m k + n k) bytes for every
 * 64 columns and 128 rows, of which memory gives most once, and 4 m n. */
#include "calculators/cuda/gemm/gemm.h"
#include "calculators/cuda/mma.cuh"

enum { THREADS = 256, WARP = 32, ROWS = 128, COLUMNS = 64, DEPTH = 32, SPAN = 32 /* of a warp's square */ };

struct product {
    const float *a, *b, *bias, *residual;
    float *c;
    int64_t m, n, k;
    float alpha;
    sdlf_activation activation;
    bool a_vectors, b_vectors, pairs; /* copies of 16 bytes; c written two at a time */
};

/* SIDE lines of a factor, DEPTH deep. ALONG: stored with the sum's index along its lines. Lines are longer than what they hold by
 * as much as keeps the lanes of a warp on different banks. */
template <int SIDE, bool ALONG> struct tile {
    static const int lines = ALONG ? SIDE : DEPTH, length = ALONG ? DEPTH : SIDE, line = length + (ALONG ? 8 : 4);
    float at[lines][line];

    /* The numbers k and k + 1 of line `side`. */
    __device__ __forceinline__ float2 pair(int side, int k) const
    {
        if (ALONG) return *reinterpret_cast<const float2 *>(&at[side][k]);
        return make_float2(at[k][side], at[k + 1][side]);
    }
};

template <bool A_ALONG, bool B_ALONG> struct stage {
    tile<ROWS, A_ALONG> a;
    tile<COLUMNS, B_ALONG> b;
};

/* A thread's share of the copies of a factor: in pieces of 16 bytes, or number by number, at one column of the tile and every
 * `step`-th line. Addresses move on from tile to tile, so that nothing is multiplied on the way. */
template <int SIDE, bool ALONG> struct copier {
    using shape = tile<SIDE, ALONG>;
    const float *from; /* the next tile's first piece */
    int64_t advance;   /* to the same piece of the next tile */
    int64_t length;    /* of a stored line */
    int lines_left;    /* from the first piece's line on; runs out with the tiles unless ALONG */
    int columns_left;  /* from its column on; runs out with the tiles if ALONG */
    bool vectors;

    __device__ __forceinline__ int line() const
    {
        return vectors ? threadIdx.x / (shape::length / 4) : threadIdx.x / shape::length;
    }

    __device__ __forceinline__ int column() const
    {
        return vectors ? threadIdx.x % (shape::length / 4) * 4 : threadIdx.x % shape::length;
    }

    /* A matrix (side, depth), stored so where ALONG, else transposed; the tile's part begins at side0. */
    __device__ __forceinline__ copier(const float *matrix, int64_t side0, int64_t side, int64_t depth, bool in_vectors)
    {
        vectors = in_vectors;
        int64_t first_line = line() + (ALONG ? side0 : 0), first_column = column() + (ALONG ? 0 : side0);
        length = ALONG ? depth : side;
        lines_left = static_cast<int>(clamp<int64_t>((ALONG ? side : depth) - first_line, -1, INT32_MAX));
        columns_left = static_cast<int>(clamp<int64_t>(length - first_column, -1, INT32_MAX));
        from = matrix + first_line * length + first_column;
        advance = ALONG ? DEPTH : DEPTH * length;
    }

    /* Bring the next tile. */
    __device__ __forceinline__ void fetch(shape &to, const float *anywhere)
    {
        if (vectors) {
            const int step = THREADS / (shape::length / 4);
            float *at = &to.at[line()][column()];
            const float *piece = from;
#pragma unroll
            for (int i = 0; i < shape::lines; i += step, piece += step * length) {
                bool valid = i < lines_left && columns_left > 0;
                copy_async(at + i * shape::line, valid ? piece : anywhere, valid);
            }
        } else {
            const int step = THREADS / shape::length;
            float *at = &to.at[line()][column()];
            const float *number = from;
#pragma unroll 4
            for (int i = 0; i < shape::lines; i += step, number += step * length) {
                bool valid = i < lines_left && columns_left > 0;
                copy_async_number(at + i * shape::line, valid ? number : anywhere, valid);
            }
        }
        from += advance;
        if (ALONG)
            columns_left -= DEPTH;
        else
            lines_left -= DEPTH;
    }
};

/* Two factors in one word, the first in its lower half. */
template <sdlf_math MATH> static __device__ __forceinline__ uint32_t factor_pair(float2 x)
{
    if (MATH == SDLF_MATH_FP16) {
        __half2 pair = __floats2half2_rn(x.x, x.y);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
    __nv_bfloat162 pair = __floats2bfloat162_rn(x.x, x.y);
    return *reinterpret_cast<uint32_t *>(&pair);
}

template <sdlf_math MATH, bool A_ALONG, bool B_ALONG>
static __device__ __forceinline__ void multiply(float (&sums)[2][4][4], const stage<A_ALONG, B_ALONG> &from, int row,
                                                int column)
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 2 * t; k < DEPTH; k += 16) {
        uint32_t a[2][4], b[4][2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                a[i][e] = factor_pair<MATH>(from.a.pair(row + i * 16 + g + e % 2 * 8, k + e / 2 * 8));
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int e = 0; e < 2; e++) b[j][e] = factor_pair<MATH>(from.b.pair(column + j * 8 + g, k + e * 8));
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (MATH == SDLF_MATH_FP16)
                    mma_fp16(sums[i][j], a[i], b[j]);
                else
                    mma_bf16(sums[i][j], a[i], b[j]);
            }
        }
    }
}

static __device__ __forceinline__ float finish(const product &p, float sum, int64_t at, int64_t n)
{
    float value = p.alpha * sum;
    if (p.bias != nullptr) value += p.bias[n];
    if (p.residual != nullptr) value += p.residual[at];
    return activate(p.activation, value);
}

static __device__ __forceinline__ void store(const product &p, const float (&sums)[2][4][4], int64_t m0, int64_t n0)
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int64_t m = m0 + g + i * 8;
        if (m >= p.m) return;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int64_t n = n0 + j * 8 + 2 * t, at = m * p.n + n;
            const float low = sums[i / 2][j][i % 2 * 2], high = sums[i / 2][j][i % 2 * 2 + 1];
            if (p.pairs && n < p.n) {
                *reinterpret_cast<float2 *>(p.c + at) =
                    make_float2(finish(p, low, at, n), finish(p, high, at + 1, n + 1));
            } else {
                if (n < p.n) p.c[at] = finish(p, low, at, n);
                if (n + 1 < p.n) p.c[at + 1] = finish(p, high, at + 1, n + 1);
            }
        }
    }
}

/* Grid: blocks of one column of blocks after the other, so that those at work share their part of b. */
template <sdlf_math MATH, int STAGES, bool A_ALONG, bool B_ALONG>
static __global__ void __launch_bounds__(THREADS, 2) gemm_tensor(product p, int64_t bands)
{
    extern __shared__ __align__(16) unsigned char memory[];
    stage<A_ALONG, B_ALONG> *stages = reinterpret_cast<stage<A_ALONG, B_ALONG> *>(memory);
    int64_t m0 = blockIdx.x % bands * ROWS, n0 = blockIdx.x / bands * COLUMNS, tiles = (p.k + DEPTH - 1) / DEPTH;
    int warp = threadIdx.x / WARP, row = warp % (ROWS / SPAN) * SPAN, column = warp / (ROWS / SPAN) * SPAN;
    copier<ROWS, A_ALONG> a(p.a, m0, p.m, p.k, p.a_vectors);
    copier<COLUMNS, B_ALONG> b(p.b, n0, p.n, p.k, p.b_vectors);
    float sums[2][4][4] = {};
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {
        if (ahead < tiles) {
            a.fetch(stages[ahead].a, p.a);
            b.fetch(stages[ahead].b, p.b);
        }
        close_copies();
    }
    int next = STAGES - 1, now = 0; /* stages, in turn */
    for (int64_t i = 0; i < tiles; i++) {
        await_copies<STAGES - 2>();
        __syncthreads();
        if (i + STAGES - 1 < tiles) {
            a.fetch(stages[next].a, p.a);
            b.fetch(stages[next].b, p.b);
        }
        close_copies();
        multiply<MATH>(sums, stages[now], row, column);
        next = next + 1 == STAGES ? 0 : next + 1;
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    store(p, sums, m0 + row, n0 + column);
}

/* ---- launching ---- */

template <sdlf_math MATH, int STAGES, bool A_ALONG, bool B_ALONG>
static sdlf_status launch(const cuda_calculator *calculator, const product &p)
{
    const int shared = STAGES * (int)sizeof(stage<A_ALONG, B_ALONG>);
    int64_t bands = (p.m + ROWS - 1) / ROWS, blocks = bands * ((p.n + COLUMNS - 1) / COLUMNS);
    sdlf_status status = allow_shared(gemm_tensor<MATH, STAGES, A_ALONG, B_ALONG>, shared);
    if (status != SDLF_OK) return status;
    gemm_tensor<MATH, STAGES, A_ALONG, B_ALONG><<<(unsigned)blocks, THREADS, shared, calculator->stream>>>(p, bands);
    return cuda_check_launch("gemm");
}

/* Three stages where a block may have as much memory: up to 94 KB. */
template <sdlf_math MATH, bool A_ALONG, bool B_ALONG>
static sdlf_status launch(const cuda_calculator *calculator, const product &p)
{
    if (3 * (int)sizeof(stage<A_ALONG, B_ALONG>) <= calculator->shared_most)
        return launch<MATH, 3, A_ALONG, B_ALONG>(calculator, p);
    return launch<MATH, 2, A_ALONG, B_ALONG>(calculator, p);
}

template <sdlf_math MATH>
static sdlf_status launch(const cuda_calculator *calculator, const product &p, bool a_along, bool b_along)
{
    if (a_along) return b_along ? launch<MATH, true, true>(calculator, p) : launch<MATH, true, false>(calculator, p);
    return b_along ? launch<MATH, false, true>(calculator, p) : launch<MATH, false, false>(calculator, p);
}

extern "C" bool cuda_gemm_tensor_takes(const cuda_calculator *calculator, const sdlf_operation *op)
{
    int64_t m = op->out[0].shape.dim[0], n = op->out[0].shape.dim[1];
    bool mode =
        calculator->math == SDLF_MATH_FP16 || (calculator->math == SDLF_MATH_BF16 && cuda_has_tensor_cores(calculator));
    return mode && op->out[0].dtype == SDLF_FLOAT32 && m <= INT32_MAX && n <= INT32_MAX &&
           op->in[0].shape.dim[op->gemm.transpose_a ? 0 : 1] <= INT32_MAX &&
           ((m + ROWS - 1) / ROWS) * ((n + COLUMNS - 1) / COLUMNS) <= INT32_MAX;
}

static bool in_vectors(const float *from, int64_t length)
{
    return reinterpret_cast<uintptr_t>(from) % 16 == 0 && length % 4 == 0;
}

extern "C" sdlf_status cuda_gemm_tensor(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &a = op->in[0], &b = op->in[1], &c = op->out[0];
    product p = {.a = data_of<float>(a),
                 .b = data_of<float>(b),
                 .bias = optional<float>(op->in[2]),
                 .residual = optional<float>(op->in[3]),
                 .c = data_of<float>(c),
                 .m = c.shape.dim[0],
                 .n = c.shape.dim[1],
                 .k = a.shape.dim[op->gemm.transpose_a ? 0 : 1],
                 .alpha = op->gemm.alpha,
                 .activation = op->gemm.activation};
    p.a_vectors = in_vectors(p.a, a.shape.dim[1]);
    p.b_vectors = in_vectors(p.b, b.shape.dim[1]);
    p.pairs = reinterpret_cast<uintptr_t>(p.c) % 8 == 0 && p.n % 2 == 0;
    bool a_along = !op->gemm.transpose_a, b_along = op->gemm.transpose_b;
    if (calculator->math == SDLF_MATH_FP16) return launch<SDLF_MATH_FP16>(calculator, p, a_along, b_along);
    return launch<SDLF_MATH_BF16>(calculator, p, a_along, b_along);
}
