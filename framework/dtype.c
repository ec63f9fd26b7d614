/* SPDX-License-Identifier: MIT */
/* Element types: sizes, names, and conversion between any two of them.
 *
 * Conversion works in blocks, through a wide type: float64 for floating-point sources, int64 for integer ones. Every
 * source type fits its wide type exactly, so each element is rounded only once, when it is written. */
#include <sdlf/dtype.h>

#include <math.h>
#include <string.h>

#include "framework/float16.h"

enum { BLOCK = 256 };

static const struct {
    const char *name;
    size_t size;
} dtypes[SDLF_DTYPE_COUNT] = {
    [SDLF_NONE] = {"none", 0},       [SDLF_FLOAT32] = {"float32", 4},   [SDLF_FLOAT64] = {"float64", 8},
    [SDLF_FLOAT16] = {"float16", 2}, [SDLF_BFLOAT16] = {"bfloat16", 2}, [SDLF_UINT8] = {"uint8", 1},
    [SDLF_INT32] = {"int32", 4},     [SDLF_INT64] = {"int64", 8},       [SDLF_INT8] = {"int8", 1},
    [SDLF_BOOL] = {"bool", 1},
};

static bool is_known(sdlf_dtype dtype)
{
    return (unsigned)dtype < SDLF_DTYPE_COUNT;
}

size_t sdlf_dtype_size(sdlf_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].size : 0;
}

const char *sdlf_dtype_name(sdlf_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].name : "unknown";
}

sdlf_dtype sdlf_dtype_from_name(const char *name)
{
    if (name == NULL) return SDLF_NONE;
    for (int i = 1; i < SDLF_DTYPE_COUNT; i++) {
        if (strcmp(name, dtypes[i].name) == 0) return (sdlf_dtype)i;
    }
    return SDLF_NONE;
}

bool sdlf_dtype_is_float(sdlf_dtype dtype)
{
    return dtype == SDLF_FLOAT32 || dtype == SDLF_FLOAT64 || dtype == SDLF_FLOAT16 || dtype == SDLF_BFLOAT16;
}

/* ---- 16-bit floating types: one sign bit, `exponent_bits`, `mantissa_bits` ---- */

/* Round to nearest, ties to even; overflow gives infinity, NaN stays a (quiet) NaN. */
static uint16_t narrow(double value, int exponent_bits, int mantissa_bits)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint16_t infinity = (uint16_t)(((1 << exponent_bits) - 1) << mantissa_bits);
    if (isnan(value)) return (uint16_t)(sign | infinity | 1u << (mantissa_bits - 1));

    int biased = (int)(bits >> 52 & 0x7FF) - 1023 + bias;
    if (biased > 2 * bias) return sign | infinity;
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int shift = 52 - mantissa_bits;
    if (biased <= 0) { /* subnormal: the leading one is no longer implicit */
        shift += 1 - biased;
        biased = 1;
        mantissa = shift > 54 ? 0 : mantissa;
        shift = shift > 54 ? 54 : shift;
    }
    uint64_t kept = mantissa >> shift, rest = mantissa & ((UINT64_C(1) << shift) - 1),
             half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    /* `kept` includes the leading one, which adds one exponent step; a carry propagates into the exponent. */
    return (uint16_t)(sign | (((uint64_t)(biased - 1) << mantissa_bits) + kept));
}

static double widen(uint16_t bits, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    int exponent = bits >> mantissa_bits & top;
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    double size;
    if (exponent == top) {
        size = mantissa ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        size = ldexp(mantissa, 1 - bias - mantissa_bits);
    } else {
        size = ldexp(mantissa | 1 << mantissa_bits, exponent - bias - mantissa_bits);
    }
    return bits >> 15 ? -size : size;
}

/* ---- one block ---- */

static void load_floats(double *wide, sdlf_dtype from, const char *source, int64_t count)
{
    switch (from) {
    case SDLF_FLOAT32:
        for (int64_t i = 0; i < count; i++) wide[i] = (double)((const float *)source)[i];
        break;
    case SDLF_FLOAT16:
        for (int64_t i = 0; i < count; i++) wide[i] = widen(((const uint16_t *)source)[i], 5, 10);
        break;
    case SDLF_BFLOAT16:
        for (int64_t i = 0; i < count; i++) wide[i] = widen(((const uint16_t *)source)[i], 8, 7);
        break;
    default: memcpy(wide, source, (size_t)count * sizeof *wide); break;
    }
}

