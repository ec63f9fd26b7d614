/* SPDX-License-Identifier: MIT */
/* Values whose length depends on what the model is given (NonZero, NonMaxSuppression, ...): they have as many elements
 * along an axis as there can be, and those from the beginning on count, of which a second value says how many. What
 * does not count is some element or other, at which nothing fails. As an output of the graph such a value has its
 * length beside it (sdlf_output_length); the operators that read one are those that treat every index of the axis
 * alike. */
#ifndef SDLF_FORMATS_ONNX_DYNAMIC_LENGTH_H
#define SDLF_FORMATS_ONNX_DYNAMIC_LENGTH_H

#include "framework/formats/onnx/import/compose.h"

/* Give output `output`: of its elements along the axis `length`, an int64 scalar, count. */
void onnx_give_dynamic_length(onnx_context *c, int output, onnx_flow flow, int axis, onnx_flow length);
/* Before a node is converted: where the length lies in its outputs, or a failure if the operator looks across the
 * axis. */
onnx_counted onnx_dynamic_length_before(onnx_context *c);
/* Once it is: note that for its outputs. */
void onnx_dynamic_length_after(onnx_context *c, onnx_counted counted);
/* Give the model's output of that name, value's, the output that says how long it is. */
void onnx_dynamic_length_output(onnx_import *import, const char *name, const onnx_value *value);

/* The indices of those that are true, of (n) bools, in order; the others behind. And how many are. */
onnx_flow onnx_true_first(onnx_context *c, onnx_flow is, onnx_flow *count);

#endif
