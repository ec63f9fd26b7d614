/* SPDX-License-Identifier: MIT */
/* Residual networks (He, Zhang, Ren, Sun: Deep residual learning for image recognition, 2015), with torchvision's layer
 * names. A shortcut to another size is a 1x1 convolution (option B); in a bottleneck the 3x3 convolution has the
 * stride. */
#include "framework/formats/builtin_networks.h"

#include <stdio.h>

enum { NAME_SIZE = 64 };

/* Names of a block's layers, such as "layer1.0.conv1". */
typedef struct block_names {
    char conv[3][NAME_SIZE], norm[3][NAME_SIZE], shortcut[NAME_SIZE], shortcut_norm[NAME_SIZE];
} block_names;

static block_names names_of(int stage, int block)
{
    block_names names;
    for (int i = 0; i < 3; i++) {
        snprintf(names.conv[i], NAME_SIZE, "layer%d.%d.conv%d", stage, block, i + 1);
        snprintf(names.norm[i], NAME_SIZE, "layer%d.%d.bn%d", stage, block, i + 1);
    }
    snprintf(names.shortcut, NAME_SIZE, "layer%d.%d.downsample.0", stage, block);
    snprintf(names.shortcut_norm, NAME_SIZE, "layer%d.%d.downsample.1", stage, block);
    return names;
}

typedef struct block {
    int filters, stride; /* of the inner convolutions */
    bool bottleneck;     /* 1x1, 3x3 and 1x1 with four times the filters, instead of two 3x3 */
    bool projected;      /* the shortcut changes size */
} block;

static sdlf_node add_block(sdlf_model *net, sdlf_node x, const block *b, const block_names *names)
{
    static const int plain[] = {3, 3}, bottleneck[] = {1, 3, 1};
    const int *kernel = b->bottleneck ? bottleneck : plain;
    int convolutions = b->bottleneck ? 3 : 2, outer = b->bottleneck ? 4 * b->filters : b->filters;
    int strided = b->bottleneck ? 1 : 0; /* the first 3x3 */
    sdlf_node y = x;
    for (int i = 0; i < convolutions; i++) {
        bool last = i == convolutions - 1;
        y = network_conv_bn(net, y,
                            &(network_conv){.conv = names->conv[i],
                                            .norm = names->norm[i],
                                            .filters = last ? outer : b->filters,
                                            .kernel = kernel[i],
                                            .stride = i == strided ? b->stride : 1});
        if (!last) y = sdlf_relu(net, y);
    }
    if (b->projected)
        x = network_conv_bn(net, x,
                            &(network_conv){.conv = names->shortcut,
                                            .norm = names->shortcut_norm,
                                            .filters = outer,
                                            .kernel = 1,
                                            .stride = b->stride});
    return sdlf_relu(net, sdlf_add(net, y, x));
}

/* Adds stages of that many blocks; each but the first halves the resolution and doubles the filters. */
static sdlf_node add_stages(sdlf_model *net, sdlf_node x, const int *blocks, int stages, int filters, bool bottleneck)
{
    for (int stage = 0; stage < stages; stage++) {
        for (int i = 0; i < blocks[stage]; i++) {
            bool first = i == 0;
            block b = {.filters = filters << stage,
                       .stride = first && stage > 0 ? 2 : 1,
                       .bottleneck = bottleneck,
                       .projected = first && (stage > 0 || bottleneck)};
            block_names names = names_of(stage + 1, i);
            x = add_block(net, x, &b, &names);
        }
    }
    return x;
}

static sdlf_node stem(sdlf_model *net, sdlf_node image, int filters, bool small)
{
    sdlf_node x = network_conv_bn(
        net, image,
        &(network_conv){
            .conv = "conv1", .norm = "bn1", .filters = filters, .kernel = small ? 3 : 7, .stride = small ? 1 : 2});
    x = sdlf_relu(net, x);
    if (small) return x;
    return sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
}

static sdlf_node imagenet(sdlf_model *net, sdlf_node image, sdlf_shape sample, const int *blocks, bool bottleneck,
                          int classes)
{
    sdlf_node x = stem(net, image, 64, network_is_small(sample));
    x = add_stages(net, x, blocks, 4, 64, bottleneck);
    return network_fully_connected(net, sdlf_global_avg_pool2d(net, x), "fc", classes);
}

sdlf_node network_resnet18(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    return imagenet(net, image, sample, (const int[]){2, 2, 2, 2}, false, classes);
}

sdlf_node network_resnet50(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    return imagenet(net, image, sample, (const int[]){3, 4, 6, 3}, true, classes);
}

/* The paper's network for CIFAR-10. */
sdlf_node network_resnet20(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    (void)sample;
    sdlf_node x = stem(net, image, 16, true);
    x = add_stages(net, x, (const int[]){3, 3, 3}, 3, 16, false);
    return network_fully_connected(net, sdlf_global_avg_pool2d(net, x), "fc", classes);
}
