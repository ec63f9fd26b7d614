/* SPDX-License-Identifier: MIT */
/* Vector conversions for quantised values: bytes to integers and floats, and back. Only in float instances.
 *
 * A byte is read as uint8; the upper bit of an int8 is flipped first, which adds 128 to it and to its zero point. Rounding
 * adds a constant at which a float32 has no bits below 1: to nearest, ties to even, integer in the low bits. Sums and
 * products are rounded separately (no contraction, see CMakeLists.txt): levels are bit-identical to `reference`. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_QUANTIZED_H
#define SDLF_CALCULATORS_CPU_KERNELS_QUANTIZED_H

#include "calculators/cpu/kernels/element.h"

typedef int32_t ints __attribute__((vector_size(SDLF_VECTOR_BYTES)));
typedef uint8_t bytes __attribute__((vector_size(SDLF_VECTOR_BYTES / 4)));
typedef int16_t halves __attribute__((vector_size(SDLF_VECTOR_BYTES / 2)));

/* ---- widening: compilers scalarise the conversion of vectors of bytes ---- */

static inline ints widen_bytes(bytes x)
{
#if defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64
    return (ints)_mm512_cvtepu8_epi32((__m128i)x);
#elif defined(__AVX2__) && SDLF_VECTOR_BYTES == 32
    return (ints)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)x));
#else
    return __builtin_convertvector(x, ints);
#endif
}

static inline ints widen_halves(halves x)
{
#if defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64
    return (ints)_mm512_cvtepi16_epi32((__m256i)x);
#elif defined(__AVX2__) && SDLF_VECTOR_BYTES == 32
    return (ints)_mm256_cvtepi16_epi32((__m128i)x);
#else
    return __builtin_convertvector(x, ints);
#endif
}

/* The low bytes of integers in [-128, 255]. */
static inline bytes narrow(ints x)
{
#if defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64
    return (bytes)_mm512_cvtepi32_epi8((__m512i)x);
#elif defined(__AVX2__) && SDLF_VECTOR_BYTES == 32
    const __m256i low = _mm256_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0, -1, -1, -1, -1, -1,
                                        -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0);
    __m256i fours = _mm256_shuffle_epi8((__m256i)x, low);
    __m128i eight = _mm_unpacklo_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    return (bytes)_mm_cvtsi128_si64(eight);
#else
    return __builtin_convertvector(x, bytes);
#endif
}

/* How the bytes of an operand are decoded. */
typedef struct quantised {
    uint8_t flip; /* 128 for int8 */
    int32_t zero; /* zero point, after the flip */
} quantised;

static inline quantised quantised_of(const sdlf_tensor *tensor, int zero)
{
    bool is_signed = tensor->dtype == SDLF_INT8;
    return (quantised){.flip = is_signed ? 128 : 0, .zero = is_signed ? zero + 128 : zero};
}

/* How outputs are encoded: the bounds minus the zero point, which is added after rounding. */
typedef struct rounding {
    float low, high;
    int32_t zero;
} rounding;

static inline rounding rounding_to(int zero, float low, float high)
{
    return (rounding){.low = low - (float)zero, .high = high - (float)zero, .zero = zero};
}

/* v clamped to the bounds; NaN becomes low: x86's maximum returns its second operand if one is NaN. */
static inline vector clamp_to(vector v, float low, float high)
{
    vector least = broadcast(low), most = broadcast(high);
#if defined(__AVX512F__) && SDLF_VECTOR_BYTES == 64
    return (vector)_mm512_min_ps(_mm512_max_ps((__m512)v, (__m512)least), (__m512)most);
#elif defined(__AVX__) && SDLF_VECTOR_BYTES == 32
    return (vector)_mm256_min_ps(_mm256_max_ps((__m256)v, (__m256)least), (__m256)most);
#elif defined(__SSE2__) && SDLF_VECTOR_BYTES == 16
    return (vector)_mm_min_ps(_mm_max_ps((__m128)v, (__m128)least), (__m128)most);
#else
    v = choose(v > least, v, least);
    return choose(v < most, v, most);
#endif
}

