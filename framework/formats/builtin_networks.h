/* SPDX-License-Identifier: MIT */
/* The built-in networks: functions that compute logits from images (N,C,H,W), and their building blocks. */
#ifndef SDLF_FORMATS_BUILTIN_NETWORKS_H
#define SDLF_FORMATS_BUILTIN_NETWORKS_H

#include <sdlf/layers.h>

/* `sample` is (C,H,W), or (T) for sequences. */
typedef sdlf_node network_logits(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes);

network_logits network_resnet20, network_resnet18, network_resnet50; /* builtin_resnets.c */
network_logits network_cifar_fast;                                   /* builtin_cifar_fast.c */
network_logits network_vgg11_bn, network_mobilenet_v2;               /* builtin_features.c */
network_logits network_vit_tiny, network_char_gpt;                   /* builtin_transformers.c */

/* A square convolution without bias, padded to keep the size at stride 1, and its batch normalisation, with these
 * names. */
typedef struct network_conv {
    const char *conv, *norm;
    int filters, kernel, stride, groups; /* groups 0: 1 */
    bool bias;
} network_conv;
sdlf_node network_conv_bn(sdlf_model *net, sdlf_node x, const network_conv *options);

sdlf_node network_fully_connected(sdlf_model *net, sdlf_node x, const char *name, int units);

/* True if images of this size keep their resolution in the first layers: the way in which networks for ImageNet's
 * 224x224 pixels are adapted to small images. */
bool network_is_small(sdlf_shape sample);

#endif
