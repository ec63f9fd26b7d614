/* SPDX-License-Identifier: MIT */
/* A network in an ONNX file that consists mostly of weights, and reading it with the weights left in the file. */
#ifndef SDLF_TESTS_ONNX_PRODUCTS_H
#define SDLF_TESTS_ONNX_PRODUCTS_H

#include <sdlf/sdlf.h>

#include "testing.h"

static const sdlf_onnx_options leaving = {.leave_weights = true};

enum { SIDE = 1024, LAYERS = 4, WEIGHTS = LAYERS * SIDE * SIDE * (int)sizeof(float) };

/* Write the network as ONNX, with external weights if `outside` (outside.h). */
static inline const char *write_products(const char *name, bool outside)
{
    const char *path = test_path(name);
    sdlf_model *net = sdlf_model_create("products");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(SIDE));
    for (int i = 0; i < LAYERS; i++) x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = SIDE});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_to_onnx(net, path, &(sdlf_onnx_export_options){.external_data = outside}, NULL));
    sdlf_model_free(net);
    return path;
}

#endif
