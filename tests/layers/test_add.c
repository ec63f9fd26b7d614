/* SPDX-License-Identifier: MIT */
/* add: shapes, rejected inputs, gradients, also if both inputs are the same node. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_add(model, x[0], x[1]);
}

static sdlf_node build_twice(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_add(model, x[0], x[0]);
}

/* The residual connection: x + tanh(conv(x)), then a ReLU that wants the sum. */
static sdlf_node build_residual(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node branch = sdlf_tanh(model, sdlf_conv2d(model, x[0], options));
    return sdlf_sigmoid(model, sdlf_add(model, x[0], branch));
}

static void shapes_are_checked(void)
{
    sdlf_model *model;
    sdlf_node y;
    check_output(build, NULL, sdlf_shape(3, 4), sdlf_shape(3, 4));
    CHECK_FAILS(build_layer(&model, build, NULL, SDLF_FLOAT32, sdlf_shape(3, 4), sdlf_shape(4, 3), &y),
                SDLF_ERROR_SHAPE, "expected two inputs of one shape, found 1x3x4 and 1x4x3");
    sdlf_model_free(model);
    check_integers_refused(build, NULL, sdlf_shape(3));
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "two inputs", .build = build, .input = {sdlf_shape(2, 7), sdlf_shape(2, 7)}, .input_count = 2},
        {.what = "one input twice", .build = build_twice, .input = {sdlf_shape(2, 7)}},
        {.what = "residual",
         .build = build_residual,
         .options = &(sdlf_conv2d_options){.filters = 2, .kernel = {3, 3}, .padding = {1, 1}},
         .input = {sdlf_shape(2, 2, 3, 3)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_are_checked);
    RUN(gradients_match);
    return test_summary();
}
