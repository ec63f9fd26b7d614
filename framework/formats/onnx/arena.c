/* SPDX-License-Identifier: MIT */
/* A list of memory blocks, the newest first. See arena.h. */
#include "framework/formats/onnx/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

struct onnx_arena_block {
    struct onnx_arena_block *older;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

static struct onnx_arena_block *add_block(onnx_arena *arena, size_t size)
{
    if (!read_budget_take(arena->budget, (int64_t)size)) return NULL;
    struct onnx_arena_block *block = calloc(1, sizeof *block + size);
    if (block == NULL) {
        read_budget_give_back(arena->budget, (int64_t)size);
        return NULL;
    }
    block->size = size;
    block->older = arena->block;
    arena->block = block;
    return block;
}

void *onnx_arena_take(onnx_arena *arena, size_t size)
{
    const size_t unit = alignof(max_align_t);
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + unit - 1) / unit * unit;
    struct onnx_arena_block *block = arena->block;
    if (block == NULL || block->size - block->used < size) block = add_block(arena, size > BLOCK ? size : BLOCK);
    arena->exhausted = arena->exhausted || block == NULL;
    if (block == NULL) return NULL;
    void *piece = block->bytes + block->used;
    block->used += size;
    return piece;
}

void *onnx_arena_array(onnx_arena *arena, size_t count, size_t size)
{
    return size > 0 && count > SIZE_MAX / 2 / size ? NULL : onnx_arena_take(arena, count * size);
}

char *onnx_arena_text(onnx_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX / 2 ? onnx_arena_take(arena, length + 1) : NULL;
    if (copy != NULL && length > 0) memcpy(copy, text, length);
    return copy;
}

void onnx_arena_release(onnx_arena *arena)
{
    while (arena->block != NULL) {
        struct onnx_arena_block *older = arena->block->older;
        read_budget_give_back(arena->budget, (int64_t)arena->block->size);
        free(arena->block);
        arena->block = older;
    }
}
