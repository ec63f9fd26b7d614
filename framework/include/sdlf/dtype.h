/* SPDX-License-Identifier: MIT */
/* Element types of tensors.
 *
 * Threads: all functions may be called from any thread.
 * Ownership: returned strings belong to the library and are always valid.
 * Errors: none; an unknown type has no size and the name "unknown". */
#ifndef SDLF_DTYPE_H
#define SDLF_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SDLF_NONE is zero, so a zeroed operand is absent. float16 is IEEE 754 binary16; bfloat16 is the upper half of a
 * binary32. Both are storage types: they are converted to float32 before arithmetic. A bool is one byte, 0 or
 * 1. */
typedef enum sdlf_dtype {
    SDLF_NONE = 0,
    SDLF_FLOAT32,
    SDLF_FLOAT64,
    SDLF_FLOAT16,
    SDLF_BFLOAT16,
    SDLF_UINT8,
    SDLF_INT32,
    SDLF_INT64,
    SDLF_INT8,
    SDLF_BOOL,
    SDLF_DTYPE_COUNT
} sdlf_dtype;

/* Bytes of one element; 0 for SDLF_NONE and for values outside the enumeration. */
size_t sdlf_dtype_size(sdlf_dtype dtype);

/* "float32", "uint8", ...; "none" for SDLF_NONE. */
const char *sdlf_dtype_name(sdlf_dtype dtype);

/* The dtype of that name, or SDLF_NONE. */
sdlf_dtype sdlf_dtype_from_name(const char *name);

bool sdlf_dtype_is_float(sdlf_dtype dtype);

/* Convert `count` elements between host arrays. Floating-point values become integers by truncation toward zero (NaN
 * becomes 0), and all values saturate at the limits of an integer type. Non-zero values become true. float64 is rounded
 * to narrower types, to nearest, ties to even. The arrays must not overlap, unless they are the same array with the
 * same dtype. */
void sdlf_convert(sdlf_dtype to, void *destination, sdlf_dtype from, const void *source, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
