/* SPDX-License-Identifier: MIT */
/* The network that trains fastest on CIFAR-10 (Jordan: 94% on CIFAR-10 in 3.29 seconds on a single GPU, 2024; the
 * variant for muon), trained as specified by sdlf_network_builtin_training. Its first convolution whitens patches of
 * 2x2 pixels, and is computed from the data; filters are initialised to pass their input on. The paper divides the
 * scores by the number of features, with weights of deviation 1: here the weights contain the quotient, and their
 * learning rate is the paper's times the square of it. */
#include "framework/formats/builtin_networks.h"

#include <stdio.h>

#include "framework/model_internal.h"

enum { NAME_SIZE = 16 };

static sdlf_node conv(sdlf_model *net, sdlf_node x, int number, int filters)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "conv%d", number);
    return sdlf_conv2d(net, x,
                       &(sdlf_conv2d_options){.name = name,
                                              .filters = filters,
                                              .kernel = {3, 3},
                                              .padding = {1, 1},
                                              .no_bias = true,
                                              .initializer = SDLF_INIT_IDENTITY});
}

static sdlf_node norm_gelu(sdlf_model *net, sdlf_node x, int number)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "norm%d", number);
    x = sdlf_batch_norm2d(
        net, x, &(sdlf_batch_norm2d_options){.name = name, .epsilon = 1e-12f, .momentum = 0.4f, .no_scale = true});
    return sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_GELU});
}

static sdlf_node pool(sdlf_model *net, sdlf_node x, int window)
{
    return sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {window, window}});
}

sdlf_node network_cifar_fast(sdlf_model *net, sdlf_node image, sdlf_shape sample, int classes)
{
    static const int widths[] = {64, 256, 256};
    enum { PATCH = 2, FEATURES = 256 };
    sdlf_node x = sdlf_conv2d(net, image,
                              &(sdlf_conv2d_options){.name = "whiten",
                                                     .filters = 2 * (int)sample.dim[0] * PATCH * PATCH,
                                                     .kernel = {PATCH, PATCH},
                                                     .initializer = SDLF_INIT_WHITENING});
    if (x.layer >= 0 && model_freeze(net, x.layer, "weight") != SDLF_OK) return (sdlf_node){.layer = -1};
    x = sdlf_unary(net, x, &(sdlf_unary_options){.function = SDLF_UNARY_GELU});
    for (int i = 0; i < 3; i++) {
        x = pool(net, conv(net, x, 2 * i + 1, widths[i]), 2);
        x = norm_gelu(net, x, 2 * i + 1);
        x = norm_gelu(net, conv(net, x, 2 * i + 2, widths[i]), 2 * i + 2);
    }
    x = pool(net, x, 3);
    return sdlf_fully_connected(net, x,
                                &(sdlf_fully_connected_options){.name = "head",
                                                                .units = classes,
                                                                .no_bias = true,
                                                                .initializer = SDLF_INIT_UNIFORM,
                                                                .initializer_scale = 1.7320508f / FEATURES});
}
