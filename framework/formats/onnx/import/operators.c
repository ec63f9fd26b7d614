/* SPDX-License-Identifier: MIT */
/* All operators, by name and opset. */
#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/import/import.h"

static const onnx_operator *const tables[] = {
    onnx_convolution_operators,
    onnx_pooling_operators,
    onnx_product_operators,
    onnx_normalisation_operators,
    onnx_elementwise_operators,
    onnx_binary_operators,
    onnx_shape_operators,
    onnx_constant_operators,
    onnx_move_operators,
    onnx_slice_operators,
    onnx_gather_operators,
    onnx_reduction_operators,
    onnx_row_operators,
    onnx_pad_operators,
    onnx_resize_operators,
    onnx_top_k_operators,
    onnx_quantize_operators,
    onnx_condition_operators,
    onnx_mask_operators,
    onnx_einsum_operators,
    onnx_attention_operators,
    onnx_index_operators,
    onnx_grid_operators,
    onnx_signal_operators,
    onnx_branch_operators,
    onnx_scatter_operators,
    onnx_recurrent_operators,
    onnx_loss_operators,
    onnx_integer_product_operators,
    onnx_ml_operators,
    onnx_deform_operators,
    onnx_roi_operators,
    onnx_suppression_operators,
    onnx_selection_operators,
    onnx_state_operators,
    onnx_col2im_operators,
    onnx_determinant_operators,
    onnx_qlinear_operators,
    onnx_packed_operators,
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
            if (strcmp(row->type, type) != 0) continue;
            if (opset >= row->since && (row->until == 0 || opset <= row->until)) return row;
            if (near == NULL || row->since < near->since) near = row;
        }
    if (other != NULL) *other = near;
    return NULL;
}
