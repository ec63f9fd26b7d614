/* SPDX-License-Identifier: MIT */
/* fully_connected: shapes, parameters, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_fully_connected(model, x[0], options);
}

static void shapes_follow(void)
{
    sdlf_fully_connected_options options = {.units = 7};
    check_output(build, &options, sdlf_shape(12), sdlf_shape(7));
    check_output(build, &options, sdlf_shape(3, 4, 5), sdlf_shape(7));
    options.axis = -1;
    check_output(build, &options, sdlf_shape(12), sdlf_shape(7));
    check_output(build, &options, sdlf_shape(3, 4, 5), sdlf_shape(3, 4, 7));
    options.axis = 2;
    check_output(build, &options, sdlf_shape(3, 4, 5), sdlf_shape(3, 7));
}

static void parameters_follow(void)
{
    sdlf_model *model;
    sdlf_node y;
    sdlf_fully_connected_options options = {.name = "f", .units = 7};
    CHECK_OK(build_layer(&model, build, &options, SDLF_FLOAT32, sdlf_shape(3, 4), sdlf_shape(1), &y));
    const sdlf_parameter *weight = sdlf_model_find_parameter(model, "f.weight");
    CHECK_TEXT(sdlf_shape_print(weight->spec.shape).text, "7x12");
    CHECK(weight->spec.fan_in == 12 && weight->spec.fan_out == 7 && weight->spec.decay);
    CHECK(!sdlf_model_find_parameter(model, "f.bias")->spec.decay);
    sdlf_model_free(model);
}

static void nonsense_is_refused(void)
{
    check_refused(build, NULL, sdlf_shape(4), SDLF_ERROR_ARGUMENT, "units: expected 1 to 16777216, found 0");
    check_refused(build, &(sdlf_fully_connected_options){.units = -5}, sdlf_shape(4), SDLF_ERROR_ARGUMENT, "found -5");
    check_refused(build, &(sdlf_fully_connected_options){.units = 5}, SDLF_SCALAR, SDLF_ERROR_SHAPE,
                  "expected an input (N, ...), found 1");
    check_refused(build, &(sdlf_fully_connected_options){.units = 5, .initializer = 77}, sdlf_shape(4),
                  SDLF_ERROR_ARGUMENT, "initializer: expected 0 to 11 (default, zero, one, he_uniform");
    check_refused(build, &(sdlf_fully_connected_options){.units = 5, .initializer = SDLF_INIT_IDENTITY}, sdlf_shape(4),
                  SDLF_ERROR_ARGUMENT, "initializer identity of weight: expected the weights (K,C,R,S)");
    check_refused(build, &(sdlf_fully_connected_options){.units = 5, .axis = 2}, sdlf_shape(4), SDLF_ERROR_SHAPE,
                  "axis 2 is not one of its input 1x4 after the batch");
    check_refused(build, &(sdlf_fully_connected_options){.units = 5, .axis = -2}, sdlf_shape(4), SDLF_ERROR_SHAPE,
                  "axis -2 is not one");
    check_integers_refused(build, &(sdlf_fully_connected_options){.units = 5}, sdlf_shape(4));
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "rows",
         .build = build,
         .options = &(sdlf_fully_connected_options){.units = 5},
         .input = {sdlf_shape(3, 9)}},
        {.what = "images, no bias",
         .build = build,
         .options = &(sdlf_fully_connected_options){.units = 4, .no_bias = true},
         .input = {sdlf_shape(2, 2, 3, 4)}},
        {.what = "tokens",
         .build = build,
         .options = &(sdlf_fully_connected_options){.units = 4, .axis = -1},
         .input = {sdlf_shape(2, 3, 5)}},
        {.what = "rows of two axes, no bias",
         .build = build,
         .options = &(sdlf_fully_connected_options){.units = 3, .axis = 2, .no_bias = true},
         .input = {sdlf_shape(2, 3, 2, 3)}},
        {.what = "one unit",
         .build = build,
         .options = &(sdlf_fully_connected_options){.units = 1},
         .input = {sdlf_shape(4, 3)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(parameters_follow);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
