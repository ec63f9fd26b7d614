/* SPDX-License-Identifier: MIT */
/* What the attention kernels share (Dao, "FlashAttention-2", 2023): a block of 4 warps, each with 16 rows of a tile of 64 x 64 scores; GEMMs
 * on Tensor Cores (mma.sync), accumulators in registers.
 *
 * Operands are stored in shared memory as words along the reduction: one tf32 value, or two of 16 bits. In fp32 a value is split into two of
 * tf32, and multiplied by three mma (Ootomo & Yokota, "Recovering single precision accuracy from Tensor Cores", 2022). */
#ifndef SDLF_CALCULATORS_CUDA_ATTENTION_CUH
#define SDLF_CALCULATORS_CUDA_ATTENTION_CUH

#include <type_traits>

#include "calculators/cuda/attention/attention.h"
#include "calculators/cuda/kernels.cuh"
#include "calculators/cuda/mma.cuh"

enum { WARP = 32, TILE = 8 /* columns of an mma.sync */, TILES = ATTENTION_BLOCK / TILE, WARP_ROWS = 16 };

template <sdlf_math MATH> constexpr bool is_half = MATH == SDLF_MATH_FP16 || MATH == SDLF_MATH_BF16;

/* The math mode whose operands are of a 16-bit storage type. */
template <typename T>
constexpr sdlf_math operand_math_of = std::is_same<T, __half>::value ? SDLF_MATH_FP16 : SDLF_MATH_BF16;

/* Words of a row of `count` elements, padded so that the rows of a fragment are in different banks. */
template <sdlf_math MATH> __host__ __device__ constexpr int row_words(int count)
{
    return count / (is_half<MATH> ? 2 : 1) + 4;
}

static __device__ __forceinline__ attention_head attention_head_of(const attention_arguments &p, int sample, int head)
{
    float unseen = p.unseen != nullptr ? *p.unseen : static_cast<float>(SDLF_ATTENTION_UNSEEN);
    return {sample, head, head / (p.heads / p.groups), sample * p.mask_stride[0] + head * p.mask_stride[1], unseen};
}

template <typename T = float>
static __device__ __forceinline__ attention_rows head_rows(const attention_operand &x, int sample, int head)
{
    attention_rows rows = x.first;
    rows.data = static_cast<T *>(rows.data) + sample * x.sample + head * x.head;
    return rows;
}

/* ---- words ---- */

template <sdlf_math MATH> static __device__ __forceinline__ uint32_t pack_two(float low, float high)
{
    if constexpr (MATH == SDLF_MATH_FP16) {
        __half2 both = __floats2half2_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&both);
    } else {
        __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&both);
    }
}

/* One value as a word: rounded to tf32, or, in fp32, unchanged. */
template <sdlf_math MATH> static __device__ __forceinline__ uint32_t pack_one(float x)
{
    return MATH == SDLF_MATH_TF32 ? operand_bits<SDLF_MATH_TF32>(x) : __float_as_uint(x);
}

/* The tf32 part of a float32 value; rest_of returns the remainder. */
static __device__ __forceinline__ uint32_t upper_bits(uint32_t x)
{
    return x & 0xffffe000u;
}

static __device__ __forceinline__ uint32_t rest_of(uint32_t x)
{
    float value = __uint_as_float(x);
    return fabsf(value) < INFINITY ? __float_as_uint(value - __uint_as_float(upper_bits(x))) : 0u;
}

/* c += a b, (16,8 words) by (8 words,8). */
template <sdlf_math MATH>
static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    if constexpr (MATH == SDLF_MATH_FP16) {
        mma_fp16(c, a, b);
    } else if constexpr (MATH == SDLF_MATH_BF16) {
        mma_bf16(c, a, b);
    } else if constexpr (MATH == SDLF_MATH_TF32) {
        mma_tf32(c, a, b);
    } else {
        uint32_t a_upper[4], a_rest[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a_upper[i] = upper_bits(a[i]), a_rest[i] = rest_of(a[i]);
        const uint32_t b_upper[2] = {upper_bits(b[0]), upper_bits(b[1])}, b_rest[2] = {rest_of(b[0]), rest_of(b[1])};
        mma_tf32(c, a_rest, b_upper);
        mma_tf32(c, a_upper, b_rest);
        mma_tf32(c, a_upper, b_upper);
    }
}

