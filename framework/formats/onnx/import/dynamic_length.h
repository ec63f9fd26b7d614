/* SPDX-License-Identifier: MIT */
/* Values with a data-dependent length (NonZero, NonMaxSuppression, ...): they have the maximum number of
 * elements along an axis, of which the leading ones are valid; a second value holds their count. The
 * remaining elements are arbitrary but valid inputs. As an output of the graph such a value has its length
 * beside it (sdlf_output_length); the operators that accept one are those that treat every index of the axis
 * alike. */
#ifndef SDLF_FORMATS_ONNX_DYNAMIC_LENGTH_H
#define SDLF_FORMATS_ONNX_DYNAMIC_LENGTH_H

#include "framework/formats/onnx/import/compose.h"

/* Sets output `output`, of which the leading `length` elements along the axis, an int64 scalar, are valid. */
void onnx_set_output_dynamic_length(onnx_context *c, int output, onnx_flow flow, int axis, onnx_flow length);
/* Before a node is converted: the dynamic axis of its outputs, or a failure if the operator combines elements along
 * that axis. */
onnx_counted onnx_dynamic_length_before(onnx_context *c);
/* After conversion: records that for its outputs. */
void onnx_dynamic_length_after(onnx_context *c, onnx_counted counted);
/* Adds the length of the model's output of that name as another output. */
void onnx_dynamic_length_output(onnx_import *import, const char *name, const onnx_value *value);

/* The indices of the true elements of (n) bools, in order, then those of the others; *count: how many are true. */
onnx_flow onnx_true_first(onnx_context *c, onnx_flow is, onnx_flow *count);

#endif
