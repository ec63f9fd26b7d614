/* SPDX-License-Identifier: MIT */
/* Building blocks for operators that no single layer implements: each adds one layer, or a constant. See
 * import.h. */
#ifndef SDLF_FORMATS_ONNX_COMPOSE_H
#define SDLF_FORMATS_ONNX_COMPOSE_H

#include "framework/formats/onnx/import/fold.h"
#include "framework/formats/onnx/import/window.h"

/* An elementwise function of two flows that broadcast: onnx_binary's. */
onnx_flow onnx_elementwise(onnx_context *c, const char *function, onnx_flow a, onnx_flow b);
/* A function of the unary layer. */
onnx_flow onnx_function(onnx_context *c, sdlf_unary_function function, onnx_flow x);
/* condition ? a : b, which broadcast. */
onnx_flow onnx_choose(onnx_context *c, onnx_flow condition, onnx_flow a, onnx_flow b);
/* not x, of bools. */
onnx_flow onnx_not(onnx_context *c, onnx_flow x);
/* The broadcasting matrix product. */
onnx_flow onnx_product(onnx_context *c, onnx_flow a, onnx_flow b, bool transpose_b);
/* x (...,K) times the constant, (K,N) or, transposed, (N,K), times alpha, plus the bias times beta: a layer whose
 * weight is trainable. */
onnx_flow onnx_fully_connected(onnx_context *c, onnx_flow x, const onnx_tensor *weight, bool transposed, float alpha,
                               const onnx_tensor *bias, float beta);
/* Elements of x at the indices, int32 or int64, along an axis. */
onnx_flow onnx_gather(onnx_context *c, onnx_flow x, onnx_flow index, int axis);
/* y[i, j, ...] = x[i, index[i, j, ...], ...], if the axis is the second one (indices.c). */
onnx_flow onnx_gather_along(onnx_context *c, onnx_flow x, onnx_flow index, int axis);
/* exp(x) divided by its sum along an axis. */
onnx_flow onnx_softmax(onnx_context *c, onnx_flow x, int axis);

/* A scalar of that dtype. */
onnx_flow onnx_number(onnx_context *c, sdlf_dtype dtype, double number);
/* int64 constants: a list; from, from + step, ...: `count` of them along axis `axis` of `rank`. */
onnx_flow onnx_int64s(onnx_context *c, const int64_t *item, sdlf_shape shape);
onnx_flow onnx_count_up(onnx_context *c, int64_t from, int64_t step, int64_t count, int axis, int rank);

/* All elements flattened to one row, for the batch that the model is made for. */
onnx_flow onnx_flat(onnx_context *c, onnx_flow x);
/* Indices into an axis of `length` elements, as int64; negative ones count from the end. */
onnx_flow onnx_wrap(onnx_context *c, onnx_flow index, int64_t length);
/* Splits axis `axis` of x into `first` and the rest; and merges axes first .. last. The batch is unchanged. */
onnx_flow onnx_split_axis(onnx_context *c, onnx_flow x, int axis, int64_t first);
onnx_flow onnx_join_axes(onnx_context *c, onnx_flow x, int first, int last);

#endif
