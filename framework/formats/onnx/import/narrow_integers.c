/* SPDX-License-Identifier: MIT */
/* Integer types for which SDLF has no dtype: int16 and uint16 are computed in int32, uint32 in int64, which hold them
 * exactly. An operator is supported if its result cannot leave their range, or has another type; where it could (sums
 * and products wrap around in the standard), it is rejected. uint64 has no larger type. */
#include <string.h>

#include "framework/formats/onnx/import/import.h"
#include "framework/formats/text.h"

/* Results are input elements, or bounds of their type. */
static const char keep[] =
    " Add BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Clip Compress Concat DepthToSpace Div Dropout Expand "
    "Flatten Gather GatherElements GatherND Identity Max Min Mod Mul Pad ReduceMax "
    "ReduceMin Relu Reshape ReverseSequence Slice Sub "
    "SpaceToDepth Split Squeeze Tile TopK Transpose Trilu Unsqueeze Where ";
/* Of these, those that only move elements: floats of 8 and 4 bits, and integers of 4 and 2, are storage types only. */
static const char move[] =
    " Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Reshape "
    "ReverseSequence Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Where ";
/* The result has another type. */
static const char read[] =
    " ArgMax ArgMin BitCast Cast CastLike DequantizeLinear Equal Greater GreaterOrEqual Less LessOrEqual Pow "
    "QuantizeLinear Shape Size ";

static const char stored_read[] = " BitCast Cast CastLike DequantizeLinear QuantizeLinear Shape Size ";

onnx_type onnx_narrow_input(const onnx_context *c, int input)
{
    if (!onnx_has(c, input)) return ONNX_UNDEFINED;
    const onnx_value *value = c->input[input];
    onnx_type type = value->kind == ONNX_CONSTANT ? value->tensor.type : value->narrow;
    return onnx_type_dtype(type) == SDLF_NONE && onnx_type_computed(type) != SDLF_NONE ? type : ONNX_UNDEFINED;
}

onnx_type onnx_narrow_check(onnx_context *c)
{
    const char *type = c->type->type;
    onnx_type found = ONNX_UNDEFINED;
    for (int i = 0; i < c->input_count; i++) {
        onnx_type narrow = onnx_narrow_input(c, i);
        if (narrow == ONNX_UNDEFINED) continue;
        found = narrow;
        bool stored = onnx_type_is_small_float(narrow) || onnx_type_packed(narrow) > 1;
        bool base = strcmp(type, "Pow") == 0 && i == 0; /* its result has that type */
        if (base || !(text_is_in(stored ? move : keep, type) || text_is_in(stored ? stored_read : read, type)))
            onnx_unsupported(c, "of %s, whose range its result could leave: SDLF has no numbers of that size",
                             onnx_type_name(narrow));
    }
    return found;
}

void onnx_narrow_outputs(onnx_context *c, onnx_type type)
{
    if (type == ONNX_UNDEFINED || !text_is_in(keep, c->type->type)) return;
    int count = strcmp(c->type->type, "TopK") == 0 ? 1 : c->output_count; /* its indices are int64 */
    for (int i = 0; i < count; i++)
        if (c->output[i] != NULL && c->output[i]->kind == ONNX_FLOW &&
            c->output[i]->flow.dtype == onnx_type_computed(type))
            c->output[i]->narrow = type;
}
