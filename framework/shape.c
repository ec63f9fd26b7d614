/* SPDX-License-Identifier: MIT */
/* Shapes: counting with overflow checks, comparing, printing. */
#include <sdlf/shape.h>

#include <inttypes.h>
#include <stdio.h>

/* A dimension of 0 makes the count 0, but the product of the others must not overflow either: strides use it. */
int64_t sdlf_shape_count(sdlf_shape shape)
{
    if (shape.rank < 0 || shape.rank > SDLF_MAX_RANK) return -1;
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < shape.rank; i++) {
        int64_t dim = shape.dim[i];
        if (dim < 0) return -1;
        if (dim == 0) {
            empty = true;
        } else {
            if (product > INT64_MAX / dim) return -1;
            product *= dim;
        }
    }
    return empty ? 0 : product;
}

int64_t sdlf_shape_span(sdlf_shape shape, int first, int last)
{
    if (first < 0 || last > shape.rank || shape.rank > SDLF_MAX_RANK) return 0;
    uint64_t product = 1; /* may wrap for an empty shape, whose other sizes are arbitrary */
    for (int i = first; i < last; i++) product *= (uint64_t)shape.dim[i];
    return (int64_t)product;
}

bool sdlf_shape_equal(sdlf_shape a, sdlf_shape b)
{
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++) {
        if (a.dim[i] != b.dim[i]) return false;
    }
    return true;
}

sdlf_shape sdlf_shape_prepend(int64_t dim, sdlf_shape shape)
{
    if (shape.rank < 0 || shape.rank >= SDLF_MAX_RANK) return (sdlf_shape){.rank = 0};
    sdlf_shape result = {.rank = shape.rank + 1, .dim = {dim}};
    for (int i = 0; i < shape.rank; i++) result.dim[i + 1] = shape.dim[i];
    return result;
}

sdlf_shape sdlf_shape_without(sdlf_shape shape, int axis)
{
    if (axis < 0 || axis >= shape.rank || shape.rank > SDLF_MAX_RANK) return (sdlf_shape){.rank = 0};
    sdlf_shape result = {.rank = shape.rank - 1};
    for (int i = 0, to = 0; i < shape.rank; i++) {
        if (i != axis) result.dim[to++] = shape.dim[i];
    }
    return result;
}

sdlf_shape_text sdlf_shape_print(sdlf_shape shape)
{
    sdlf_shape_text result = {"scalar"};
    size_t used = 0;
    for (int i = 0; i < shape.rank && i < SDLF_MAX_RANK && used < sizeof result.text; i++) {
        int length =
            snprintf(result.text + used, sizeof result.text - used, i == 0 ? "%" PRId64 : "x%" PRId64, shape.dim[i]);
        if (length < 0) break;
        used += (size_t)length;
    }
    return result;
}

bool sdlf_shape_broadcast(sdlf_shape *common, sdlf_shape a, sdlf_shape b)
{
    sdlf_shape both = a.rank >= b.rank ? a : b;
    for (int back = 1; back <= both.rank; back++) {
        int64_t x = back <= a.rank ? a.dim[a.rank - back] : 1, y = back <= b.rank ? b.dim[b.rank - back] : 1;
        if (x != y && x != 1 && y != 1) return false;
        both.dim[both.rank - back] = x == 1 ? y : x;
    }
    if (common != NULL) *common = both;
    return true;
}
