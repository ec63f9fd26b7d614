/* SPDX-License-Identifier: MIT */
/* Transformers: vit_tiny and char_gpt. Blocks are pre-norm: x + attention(norm(x)), then x + mlp(norm(x)), where the
 * mlp has a hidden layer of four times the width. */
#include "framework/formats/builtin_networks.h"

#include <stdio.h>

typedef struct transformer {
    int channels, heads, blocks;
    bool causal;
} transformer;

static sdlf_node linear(sdlf_model *net, sdlf_node x, const char *name, int units)
{
    sdlf_fully_connected_options options = {
        .name = name, .units = units, .axis = -1, .initializer = SDLF_INIT_XAVIER_UNIFORM};
    return sdlf_fully_connected(net, x, &options);
}

static sdlf_node add_block(sdlf_model *net, sdlf_node x, const transformer *t, int number)
{
    static const char *const part[] = {"norm1", "attention", "norm2", "mlp.0", "mlp.2"};
    char name[5][64];
    for (int i = 0; i < 5; i++) snprintf(name[i], sizeof name[i], "blocks.%d.%s", number, part[i]);
    sdlf_multi_head_attention_options attention = {.name = name[1], .heads = t->heads, .causal = t->causal};
    sdlf_node y = sdlf_layer_norm(net, x, &(sdlf_layer_norm_options){.name = name[0]});
    x = sdlf_add(net, x, sdlf_multi_head_attention(net, y, &attention));
    y = sdlf_layer_norm(net, x, &(sdlf_layer_norm_options){.name = name[2]});
    y = linear(net, y, name[3], 4 * t->channels);
    y = sdlf_unary(net, y, &(sdlf_unary_options){.function = SDLF_UNARY_GELU});
    return sdlf_add(net, x, linear(net, y, name[4], t->channels));
}

static sdlf_node add_blocks(sdlf_model *net, sdlf_node x, const transformer *t)
{
    for (int i = 0; i < t->blocks; i++) x = add_block(net, x, t, i);
    return sdlf_layer_norm(net, x, &(sdlf_layer_norm_options){.name = "norm"});
}

/* The vision transformer (Dosovitskiy et al.: An image is worth 16x16 words, 2020) in DeiT's size Ti: 192
 * channels, 3 heads, 12 blocks over patches of 16x16. Small images use patches of 4x4, of which 8x8 cover
 * CIFAR-10's, and 6 blocks. The mean over the patches replaces the class token. Pixels beyond the last whole patch
 * are ignored. */
sdlf_node network_vit_tiny(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    bool small = network_is_small(sample);
    int patch = small ? 4 : 16;
    transformer t = {.channels = 192, .heads = 3, .blocks = small ? 6 : 12};
    sdlf_node x = sdlf_conv2d(net, image,
                              &(sdlf_conv2d_options){.name = "patch_embedding",
                                                     .filters = t.channels,
                                                     .kernel = {patch, patch},
                                                     .stride = {patch, patch},
                                                     .initializer = SDLF_INIT_XAVIER_UNIFORM});
    x = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(t.channels, -1)});
    x = sdlf_transpose(net, x, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1)});
    x = sdlf_position_embedding(net, x, &(sdlf_position_embedding_options){.name = "position_embedding"});
    x = add_blocks(net, x, &t);
    x = sdlf_reduce(net, x, &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_MEAN, .axes = sdlf_shape(1)});
    return network_fully_connected(net, x, "head", classes);
}

/* A small character-level decoder (Radford et al.: Language models are unsupervised multitask learners, 2019): 128
 * channels, 4 heads, 4 blocks. Maps (N,T) character indices to scores (N,T,classes) of the next character. */
sdlf_node network_char_gpt(sdlf_model *net, sdlf_node tokens, sdlf_shape sample, int classes)
{
    (void)sample;
    transformer t = {.channels = 128, .heads = 4, .blocks = 4, .causal = true};
    sdlf_node x =
        sdlf_embedding(net, tokens,
                       &(sdlf_embedding_options){
                           .name = "token_embedding", .vocabulary = classes, .units = t.channels, .deviation = 0.02f});
    x = sdlf_position_embedding(net, x, &(sdlf_position_embedding_options){.name = "position_embedding"});
    return linear(net, add_blocks(net, x, &t), "head", classes);
}
