/* SPDX-License-Identifier: MIT */
/* Networks made of sequential features and a classifier, with torchvision's layer names: VGG-11 with batch
 * normalisation and MobileNetV2. */
#include "framework/formats/builtin_networks.h"

#include <stdio.h>

enum { NAME_SIZE = 64 };

static sdlf_node dropout(sdlf_model *net, sdlf_node x, float probability)
{
    return sdlf_dropout(net, x, &(sdlf_dropout_options){.probability = probability});
}

/* ---- VGG-11 (Simonyan, Zisserman: Very deep convolutional networks for large-scale image recognition, 2014) ---- */

/* The paper's classifier for 224x224, whose features are 512x7x7; otherwise one layer after global average pooling. */
static sdlf_node vgg_classifier(sdlf_model *net, sdlf_node x, sdlf_shape sample, int classes)
{
    enum { SIDE = 224, HIDDEN = 4096 };
    if (sample.dim[1] != SIDE || sample.dim[2] != SIDE)
        return network_fully_connected(net, sdlf_global_avg_pool2d(net, x), "classifier", classes);
    x = sdlf_relu(net, network_fully_connected(net, x, "classifier.0", HIDDEN));
    x = dropout(net, x, 0.5f);
    x = sdlf_relu(net, network_fully_connected(net, x, "classifier.3", HIDDEN));
    return network_fully_connected(net, dropout(net, x, 0.5f), "classifier.6", classes);
}

sdlf_node network_vgg11_bn(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    enum { POOL = 0 };
    static const int features[] = {64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL};
    sdlf_node x = image;
    int number = 0; /* torchvision also counts ReLU and pooling */
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (features[i] == POOL) {
            x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
            number++;
            continue;
        }
        char conv[NAME_SIZE], norm[NAME_SIZE];
        snprintf(conv, sizeof conv, "features.%d", number);
        snprintf(norm, sizeof norm, "features.%d", number + 1);
        x = network_conv_bn(
            net, x,
            &(network_conv){
                .conv = conv, .norm = norm, .filters = features[i], .kernel = 3, .stride = 1, .bias = true});
        x = sdlf_relu(net, x);
        number += 3;
    }
    return vgg_classifier(net, x, sample, classes);
}

/* ---- MobileNetV2 (Sandler, Howard, Zhu, Zhmoginov, Chen: Inverted residuals and linear bottlenecks, 2018) ---- */

/* A convolution with ReLU6, with layers named PREFIX.0 and PREFIX.1. */
static sdlf_node feature(sdlf_model *net, sdlf_node x, const char *prefix, network_conv conv)
{
    char name[NAME_SIZE + 2], norm[NAME_SIZE + 2];
    snprintf(name, sizeof name, "%s.0", prefix);
    snprintf(norm, sizeof norm, "%s.1", prefix);
    conv.conv = name;
    conv.norm = norm;
    return sdlf_relu6(net, network_conv_bn(net, x, &conv));
}

/* The block features.NUMBER: expands `inputs` channels by `expansion`, depthwise, then projects to `filters` without an
 * activation. */
typedef struct residual {
    int number, inputs, expansion, filters, stride;
} residual;

static sdlf_node inverted_residual(sdlf_model *net, sdlf_node image, const residual *r)
{
    char name[NAME_SIZE], norm[NAME_SIZE];
    int hidden = r->inputs * r->expansion, at = 0;
    sdlf_node x = image;
    if (r->expansion > 1) {
        snprintf(name, sizeof name, "features.%d.conv.%d", r->number, at++);
        x = feature(net, x, name, (network_conv){.filters = hidden, .kernel = 1, .stride = 1});
    }
    snprintf(name, sizeof name, "features.%d.conv.%d", r->number, at++);
    x = feature(net, x, name, (network_conv){.filters = hidden, .kernel = 3, .stride = r->stride, .groups = hidden});
    snprintf(name, sizeof name, "features.%d.conv.%d", r->number, at);
    snprintf(norm, sizeof norm, "features.%d.conv.%d", r->number, at + 1);
    x = network_conv_bn(net, x,
                        &(network_conv){.conv = name, .norm = norm, .filters = r->filters, .kernel = 1, .stride = 1});
    return r->stride == 1 && r->inputs == r->filters ? sdlf_add(net, x, image) : x;
}

sdlf_node network_mobilenet_v2(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    static const struct {
        int expansion, filters, blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    bool small = network_is_small(sample);
    int inputs = 32, number = 1;
    sdlf_node x =
        feature(net, image, "features.0", (network_conv){.filters = inputs, .kernel = 3, .stride = small ? 1 : 2});
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        for (int block = 0; block < stages[i].blocks; block++, number++) {
            bool strided = block == 0 && !(small && i == 1);
            residual r = {number, inputs, stages[i].expansion, stages[i].filters, strided ? stages[i].stride : 1};
            x = inverted_residual(net, x, &r);
            inputs = stages[i].filters;
        }
    }
    x = feature(net, x, "features.18", (network_conv){.filters = 1280, .kernel = 1, .stride = 1});
    x = dropout(net, sdlf_global_avg_pool2d(net, x), 0.2f);
    return network_fully_connected(net, x, "classifier.1", classes);
}