static inline bytes round_to(vector v, const rounding *to)
{
    const float whole = 12582912;    /* 1.5 2^23 */
    const int32_t bits = 0x4b400000; /* the bits of `whole` */
    v = clamp_to(v, to->low, to->high) + broadcast(whole);
    return narrow((ints)v + (to->zero - bits));
}

static inline void store_bytes(uint8_t *to, bytes v, int64_t count)
{
    if (count >= LANES)
        memcpy(to, &v, LANES);
    else if (count > 0)
#if defined(__AVX512BW__) && defined(__AVX512VL__) && SDLF_VECTOR_BYTES == 64
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << count) - 1), (__m128i)v);
#else
        memcpy(to, &v, (size_t)count);
#endif
}

/* The maximum vectors of outputs that are narrowed to bytes at once. */
enum { ROUNDED_VECTORS = SDLF_VECTOR_BYTES / 16 };

/* Rounds `vectors` vectors (a compile-time constant) to consecutive bytes. Instructions that narrow two vectors to one
 * saturate, at bounds that hold anyway, and interleave 16-byte parts of the two: a permutation restores the order. */
static inline __attribute__((always_inline)) void round_row(uint8_t *y, const vector *v, const int vectors,
                                                            const rounding *to, int64_t count)
{
#if (defined(__AVX512BW__) && SDLF_VECTOR_BYTES == 64) || (defined(__AVX2__) && SDLF_VECTOR_BYTES == 32)
    const bool is_signed = to->low + (float)to->zero < 0;
    if (vectors > 1 && count >= vectors * LANES) {
        ints whole[ROUNDED_VECTORS] = {0};
#if SDLF_VECTOR_BYTES == 64
        const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
        const __m512i zero = _mm512_set1_epi16((short)to->zero);
        UNROLLED for (int j = 0; j < vectors; j++) whole[j] =
            (ints)_mm512_cvtps_epi32((__m512)clamp_to(v[j], to->low, to->high));
        __m512i low = _mm512_packs_epi32((__m512i)whole[0], (__m512i)whole[1]),
                high = _mm512_packs_epi32((__m512i)whole[2], (__m512i)whole[3]);
        low = _mm512_add_epi16(low, zero), high = _mm512_add_epi16(high, zero);
        __m512i all = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
        all = _mm512_permutexvar_epi32(order, all);
#else
        const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0), zero = _mm256_set1_epi16((short)to->zero);
        UNROLLED for (int j = 0; j < vectors; j++) whole[j] =
            (ints)_mm256_cvtps_epi32((__m256)clamp_to(v[j], to->low, to->high));
        __m256i low = _mm256_add_epi16(_mm256_packs_epi32((__m256i)whole[0], (__m256i)whole[1]), zero);
        __m256i all = is_signed ? _mm256_packs_epi16(low, low) : _mm256_packus_epi16(low, low);
        all = _mm256_permutevar8x32_epi32(all, order);
#endif
        memcpy(y, &all, (size_t)vectors * LANES);
        return;
    }
#endif
    UNROLLED for (int j = 0; j < vectors; j++) store_bytes(y + j * LANES, round_to(v[j], to), count - j * LANES);
}

/* Loads `count` bytes, possibly fewer than lanes. */
static inline bytes load_bytes(const uint8_t *from, int64_t count)
{
    bytes v = {0};
    if (count >= LANES)
        memcpy(&v, from, LANES);
    else
        memcpy(&v, from, (size_t)count);
    return v;
}

/* x - zero, exactly. */
static inline vector differences(bytes x, quantised q)
{
    ints wide = widen_bytes(x ^ q.flip) - q.zero;
    return __builtin_convertvector(wide, vector);
}

#endif
