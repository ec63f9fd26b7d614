/* SPDX-License-Identifier: MIT */
/* Shapes: up to SDLF_MAX_RANK dimensions, outermost first.
 *
 * Threads: shapes are values; all functions may be called from any thread.
 * Ownership: nothing is allocated.
 * Errors: no function fails; arguments out of range give an empty shape (rank 0). */
#ifndef SDLF_SHAPE_H
#define SDLF_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SDLF_MAX_RANK 8

/* dim[0] .. dim[rank - 1]; rank 0 is a scalar. Unused dimensions are 0, so that shapes can be compared member by
 * member. */
typedef struct sdlf_shape {
    int rank;
    int64_t dim[SDLF_MAX_RANK];
} sdlf_shape;

/* sdlf_shape(1, 28, 28): a shape from its dimensions, of which there are at most SDLF_MAX_RANK. SDLF_SCALAR: the shape
 * of a scalar. */
#ifdef __cplusplus
#define SDLF_SCALAR     (sdlf_shape{})
#define sdlf_shape(...) sdlf_shape_of(__VA_ARGS__)
extern "C++" {
template <class... dimensions> constexpr sdlf_shape sdlf_shape_of(dimensions... dim)
{
    static_assert(sizeof...(dim) <= SDLF_MAX_RANK, "a shape has at most SDLF_MAX_RANK dimensions");
    return sdlf_shape{static_cast<int>(sizeof...(dim)), {static_cast<int64_t>(dim)...}};
}
}
#else
#define SDLF_SCALAR ((sdlf_shape){.rank = 0})
#define sdlf_shape(...)                                                                                                \
    ((sdlf_shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = {__VA_ARGS__}})
#endif

/* The product of the dimensions; 1 for a scalar; -1 if a dimension is negative or the product overflows int64. */
int64_t sdlf_shape_count(sdlf_shape shape);

/* The product of dim[first] .. dim[last - 1]; 1 for an empty range; 0 if there are no such dimensions. The shape must
 * be valid (sdlf_shape_count >= 0). */
int64_t sdlf_shape_span(sdlf_shape shape, int first, int last);

bool sdlf_shape_equal(sdlf_shape a, sdlf_shape b);

/* The shape to which both broadcast: axes are aligned at the last one, and an axis that has size 1 or is missing is
 * stretched. False if there is none; `common`, which may be NULL, is then unchanged. */
bool sdlf_shape_broadcast(sdlf_shape *common, sdlf_shape a, sdlf_shape b);

/* `shape` with one more dimension in front, or without dimension `axis`; a scalar (rank 0) if it already has
 * SDLF_MAX_RANK dimensions, or has no such axis. */
sdlf_shape sdlf_shape_prepend(int64_t dim, sdlf_shape shape);
sdlf_shape sdlf_shape_without(sdlf_shape shape, int axis);

/* "64x32x28x28", or "scalar". */
typedef struct sdlf_shape_text {
    char text[112];
} sdlf_shape_text;
sdlf_shape_text sdlf_shape_print(sdlf_shape shape);

#ifdef __cplusplus
}
#endif
#endif
