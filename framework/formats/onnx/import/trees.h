/* SPDX-License-Identifier: MIT */
/* Decision trees of ai.onnx.ml: converts lists of nodes and leaves to three matrix products. */
#ifndef SDLF_FORMATS_ONNX_TREES_H
#define SDLF_FORMATS_ONNX_TREES_H

#include "framework/formats/onnx/import/compose.h"

/* The node's trees evaluated for each row of x (N, features), summed over the trees: (N, targets). `kind` is the prefix
 * of the leaf attributes, "target" or "class". *trees: the number of trees. */
onnx_flow onnx_trees_sum(onnx_context *c, onnx_flow x, const char *kind, int64_t targets, int64_t *trees);

#endif
