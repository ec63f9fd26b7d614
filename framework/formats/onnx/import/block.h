/* SPDX-License-Identifier: MIT */
/* Reference-counted memory for constants that are folded during import: each has its own block, which is freed when
 * neither a remaining node nor a parameter needs it. */
#ifndef SDLF_FORMATS_ONNX_BLOCK_H
#define SDLF_FORMATS_ONNX_BLOCK_H

#include <stddef.h>

#include "framework/formats/budget.h"

typedef struct onnx_block onnx_block;

/* All blocks of a file. Zero-initialised: none. */
typedef struct onnx_blocks {
    read_budget *budget; /* NULL: there is no limit */
    onnx_block *first;
    onnx_block *made; /* blocks of the node being converted, which holds each of them once */
} onnx_blocks;

/* `size` zeroed bytes, aligned for any type, held by the node; NULL when out of memory or budget. */
onnx_block *onnx_block_take(onnx_blocks *blocks, size_t size);
void *onnx_block_bytes(onnx_block *block);

/* Adds or drops a reference; dropping the last one frees the block. NULL: no effect. */
void onnx_block_hold(onnx_block *block);
void onnx_block_drop(onnx_blocks *blocks, onnx_block *block);

/* After a node: drops its references to the blocks that it created. */
void onnx_blocks_end_node(onnx_blocks *blocks);

void onnx_blocks_release(onnx_blocks *blocks);

#endif
