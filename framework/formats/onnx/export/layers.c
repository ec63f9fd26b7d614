/* SPDX-License-Identifier: MIT */
/* Which writer writes which class of layers. A new class needs one line here. */
#include "framework/formats/onnx/export/export.h"

#include <string.h>

static const struct {
    const char *layer_class;
    export_writer *writer;
} writers[] = {
    {"add", export_add},
    {"arg_reduce", export_arg_reduce},
    {"avg_pool2d", export_avg_pool2d},
    {"batch_norm2d", export_batch_norm},
    {"binary", export_binary},
    {"cast", export_cast},
    {"clip", export_clip},
    {"concat", export_concat},
    {"conv2d", export_conv2d},
    {"conv_transpose2d", export_conv_transpose2d},
    {"depth_to_space", export_depth_to_space},
    {"dropout", export_dropout},
    {"embedding", export_embedding},
    {"expand", export_expand},
    {"flatten", export_flatten},
    {"fully_connected", export_fully_connected},
    {"gather", export_gather},
    {"global_avg_pool2d", export_global_avg_pool2d},
    {"graph_conv", export_graph_conv},
    {"group_norm", export_group_norm},
    {"layer_norm", export_layer_norm},
    {"leaky_relu", export_leaky_relu},
    {"log_softmax", export_softmax},
    {"lrn", export_lrn},
    {"matmul", export_matmul},
    {"max_pool2d", export_max_pool2d},
    {"multi_head_attention", export_multi_head_attention},
    {"lstm", export_lstm},
    {"gru", export_gru},
    {"pad", export_pad},
    {"position_embedding", export_position_embedding},
    {"reduce", export_reduce},
    {"relu", export_activation},
    {"relu6", export_clip},
    {"reshape", export_reshape},
    {"resize", export_resize},
    {"rms_norm", export_rms_norm},
    {"rotary_embedding", export_rotary_embedding},
    {"dynamic_quantize", export_dynamic_quantize},
    {"select", export_select},
    {"sigmoid", export_activation},
    {"slice", export_slice},
    {"softmax", export_softmax},
    {"space_to_depth", export_space_to_depth},
    {"tanh", export_activation},
    {"tile", export_tile},
    {"top_k", export_top_k},
    {"transpose", export_transpose},
    {"unary", export_unary},
    {"value", export_value},
};

export_writer *export_writer_find(const char *layer_class)
{
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++)
        if (strcmp(writers[i].layer_class, layer_class) == 0) return writers[i].writer;
    return NULL;
}
