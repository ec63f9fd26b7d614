/* SPDX-License-Identifier: MIT */
/* The table of all operators, by name and opset. */
#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/import/import.h"

static const onnx_operator *const tables[] = {
#define ONNX_OPERATORS(table) table,
#include "framework/formats/onnx/import/list.h"
#undef ONNX_OPERATORS
};
enum { TABLE_COUNT = sizeof tables / sizeof tables[0] };

const onnx_operator *onnx_operator_at(int index)
{
    for (int t = 0; t < TABLE_COUNT; t++)
        for (const onnx_operator *row = tables[t]; row->type != NULL; row++)
            if (index-- == 0) return row;
    return NULL;
}

const onnx_operator *onnx_operator_of(const Onnx__NodeProto *node, int opset, const onnx_operator **other)
{
    char name[96];
    const char *type = node->op_type != NULL ? node->op_type : "";
    if (other != NULL) *other = NULL;
    if (onnx_is_standard(node)) return onnx_operator_find(type, opset, other);
    int length = snprintf(name, sizeof name, "%s.%s", node->domain, type);
    return length < (int)sizeof name ? onnx_operator_find(name, opset, other) : NULL;
}

const onnx_operator *onnx_operator_find(const char *type, int opset, const onnx_operator **other)
{
    const onnx_operator *near = NULL;
    for (int t = 0; t < TABLE_COUNT && type != NULL; t++)
        for (const onnx_operator *row = tables[t]; row->type != NULL; row++) {
            if (row->type[0] != type[0] || strcmp(row->type, type) != 0) continue;
            if (opset >= row->since && (row->until == 0 || opset <= row->until)) return row;
            if (near == NULL || row->since < near->since) near = row;
        }
    if (other != NULL) *other = near;
    return NULL;
}
