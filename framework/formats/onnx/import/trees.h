/* SPDX-License-Identifier: MIT */
/* Trees of comparisons, of ai.onnx.ml: from lists of nodes and leaves to three products of matrices. */
#ifndef SDLF_FORMATS_ONNX_TREES_H
#define SDLF_FORMATS_ONNX_TREES_H

#include "framework/formats/onnx/import/compose.h"

/* What the node's trees give for each row of x (N, features), summed over the trees: (N, targets). `kind` is what the
 * lists of leaves begin with, "target" or "class". *trees: how many there are. */
onnx_flow onnx_trees_sum(onnx_context *c, onnx_flow x, const char *kind, int64_t targets, int64_t *trees);

#endif
