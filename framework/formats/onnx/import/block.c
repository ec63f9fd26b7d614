/* SPDX-License-Identifier: MIT */
/* Reference-counted blocks in a list. See block.h. */
#include "framework/formats/onnx/import/block.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

struct onnx_block {
    onnx_block *before, *next;
    onnx_block *made_before; /* created by the same node */
    size_t size;
    int holders;
    alignas(max_align_t) char bytes[];
};

onnx_block *onnx_block_take(onnx_blocks *blocks, size_t size)
{
    if (size > SIZE_MAX / 2) return NULL;
    size += sizeof(onnx_block);
    if (!read_budget_take(blocks->budget, (int64_t)size)) return NULL;
    onnx_block *block = calloc(1, size);
    if (block == NULL) {
        read_budget_give_back(blocks->budget, (int64_t)size);
        return NULL;
    }
    *block = (onnx_block){.next = blocks->first, .made_before = blocks->made, .size = size, .holders = 1};
    if (blocks->first != NULL) blocks->first->before = block;
    blocks->first = blocks->made = block;
    return block;
}

void *onnx_block_bytes(onnx_block *block)
{
    return block->bytes;
}

void onnx_block_hold(onnx_block *block)
{
    if (block != NULL) block->holders++;
}

void onnx_block_drop(onnx_blocks *blocks, onnx_block *block)
{
    if (block == NULL || --block->holders > 0) return;
    if (block->before != NULL)
        block->before->next = block->next;
    else
        blocks->first = block->next;
    if (block->next != NULL) block->next->before = block->before;
    read_budget_give_back(blocks->budget, (int64_t)block->size);
    free(block);
}

void onnx_blocks_end_node(onnx_blocks *blocks)
{
    while (blocks->made != NULL) {
        onnx_block *block = blocks->made;
        blocks->made = block->made_before;
        onnx_block_drop(blocks, block);
    }
}

void onnx_blocks_release(onnx_blocks *blocks)
{
    while (blocks->first != NULL) {
        onnx_block *next = blocks->first->next;
        read_budget_give_back(blocks->budget, (int64_t)blocks->first->size);
        free(blocks->first);
        blocks->first = next;
    }
    blocks->made = NULL;
}
