/* SPDX-License-Identifier: MIT */
/* Memory for constants that are worked out while a model is made: each has a block of its own, which goes back when
 * nobody needs it any more, neither a node that is still to come nor a parameter. */
#ifndef SDLF_FORMATS_ONNX_BLOCK_H
#define SDLF_FORMATS_ONNX_BLOCK_H

#include <stddef.h>

#include "framework/formats/budget.h"

typedef struct onnx_block onnx_block;

/* All blocks of a file. Zeroed: none. */
typedef struct onnx_blocks {
    read_budget *budget; /* NULL: there is no limit */
    onnx_block *first;
    onnx_block *made; /* by the node that is being converted, which holds each of them once */
} onnx_blocks;

/* `size` zeroed bytes, aligned for any type, held by the node; NULL when memory is out, or the budget is. */
onnx_block *onnx_block_take(onnx_blocks *blocks, size_t size);
void *onnx_block_bytes(onnx_block *block);

/* One more who needs it, and one fewer; the last lets it go. NULL: nothing. */
void onnx_block_hold(onnx_block *block);
void onnx_block_drop(onnx_blocks *blocks, onnx_block *block);

/* The node is done: what it made is held by others or goes. */
void onnx_blocks_end_node(onnx_blocks *blocks);

void onnx_blocks_release(onnx_blocks *blocks);

#endif
