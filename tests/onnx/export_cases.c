/* SPDX-License-Identifier: MIT */
/* The networks. See export_cases.h. */
#include "onnx/export_nodes.h"

/* ---- convolutions and products ---- */

static void convolutions(sdlf_model *net)
{
    sdlf_node x = image(net, 4, 13, 11);
    give(net, sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 6, .kernel = {3, 2}, .padding = {1, 0}}));
    give(net, sdlf_conv2d(net, x,
                          &(sdlf_conv2d_options){.filters = 8,
                                                 .kernel = {3, 3},
                                                 .stride = {2, 1},
                                                 .padding = {2, 1},
                                                 .padding_extra = {-1, 1},
                                                 .dilation = {2, 3},
                                                 .groups = 2,
                                                 .no_bias = true}));
    give(net, sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {5, 5}, .groups = 4}));
    give(net,
         sdlf_conv_transpose2d(
             net, x, &(sdlf_conv_transpose2d_options){.filters = 6, .kernel = {3, 3}, .groups = 2, .no_bias = true}));
    give(net, sdlf_conv_transpose2d(net, x,
                                    &(sdlf_conv_transpose2d_options){.filters = 3,
                                                                     .kernel = {3, 4},
                                                                     .stride = {3, 2},
                                                                     .padding = {1, 2},
                                                                     .padding_extra = {1, 0},
                                                                     .output_padding = {2, 1},
                                                                     .dilation = {2, 1}}));
}

static void pools(sdlf_model *net)
{
    sdlf_node x = image(net, 3, 13, 11);
    sdlf_pool2d_options wide = {
        .window = {3, 4}, .stride = {2, 3}, .padding = {1, 2}, .padding_extra = {1, -1}, .dilation = {2, 1}};
    give(net, sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 3}}));
    give(net, sdlf_max_pool2d(net, x, &wide));
    wide.dilation[0] = 1;
    give(net, sdlf_avg_pool2d(net, x, &wide));
    wide.count_padding = true;
    give(net, sdlf_avg_pool2d(net, x, &wide));
    give(net, sdlf_global_avg_pool2d(net, x));
}

static void products(sdlf_model *net)
{
    sdlf_node x = image(net, 3, 5, 4), row = sdlf_input(net, "row", SDLF_FLOAT32, sdlf_shape(7));
    sdlf_node right = sdlf_value(net, &(sdlf_value_options){.name = "right", .shape = sdlf_shape(3, 4, 6)});
    sdlf_node turned = sdlf_value(net, &(sdlf_value_options){.name = "turned", .shape = sdlf_shape(6, 4)});
    sdlf_node vector = sdlf_value(net, &(sdlf_value_options){.name = "vector", .shape = sdlf_shape(4)});
    give(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 9}));
    give(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = "tokens", .units = 9, .axis = -1}));
    give(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 9, .axis = 2, .no_bias = true}));
    give(net, sdlf_fully_connected(net, row, &(sdlf_fully_connected_options){.units = 5, .no_bias = true}));
    give(net, sdlf_matmul(net, x, right, NULL));
    give(net, sdlf_matmul(net, x, turned, &(sdlf_matmul_options){.transpose_b = true}));
    give(net, sdlf_matmul(net, x, x, &(sdlf_matmul_options){.transpose_a = true}));
    give(net, sdlf_matmul(net, x, vector, NULL));
}

static void graph(sdlf_model *net)
{
    sdlf_node x = sdlf_input(net, "features", SDLF_FLOAT32, sdlf_shape(5)), a = sdlf_sparse_input(net, "matrix");
    x = sdlf_relu(net, sdlf_graph_conv(net, x, a, &(sdlf_graph_conv_options){.units = 6}));
    give(net, sdlf_graph_conv_directed(net, x, a, a, &(sdlf_graph_conv_options){.units = 3, .no_bias = true}));
}

/* ---- elements ---- */

