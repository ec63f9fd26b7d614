/* SPDX-License-Identifier: MIT */
/* An arena for small allocations made while a file is read, freed all at once. */
#ifndef SDLF_FORMATS_ONNX_ARENA_H
#define SDLF_FORMATS_ONNX_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "framework/formats/budget.h"

typedef struct onnx_arena {
    struct onnx_arena_block *block; /* the newest; NULL: empty, the initial state */
    read_budget *budget;            /* that blocks are charged to; NULL: there is no limit */
    bool exhausted;                 /* an allocation has failed, for callers that check only at the end */
} onnx_arena;

/* `size` zeroed bytes, aligned for any type; NULL when out of memory or budget. */
void *onnx_arena_take(onnx_arena *arena, size_t size);

/* `count` elements of `size` bytes; NULL also if the product overflows. */
void *onnx_arena_array(onnx_arena *arena, size_t count, size_t size);

/* A NUL-terminated copy of text of that length. */
char *onnx_arena_text(onnx_arena *arena, const char *text, size_t length);

void onnx_arena_release(onnx_arena *arena);

#endif
