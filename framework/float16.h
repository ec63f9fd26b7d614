/* SPDX-License-Identifier: MIT */
/* Conversion of single 16-bit floating-point values from and to float32 by their bits: correct also if denormals are
 * flushed to zero, and simple enough for compilers to vectorise. Rounding is to nearest, ties to even; overflow gives
 * infinity; every NaN becomes the quiet NaN without a payload, with its sign. */
#ifndef SDLF_FRAMEWORK_FLOAT16_H
#define SDLF_FRAMEWORK_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline float sdlf_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t sdlf_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- bfloat16: the upper half of a float32 ---- */

static inline uint16_t sdlf_to_bfloat16(float value)
{
    uint32_t bits = sdlf_bits_of_float(value), size = bits & 0x7FFFFFFF;
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, nan = (bits >> 16 & 0x8000) | 0x7FC0;
    return (uint16_t)(size > 0x7F800000 ? nan : rounded);
}

static inline float sdlf_from_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16, nan = (bits & 0x80000000) | 0x7FC00000;
    return sdlf_float_of_bits((half & 0x7FFF) > 0x7F80 ? nan : bits);
}

/* ---- float16: 5 bits of exponent, 10 of mantissa ---- */

static inline uint16_t sdlf_to_float16(float value)
{
    uint32_t bits = sdlf_bits_of_float(value), size = bits & 0x7FFFFFFF;
    uint32_t normal = (size + 0xC8000FFF + (size >> 13 & 1)) >> 13;
    /* denormals: adding 0.5 rounds at 2^-24, the smallest float16 */
    uint32_t small = sdlf_bits_of_float(sdlf_float_of_bits(size) + 0.5f) - 0x3F000000;
    uint32_t half = size < 0x38800000 ? small : normal;
    half = size >= 0x477FF000 ? 0x7C00 : half; /* 65520 and more round to infinity */
    half = size > 0x7F800000 ? 0x7E00 : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline float sdlf_from_float16(uint16_t half)
{
    uint32_t size = (uint32_t)(half & 0x7FFF) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t normal = size + (112u << 23);
    /* denormals have no implicit leading one: add it to the bits, then subtract its value */
    uint32_t small = sdlf_bits_of_float(sdlf_float_of_bits(size + (113u << 23)) - sdlf_float_of_bits(113u << 23));
    uint32_t bits = size < (1u << 23) ? small : normal;
    bits = size >= 0x0F800000 ? 0x7F800000 : bits;
    bits = size > 0x0F800000 ? 0x7FC00000 : bits;
    return sdlf_float_of_bits(bits | sign);
}

#endif