static void activations(sdlf_model *net)
{
    sdlf_node x = number(net, image(net, 2, 5, 7), SDLF_LAYER_MULTIPLY, 7, false);
    give(net, sdlf_relu(net, x));
    give(net, sdlf_relu6(net, x));
    give(net, sdlf_sigmoid(net, x));
    give(net, sdlf_tanh(net, x));
    give(net, sdlf_clip(net, x, &(sdlf_clip_options){.low = -1.5f, .high = 2.25f}));
    give(net, sdlf_clip(net, x, &(sdlf_clip_options){.low = -1e30f, .high = 2.25f}));
    give(net, sdlf_clip(net, x, &(sdlf_clip_options){.low = 0.5f, .high = 1e30f}));
    give(net, sdlf_leaky_relu(net, x, NULL));
    give(net, sdlf_leaky_relu(net, x, &(sdlf_leaky_relu_options){.slope = 0.3f}));
}

static void functions(sdlf_model *net)
{
    sdlf_node x = number(net, image(net, 2, 5, 7), SDLF_LAYER_MULTIPLY, 4, false);
    sdlf_node positive = number(net, function(net, x, SDLF_UNARY_ABS), SDLF_LAYER_ADD, 0.5f, false);
    sdlf_node small = number(net, sdlf_tanh(net, x), SDLF_LAYER_MULTIPLY, 0.75f, false);
    sdlf_node large = number(net, positive, SDLF_LAYER_ADD, 1, false);
    for (int f = 0; f < SDLF_UNARY_FUNCTION_COUNT; f++) {
        bool root = f == SDLF_UNARY_SQRT || f == SDLF_UNARY_LOG || f == SDLF_UNARY_RECIPROCAL;
        bool ends = f == SDLF_UNARY_ASIN || f == SDLF_UNARY_ACOS || f == SDLF_UNARY_ATANH;
        give(net, function(net, root ? positive : ends ? small : f == SDLF_UNARY_ACOSH ? large : x, f));
    }
    give(net, sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_ELU, .alpha = 0.4f}));
    give(net, sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_SELU, .alpha = 1.2f, .beta = 0.7f}));
    give(net, sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_CELU, .alpha = 2}));
    give(net,
         sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_HARD_SIGMOID, .alpha = 0.3f, .beta = 0.4f}));
}

static void pairs(sdlf_model *net)
{
    sdlf_node x = image(net, 3, 4, 5), row = sdlf_input(net, "row", SDLF_FLOAT32, sdlf_shape(1, 1, 5));
    sdlf_node slope = sdlf_value(net, &(sdlf_value_options){.name = "slope", .shape = sdlf_shape(3, 1, 1)});
    sdlf_node positive = number(net, function(net, x, SDLF_UNARY_ABS), SDLF_LAYER_ADD, 0.5f, false);
    for (int f = 0; f < SDLF_LAYER_BIT_AND; f++) {
        give(net, pair(net, f == SDLF_LAYER_POWER ? positive : x, f == SDLF_LAYER_DIVIDE ? positive : row, f));
        give(net, number(net, f == SDLF_LAYER_POWER ? positive : x, f, 1.75f, false));
        give(net, number(net, f == SDLF_LAYER_DIVIDE ? positive : x, f, 0.75f, true));
    }
    give(net, number(net, x, SDLF_LAYER_PRELU, -0.25f, true));
    give(net, pair(net, x, slope, SDLF_LAYER_PRELU));
    give(net, pair(net, row, x, SDLF_LAYER_PRELU));
    give(net, sdlf_add(net, x, positive));
}