static void load_integers(int64_t *wide, sdlf_dtype from, const char *source, int64_t count)
{
    switch (from) {
    case SDLF_UINT8:
        for (int64_t i = 0; i < count; i++) wide[i] = ((const uint8_t *)source)[i];
        break;
    case SDLF_INT8:
        for (int64_t i = 0; i < count; i++) wide[i] = ((const int8_t *)source)[i];
        break;
    case SDLF_BOOL:
        for (int64_t i = 0; i < count; i++) wide[i] = ((const uint8_t *)source)[i] != 0;
        break;
    case SDLF_INT32:
        for (int64_t i = 0; i < count; i++) wide[i] = ((const int32_t *)source)[i];
        break;
    default: memcpy(wide, source, (size_t)count * sizeof *wide); break;
    }
}

/* Toward zero, saturating in [low, high]; NaN becomes 0. Both ends are exact in float64. */
static double clamp_to(double value, double low, double high)
{
    if (isnan(value)) return 0;
    return value < low ? low : value > high ? high : trunc(value);
}

static void store_floats(sdlf_dtype to, char *destination, const double *wide, int64_t count)
{
    switch (to) {
    case SDLF_FLOAT32:
        for (int64_t i = 0; i < count; i++) ((float *)destination)[i] = (float)wide[i];
        break;
    case SDLF_FLOAT64: memcpy(destination, wide, (size_t)count * sizeof *wide); break;
    case SDLF_FLOAT16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)destination)[i] = narrow(wide[i], 5, 10);
        break;
    case SDLF_BFLOAT16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)destination)[i] = narrow(wide[i], 8, 7);
        break;
    case SDLF_UINT8:
        for (int64_t i = 0; i < count; i++) ((uint8_t *)destination)[i] = (uint8_t)clamp_to(wide[i], 0, UINT8_MAX);
        break;
    case SDLF_INT8:
        for (int64_t i = 0; i < count; i++) ((int8_t *)destination)[i] = (int8_t)clamp_to(wide[i], INT8_MIN, INT8_MAX);
        break;
    case SDLF_BOOL:
        for (int64_t i = 0; i < count; i++) ((uint8_t *)destination)[i] = wide[i] != 0;
        break;
    case SDLF_INT32:
        for (int64_t i = 0; i < count; i++) {
            ((int32_t *)destination)[i] = (int32_t)clamp_to(wide[i], INT32_MIN, INT32_MAX);
        }
        break;
    default: /* int64: 2^63 itself is out of range, and is the first float64 beyond it */
        for (int64_t i = 0; i < count; i++) {
            ((int64_t *)destination)[i] = wide[i] >= 0x1p63 ? INT64_MAX : (int64_t)clamp_to(wide[i], -0x1p63, 0x1p63);
        }
        break;
    }
}

/* An int64 as a float64 that rounds to every narrower type as the integer itself would: bits beyond the leading 52 are
 * ORed into the lowest bit that is kept (a sticky bit). */
static double sticky(int64_t value)
{
    if (value > -(INT64_C(1) << 53) && value < INT64_C(1) << 53) return (double)value;
    int64_t kept = value & ~INT64_C(0x7FF);
    return (double)(value == kept ? kept : kept | 0x800);
}

static int64_t clamp_integer(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void store_integers(sdlf_dtype to, char *destination, const int64_t *wide, int64_t count)
{
    switch (to) {
    case SDLF_FLOAT32:
        for (int64_t i = 0; i < count; i++) ((float *)destination)[i] = (float)wide[i];
        break;
    case SDLF_FLOAT64:
        for (int64_t i = 0; i < count; i++) ((double *)destination)[i] = (double)wide[i];
        break;
    case SDLF_FLOAT16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)destination)[i] = narrow(sticky(wide[i]), 5, 10);
        break;
    case SDLF_BFLOAT16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)destination)[i] = narrow(sticky(wide[i]), 8, 7);
        break;
    case SDLF_UINT8:
        for (int64_t i = 0; i < count; i++) ((uint8_t *)destination)[i] = (uint8_t)clamp_integer(wide[i], 0, UINT8_MAX);
        break;
    case SDLF_INT8:
        for (int64_t i = 0; i < count; i++)
            ((int8_t *)destination)[i] = (int8_t)clamp_integer(wide[i], INT8_MIN, INT8_MAX);
        break;
    case SDLF_BOOL:
        for (int64_t i = 0; i < count; i++) ((uint8_t *)destination)[i] = wide[i] != 0;
        break;
    case SDLF_INT32:
        for (int64_t i = 0; i < count; i++) {
            ((int32_t *)destination)[i] = (int32_t)clamp_integer(wide[i], INT32_MIN, INT32_MAX);
        }
        break;
    default: memcpy(destination, wide, (size_t)count * sizeof *wide); break;
    }
}