/* ---- tiles of operands ---- */

/* Load four elements of a row from `column` on; zeros outside of the matrix. */
static __device__ __forceinline__ float4 load_four(const attention_rows &x, int64_t row, int column, bool valid)
{
    float4 four = make_float4(0, 0, 0, 0);
    if (!valid || column >= x.columns) return four;
    const float *from = static_cast<const float *>(x.data) + row * x.stride + column;
    if (x.aligned) return *reinterpret_cast<const float4 *>(from);
    four.x = from[0];
    if (column + 1 < x.columns) four.y = from[1];
    if (column + 2 < x.columns) four.z = from[2];
    if (column + 3 < x.columns) four.w = from[3];
    return four;
}

/* Load ATTENTION_BLOCK rows from `first` on, D columns, as words of a row. */
template <sdlf_math MATH, int D>
static __device__ __forceinline__ void load_block(uint32_t *to, const attention_rows &x, int first)
{
    constexpr int FOURS = D / 4, LINE = row_words<MATH>(D);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < ATTENTION_BLOCK * FOURS; i += ATTENTION_THREADS) {
        int row = i / FOURS, column = i % FOURS * 4;
        float4 x4 = load_four(x, first + row, column, first + row < x.rows);
        if constexpr (is_half<MATH>) {
            uint32_t *word = to + row * LINE + column / 2;
            word[0] = pack_two<MATH>(x4.x, x4.y), word[1] = pack_two<MATH>(x4.z, x4.w);
        } else {
            uint32_t *word = to + row * LINE + column;
            word[0] = pack_one<MATH>(x4.x), word[1] = pack_one<MATH>(x4.y);
            word[2] = pack_one<MATH>(x4.z), word[3] = pack_one<MATH>(x4.w);
        }
    }
}

/* ---- warp-level GEMMs ---- */

/* load_matrices of 16-bit elements, each matrix transposed: a lane gets two elements of column g, from rows 2t and 2t + 1. */
static __device__ __forceinline__ void load_transposed(uint32_t (&b)[4], const void *shared)
{
    uint32_t from = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(from)
                 : "memory");
}

/* c (16,64) = a b^T over D elements: a has this warp's 16 rows, b has 64. */
template <sdlf_math MATH, int D>
static __device__ __forceinline__ void multiply_rows(float (&c)[TILES][4], const uint32_t *a, const uint32_t *b)
{
    constexpr int LINE = row_words<MATH>(D), WORDS = LINE - 4;
    int lane = static_cast<int>(threadIdx.x) % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < TILES; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
#pragma unroll 4
    for (int k = 0; k < WORDS; k += TILE) {
        const uint32_t *row = a + g * LINE + k + t;
        const uint32_t left[4] = {row[0], row[8 * LINE], row[4], row[8 * LINE + 4]};
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            const uint32_t *column = b + (n * TILE + g) * LINE + k + t;
            const uint32_t right[2] = {column[0], column[4]};
            multiply<MATH>(c[n], left, right);
        }
    }
}

/* c (16,D) += p b over 64 rows of b: p is the output of multiply_rows. In tf32, columns 2t and 2t + 1 of p take the places t and t + 4 of the
 * mma's k order, and so do rows of b. */
template <sdlf_math MATH, int D>
static __device__ __forceinline__ void multiply_scores(float (&c)[D / TILE][4], const float (&p)[TILES][4],
                                                       const uint32_t *b)
{
    constexpr int LINE = row_words<MATH>(D);
    int lane = static_cast<int>(threadIdx.x) % WARP, g = lane / 4, t = lane % 4;
    if constexpr (is_half<MATH>) {
        const uint32_t *from = b + lane % 16 * LINE + lane / 16 * 4;
#pragma unroll
        for (int k = 0; k < TILES; k += 2) {
            const uint32_t left[4] = {pack_two<MATH>(p[k][0], p[k][1]), pack_two<MATH>(p[k][2], p[k][3]),
                                      pack_two<MATH>(p[k + 1][0], p[k + 1][1]),
                                      pack_two<MATH>(p[k + 1][2], p[k + 1][3])};
#pragma unroll
            for (int n = 0; n < D / TILE; n += 2) {
                uint32_t right[4];
                load_transposed(right, from + k * TILE * LINE + n * TILE / 2);
                multiply<MATH>(c[n], left, {right[0], right[1]});
                multiply<MATH>(c[n + 1], left, {right[2], right[3]});
            }
        }
    } else {
        const uint32_t *from = b + 2 * t * LINE + g;
#pragma unroll
        for (int k = 0; k < TILES; k++) {
            const uint32_t left[4] = {pack_one<MATH>(p[k][0]), pack_one<MATH>(p[k][2]), pack_one<MATH>(p[k][1]),
                                      pack_one<MATH>(p[k][3])};
#pragma unroll
            for (int n = 0; n < D / TILE; n++) {
                const uint32_t *word = from + k * TILE * LINE + n * TILE;
                multiply<MATH>(c[n], left, {word[0], word[LINE]});
            }
        }
    }
}