static void logic(sdlf_model *net)
{
    sdlf_node x = image(net, 3, 4, 5), row = sdlf_input(net, "row", SDLF_FLOAT32, sdlf_shape(1, 1, 5));
    sdlf_node test[SDLF_LAYER_FUNCTION_COUNT];
    sdlf_node whole = as_integer(net, x, 2), part = as_integer(net, row, 2);
    for (int f = SDLF_LAYER_EQUAL; f < SDLF_LAYER_AND; f++) {
        test[f] = pair(net, x, row, f);
        give(net, as_float(net, test[f]));
        give(net, as_float(net, pair(net, whole, part, f)));
        give(net, as_float(net, number(net, whole, f, 3, f % 2 == 0)));
    }
    for (int f = SDLF_LAYER_AND; f < SDLF_LAYER_FUNCTION_COUNT; f++)
        give(net, pair(net, test[SDLF_LAYER_LESS], test[SDLF_LAYER_GREATER_EQUAL], f));
    give(net, number(net, test[SDLF_LAYER_LESS], SDLF_LAYER_EQUAL, 0, false)); /* not */
    give(net, sdlf_select(net, test[SDLF_LAYER_LESS], x, row));
    give(net, pair(net, whole, number(net, part, SDLF_LAYER_MULTIPLY, 3, false), SDLF_LAYER_ADD));
}

/* ---- normalisation and rows ---- */

static void normalisations(sdlf_model *net)
{
    sdlf_node x = image(net, 6, 5, 4), row = sdlf_input(net, "row", SDLF_FLOAT32, sdlf_shape(6));
    sdlf_node signal = sdlf_input(net, "signal", SDLF_FLOAT32, sdlf_shape(6, 9));
    sdlf_node layer = sdlf_layer_norm(net, x, &(sdlf_layer_norm_options){.axis = 2, .epsilon = 1e-3f});
    give(net, sdlf_batch_norm2d(net, x, &(sdlf_batch_norm2d_options){.epsilon = 1e-3f, .momentum = 0.2f}));
    give(net, sdlf_batch_norm2d(net, row, NULL));
    give(net, layer);
    give(net, (sdlf_node){layer.layer, 2});
    give(net, sdlf_layer_norm(net, signal, NULL));
    give(net, sdlf_group_norm(net, x, NULL));
    give(net, sdlf_group_norm(net, x, &(sdlf_group_norm_options){.groups = 3, .epsilon = 1e-3f}));
    give(net, sdlf_group_norm(net, signal, &(sdlf_group_norm_options){.groups = 1}));
    give(net, sdlf_group_norm(net, row, &(sdlf_group_norm_options){.groups = 2}));
    give(net, sdlf_lrn(net, x, &(sdlf_lrn_options){.size = 3, .alpha = 0.3f, .beta = 0.6f, .bias = 2}));
    give(net, sdlf_lrn(net, x, &(sdlf_lrn_options){.size = 4, .alpha = 0.3f}));
    give(net, sdlf_lrn(net, signal, &(sdlf_lrn_options){.size = 5, .alpha = 0.3f}));
    give(net, sdlf_dropout(net, x, &(sdlf_dropout_options){.probability = 0.3f}));
}

static void rows(sdlf_model *net)
{
    const sdlf_layer_class *softmax = sdlf_layer_class_find("softmax"), *logs = sdlf_layer_class_find("log_softmax");
    sdlf_node x = image(net, 3, 5, 4);
    give(net, sdlf_softmax(net, x));
    give(net, sdlf_model_add(net, softmax, &(sdlf_softmax_options){.axis = -1}, &x, 1));
    give(net, sdlf_model_add(net, logs, &(sdlf_softmax_options){.axis = 2}, &x, 1));
}

