/* SPDX-License-Identifier: MIT */
/* Memory that is taken in small pieces while a file is read, and given back all at once. */
#ifndef SDLF_FORMATS_ONNX_ARENA_H
#define SDLF_FORMATS_ONNX_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "framework/formats/budget.h"

typedef struct onnx_arena {
    struct onnx_arena_block *block; /* the newest; NULL: empty, which is how an arena begins */
    read_budget *budget;            /* that blocks are taken from; NULL: there is no limit */
    bool exhausted;                 /* memory was out at some time, for those who ask only at the end */
} onnx_arena;

/* `size` zeroed bytes, aligned for any type; NULL when memory is out, or the budget is. */
void *onnx_arena_take(onnx_arena *arena, size_t size);

/* `count` elements of `size` bytes; NULL also where the product overflows. */
void *onnx_arena_array(onnx_arena *arena, size_t count, size_t size);

/* A copy of text of that length, ended by a NUL. */
char *onnx_arena_text(onnx_arena *arena, const char *text, size_t length);

void onnx_arena_release(onnx_arena *arena);

#endif