/* ---- scores ---- */

/* The score for a dot product of query and key; minus infinity if the query does not see the key. */
static __device__ __forceinline__ float finish_score(const attention_arguments &p, const attention_head &at, int query,
                                                     int key, float product)
{
    if (query >= p.queries || key >= p.keys || (p.causal && key > query + p.keys - p.queries)) return -INFINITY;
    float score = product * p.scale;
    if (p.mask == nullptr) return score;
    int64_t place = at.mask + query * p.mask_stride[2] + key * p.mask_stride[3];
    if (!p.mask_is_bool) return score + static_cast<const float *>(p.mask)[place];
    return static_cast<const bool *>(p.mask)[place] != p.mask_hides ? score : at.unseen;
}

template <sdlf_math MATH> static __device__ __forceinline__ float exponential(float x)
{
    return MATH == SDLF_MATH_FP32 ? expf(x) : exp2f(x * 1.44269504f);
}

/* Store two adjacent elements. */
template <typename T> static __device__ __forceinline__ void store_two(T *to, float low, float high)
{
    if constexpr (sizeof(T) == 2)
        *reinterpret_cast<uint32_t *>(to) = pack_two<operand_math_of<T>>(low, high);
    else
        *reinterpret_cast<float2 *>(to) = make_float2(low, high);
}

/* Store a warp's rows of c (16,D), scaled by `factor` for rows g and g + 8. */
template <typename T, int D>
static __device__ __forceinline__ void store_rows(const attention_rows &y, int first, const float (&c)[D / TILE][4],
                                                  const float (&factor)[2])
{
    int lane = static_cast<int>(threadIdx.x) % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = first + g + 8 * half;
        if (row >= y.rows) continue;
#pragma unroll
        for (int n = 0; n < D / TILE; n++) {
            int column = n * TILE + 2 * t;
            T *to = static_cast<T *>(y.data) + row * y.stride + column;
            float low = c[n][2 * half] * factor[half], high = c[n][2 * half + 1] * factor[half];
            if (y.aligned) {
                if (column < y.columns) store_two(to, low, high);
            } else {
                if (column < y.columns) to[0] = static_cast<T>(low);
                if (column + 1 < y.columns) to[1] = static_cast<T>(high);
            }
        }
    }
}

/* Call function(D), D a compile-time constant of at least `depth`. */
template <typename Function> static void with_attention_depth(int depth, Function function)
{
    if (depth <= 32)
        function(std::integral_constant<int, 32>());
    else if (depth <= 64)
        function(std::integral_constant<int, 64>());
    else
        function(std::integral_constant<int, 128>());
}

/* Call function(math, D), both compile-time constants. */
template <typename Function> static void with_attention_shape(sdlf_math math, int depth, Function function)
{
    auto with_depth = [&](auto mode) { with_attention_depth(depth, [&](auto columns) { function(mode, columns); }); };
    switch (math) {
    case SDLF_MATH_TF32: with_depth(std::integral_constant<sdlf_math, SDLF_MATH_TF32>()); break;
    case SDLF_MATH_FP16: with_depth(std::integral_constant<sdlf_math, SDLF_MATH_FP16>()); break;
    case SDLF_MATH_BF16: with_depth(std::integral_constant<sdlf_math, SDLF_MATH_BF16>()); break;
    default: with_depth(std::integral_constant<sdlf_math, SDLF_MATH_FP32>()); break;
    }
}

#endif