static void sequences(sdlf_model *net)
{
    sdlf_node x = sdlf_input(net, "sequence", SDLF_FLOAT32, sdlf_shape(5, 8));
    sdlf_node line = sdlf_input(net, "line", SDLF_FLOAT32, sdlf_shape(1, 5, 5));
    sdlf_node small = number(net, line, SDLF_LAYER_MULTIPLY, 0.5f, false);
    sdlf_node tokens =
        as_integer(net, function(net, number(net, line, SDLF_LAYER_MULTIPLY, 0.3f, false), SDLF_UNARY_ABS), 1);
    sdlf_embedding_options rows = {.vocabulary = 7, .units = 3};
    give(net, sdlf_embedding(net, tokens, &rows));
    give(net, sdlf_embedding(net, as_float(net, tokens), &rows));
    give(net, sdlf_position_embedding(net, x, NULL));
    give(net, sdlf_rotary_embedding(net, x, &(sdlf_rotary_embedding_options){.base = 50}));
    give(net, sdlf_rms_norm(net, x, &(sdlf_rms_norm_options){.epsilon = 1e-3f}));
    sdlf_multi_head_attention_options heads = {.heads = 2};
    give(net, sdlf_multi_head_attention(net, x, &heads));
    give(net, sdlf_multi_head_attention_masked(net, x, small, &heads));
    give(net, sdlf_multi_head_attention_masked(net, x, pair(net, small, small, SDLF_LAYER_LESS_EQUAL), &heads));
    heads = (sdlf_multi_head_attention_options){.heads = 4, .causal = true, .no_bias = true, .rotary = true};
    give(net, sdlf_multi_head_attention(net, x, &heads));
}

/* Fully masked rows: of a bool mask, and of a float mask that is minus infinity there. */
static void hidden(sdlf_model *net)
{
    sdlf_node x = sdlf_input(net, "sequence", SDLF_FLOAT32, sdlf_shape(5, 8));
    sdlf_node line = sdlf_input(net, "line", SDLF_FLOAT32, sdlf_shape(1, 5, 1));
    sdlf_node seen = number(net, line, SDLF_LAYER_GREATER, 0, false);
    sdlf_node added = function(net, as_float(net, seen), SDLF_UNARY_LOG);
    sdlf_multi_head_attention_options heads = {.heads = 2};
    for (int causal = 0; causal < 2; causal++) {
        heads.causal = causal == 1;
        give(net, sdlf_multi_head_attention_masked(net, x, seen, &heads));
        give(net, sdlf_multi_head_attention_masked(net, x, added, &heads));
    }
}

static void recurrent(sdlf_model *net)
{
    sdlf_node x = sdlf_input(net, "sequence", SDLF_FLOAT32, sdlf_shape(5, 8));
    give(net, sdlf_lstm(net, x, &(sdlf_recurrent_options){.units = 3}));
    give(net, sdlf_lstm(net, x, &(sdlf_recurrent_options){.units = 3, .last = true, .reverse = true}));
    give(net, sdlf_lstm(net, x, &(sdlf_recurrent_options){.units = 2, .no_bias = true}));
    give(net, sdlf_gru(net, x, &(sdlf_recurrent_options){.units = 3, .reverse = true}));
    give(net, sdlf_gru(net, x, &(sdlf_recurrent_options){.units = 4, .last = true, .no_bias = true}));
    sdlf_recurrent_options last = {.units = 3, .last = true};
    sdlf_node h = sdlf_lstm(net, x, &last), c = sdlf_gru(net, x, &last);
    give(net, sdlf_lstm_from(net, x, h, c, &(sdlf_recurrent_options){.units = 3, .reverse = true}));
    give(net, sdlf_gru_from(net, x, h, &last));
}

/* States that are the same for all samples: ONNX requires them to have the batch's size. */
static void recurrent_from_one(sdlf_model *net)
{
    sdlf_node x = sdlf_input(net, "sequence", SDLF_FLOAT32, sdlf_shape(5, 8));
    sdlf_node h = sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(1, 3), .trainable = true});
    sdlf_node c = sdlf_value(net, &(sdlf_value_options){.shape = sdlf_shape(1, 1), .trainable = true});
    give(net, sdlf_lstm_from(net, x, h, c, &(sdlf_recurrent_options){.units = 3}));
    give(net, sdlf_gru_from(net, x, h, &(sdlf_recurrent_options){.units = 3, .reverse = true}));
}