/* Floats to 8-bit integers, towards zero, saturating; NaN becomes 0. Branch-free, so that it vectorises. */
static int32_t byte_of(float value, float low, float high)
{
    float number = value == value ? value : 0;
    float raised = number > low ? number : low;
    return (int32_t)(raised < high ? raised : high);
}

/* Between float32 and 16-bit types: for gradients that are communicated, and weights in files. */
static bool convert_halves(sdlf_dtype to, void *destination, sdlf_dtype from, const void *source, int64_t count)
{
    const uint16_t *half = source;
    const float *x = source;
    uint16_t *narrowed = destination;
    float *y = destination;
    if (from == SDLF_FLOAT32 && to == SDLF_BFLOAT16)
        for (int64_t i = 0; i < count; i++) narrowed[i] = sdlf_to_bfloat16(x[i]);
    else if (from == SDLF_FLOAT32 && to == SDLF_FLOAT16)
        for (int64_t i = 0; i < count; i++) narrowed[i] = sdlf_to_float16(x[i]);
    else if (from == SDLF_BFLOAT16 && to == SDLF_FLOAT32)
        for (int64_t i = 0; i < count; i++) y[i] = sdlf_from_bfloat16(half[i]);
    else if (from == SDLF_FLOAT16 && to == SDLF_FLOAT32)
        for (int64_t i = 0; i < count; i++) y[i] = sdlf_from_float16(half[i]);
    else
        return false;
    return true;
}

/* Frequent conversions of quantised networks, done directly instead of through a wide type. False: any other
 * conversion. */
static bool convert_directly(sdlf_dtype to, void *destination, sdlf_dtype from, const void *source, int64_t count)
{
    if (from == SDLF_FLOAT32 && (to == SDLF_UINT8 || to == SDLF_INT8)) {
        const float *x = source, low = to == SDLF_UINT8 ? 0 : INT8_MIN, high = to == SDLF_UINT8 ? UINT8_MAX : INT8_MAX;
        uint8_t *y = destination; /* the low bits of an int8 are its value */
        for (int64_t i = 0; i < count; i++) y[i] = (uint8_t)byte_of(x[i], low, high);
        return true;
    }
    if (to != SDLF_FLOAT32) return false;
    float *y = destination;
    if (from == SDLF_UINT8) {
        for (int64_t i = 0; i < count; i++) y[i] = ((const uint8_t *)source)[i];
        return true;
    }
    if (from == SDLF_INT8) {
        for (int64_t i = 0; i < count; i++) y[i] = ((const int8_t *)source)[i];
        return true;
    }
    return false;
}

void sdlf_convert(sdlf_dtype to, void *destination, sdlf_dtype from, const void *source, int64_t count)
{
    if (destination == NULL || source == NULL) return;
    int64_t to_size = (int64_t)sdlf_dtype_size(to), from_size = (int64_t)sdlf_dtype_size(from);
    if (count <= 0 || to_size == 0 || from_size == 0) return;
    if (to == from) {
        if (destination != source) memcpy(destination, source, (size_t)(count * to_size));
        return;
    }
    if (convert_halves(to, destination, from, source, count)) return;
    if (convert_directly(to, destination, from, source, count)) return;
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t length = count - first < BLOCK ? count - first : BLOCK;
        char *out = (char *)destination + first * to_size;
        const char *in = (const char *)source + first * from_size;
        if (sdlf_dtype_is_float(from)) {
            double wide[BLOCK];
            load_floats(wide, from, in, length);
            store_floats(to, out, wide, length);
        } else {
            int64_t wide[BLOCK];
            load_integers(wide, from, in, length);
            store_integers(to, out, wide, length);
        }
    }
}
