/* SPDX-License-Identifier: MIT */
/* The building blocks of the networks of export_cases.h. */
#ifndef SDLF_TESTS_ONNX_EXPORT_NODES_H
#define SDLF_TESTS_ONNX_EXPORT_NODES_H

#include <stdio.h>

#include "onnx/export_cases.h"

static inline sdlf_node image(sdlf_model *net, int channels, int height, int width)
{
    return sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(channels, height, width));
}

/* Add the node as another numbered output. */
static inline void give(sdlf_model *net, sdlf_node node)
{
    char name[32];
    snprintf(name, sizeof name, "y%d", sdlf_model_output_count(net));
    sdlf_output(net, name, node);
}

static inline sdlf_node number(sdlf_model *net, sdlf_node x, int function, float scalar, bool first)
{
    return sdlf_binary(net, &x, 1,
                       &(sdlf_binary_layer_options){.function = function, .scalar = scalar, .scalar_first = first});
}

static inline sdlf_node pair(sdlf_model *net, sdlf_node a, sdlf_node b, int function)
{
    return sdlf_binary(net, (const sdlf_node[]){a, b}, 2, &(sdlf_binary_layer_options){.function = function});
}

static inline sdlf_node function(sdlf_model *net, sdlf_node x, int f)
{
    return sdlf_unary(net, x, &(sdlf_unary_options){.function = f});
}

static inline sdlf_node as_float(sdlf_model *net, sdlf_node x)
{
    return sdlf_cast(net, x, &(sdlf_cast_options){.dtype = 0});
}

static inline sdlf_node as_integer(sdlf_model *net, sdlf_node x, int dtype)
{
    return sdlf_cast(net, number(net, x, SDLF_LAYER_MULTIPLY, 20, false), &(sdlf_cast_options){.dtype = dtype});
}

/* ---- cases of data movement and resizing: export_moves.c ---- */

void export_moves(sdlf_model *net);
void export_narrowed(sdlf_model *net);
void export_expansions(sdlf_model *net);
void export_wrapped(sdlf_model *net);
void export_batch_of_one(sdlf_model *net);
void export_stretched(sdlf_model *net);
void export_sized(sdlf_model *net);
void export_symmetric(sdlf_model *net);
void export_cropped(sdlf_model *net);

#endif