static void reductions(sdlf_model *net)
{
    sdlf_node x = image(net, 3, 5, 4);
    sdlf_node positive = number(net, function(net, x, SDLF_UNARY_ABS), SDLF_LAYER_ADD, 0.5f, false);
    for (int f = 0; f < SDLF_REDUCE_LAYER_FUNCTION_COUNT; f++) {
        give(net, sdlf_reduce(net, positive,
                              &(sdlf_reduce_options){.function = f, .axes = sdlf_shape(1, -1), .keep = f % 2 == 0}));
        give(net, sdlf_reduce(net, positive, &(sdlf_reduce_options){.function = f, .axes = sdlf_shape(2)}));
    }
    give(net, sdlf_reduce(net, x, &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_SUM}));
    give(net, sdlf_reduce(net, x, &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_MAX, .keep = true}));
    give(net, sdlf_arg_reduce(net, x, NULL));
    give(net, sdlf_arg_reduce(net, x, &(sdlf_arg_reduce_layer_options){.axis = -1, .smallest = true, .keep = true}));
    give(net, sdlf_arg_reduce(net, sdlf_relu(net, x),
                              &(sdlf_arg_reduce_layer_options){.axis = 2, .smallest = true, .last = true}));
    sdlf_node top = sdlf_top_k(net, x, &(sdlf_top_k_layer_options){.k = 2, .axis = 2});
    give(net, top);
    give(net, (sdlf_node){top.layer, 1});
    give(net, sdlf_top_k(net, x, &(sdlf_top_k_layer_options){.k = 3, .smallest = true}));
    sdlf_node bytes = sdlf_dynamic_quantize(net, x);
    for (int i = 0; i < 3; i++) give(net, (sdlf_node){bytes.layer, i});
}

/* ---- training's own ---- */

static void with_loss(sdlf_model *net)
{
    sdlf_node x = image(net, 1, 6, 6), labels = sdlf_input(net, "labels", SDLF_INT32, SDLF_SCALAR);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 4});
    sdlf_output(net, "scores", x);
    sdlf_output(net, "loss", sdlf_softmax_cross_entropy(net, x, labels, NULL));
    sdlf_node targets = sdlf_input(net, "targets", SDLF_FLOAT32, sdlf_shape(4));
    sdlf_output(net, "mse", sdlf_mse(net, x, targets));
    sdlf_output(net, "mae", sdlf_mae(net, x, targets));
    sdlf_output(net, "huber", sdlf_huber(net, x, targets, NULL));
    sdlf_output(net, "bce", sdlf_bce_with_logits(net, x, targets));
}

const export_case export_cases[] = {
    {.name = "convolutions", .build = convolutions, .opset = 17},
    {.name = "pools", .build = pools, .opset = 17},
    {.name = "products", .build = products, .opset = 17},
    {.name = "graph", .build = graph, .opset = 17},
    {.name = "activations", .build = activations, .opset = 17},
    {.name = "functions", .build = functions, .opset = 17},
    {.name = "pairs", .build = pairs, .opset = 17},
    {.name = "logic", .build = logic, .opset = 17},
    {.name = "normalisations", .build = normalisations, .opset = 17},
    {.name = "rows", .build = rows, .opset = 17},
    {.name = "sequences", .build = sequences, .opset = 17},
    {.name = "hidden", .build = hidden, .opset = 17},
    {.name = "recurrent", .build = recurrent, .opset = 17},
    {.name = "recurrent_from_one", .build = recurrent_from_one, .opset = 17, .fixed_batch = true},
    {.name = "reductions", .build = reductions, .opset = 17},
    {.name = "moves", .build = export_moves, .opset = 17},
    {.name = "narrowed", .build = export_narrowed, .opset = 17},
    {.name = "expansions", .build = export_expansions, .opset = 17},
    {.name = "wrapped", .build = export_wrapped, .opset = 19},
    {.name = "batch_of_one", .build = export_batch_of_one, .opset = 17, .fixed_batch = true},
    {.name = "stretched", .build = export_stretched, .opset = 17},
    {.name = "sized", .build = export_sized, .opset = 18},
    {.name = "symmetric", .build = export_symmetric, .opset = 19},
    {.name = "cropped", .build = export_cropped, .opset = 18},
    {.name = "with_loss", .build = with_loss, .opset = 17},
    {.name = NULL},
};
