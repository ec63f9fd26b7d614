/* SPDX-License-Identifier: MIT */
/* concat: shapes, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_concat(model, x, 2, options);
}

/* The same node twice, and a convolution that tells the parts apart. */
static sdlf_node build_and_use(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node y = sdlf_concat(model, (const sdlf_node[]){x[0], x[1], x[0]}, 3, options);
    return sdlf_conv2d(model, y, &(sdlf_conv2d_options){.filters = 2, .kernel = {2, 2}});
}

static void shapes_follow(void)
{
    sdlf_model *model;
    sdlf_node y;
    check_output(build, NULL, sdlf_shape(3, 4, 5), sdlf_shape(6, 4, 5));
    check_output(build, &(sdlf_concat_options){.axis = -1}, sdlf_shape(3, 4, 5), sdlf_shape(3, 4, 10));
    check_output(build, &(sdlf_concat_options){.axis = 3}, sdlf_shape(3, 4, 5), sdlf_shape(3, 4, 10));
    CHECK_OK(build_layer(&model, build, NULL, SDLF_FLOAT32, sdlf_shape(3, 4), sdlf_shape(7, 4), &y));
    CHECK_TEXT(sdlf_shape_print(sdlf_model_node_shape(model, y)).text, "1x10x4");
    sdlf_model_free(model);
}

static void nonsense_is_refused(void)
{
    sdlf_model *model;
    sdlf_node y;
    check_refused(build, &(sdlf_concat_options){.axis = 4}, sdlf_shape(3, 4, 5), SDLF_ERROR_SHAPE,
                  "axis 4 is not one of its input 1x3x4x5");
    check_refused(build, &(sdlf_concat_options){.axis = -3}, sdlf_shape(3), SDLF_ERROR_SHAPE, "axis -3 is not one of");
    check_refused(build, &(sdlf_concat_options){.axis = -9}, sdlf_shape(3), SDLF_ERROR_ARGUMENT, "axis: expected -8");
    CHECK_FAILS(build_layer(&model, build, NULL, SDLF_FLOAT32, sdlf_shape(3, 4), sdlf_shape(3, 5), &y),
                SDLF_ERROR_SHAPE, "agree except along axis 1, found 1x3x4 and 1x3x5");
    sdlf_model_free(model);
    CHECK_FAILS(build_layer(&model, build, &(sdlf_concat_options){.axis = 2}, SDLF_FLOAT32, sdlf_shape(3, 4),
                            sdlf_shape(3), &y),
                SDLF_ERROR_SHAPE, "found 1x3x4 and 1x3");
    sdlf_model_free(model);
    model = sdlf_model_create("none");
    sdlf_concat(model, NULL, 0, NULL);
    CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "concat takes 1 to 16 inputs, not 0");
    sdlf_model_free(model);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "rows", .build = build, .input = {sdlf_shape(2, 5), sdlf_shape(2, 3)}, .input_count = 2},
        {.what = "channels",
         .build = build_and_use,
         .input = {sdlf_shape(2, 1, 3, 3), sdlf_shape(2, 2, 3, 3)},
         .input_count = 2},
        {.what = "width",
         .build = build_and_use,
         .options = &(sdlf_concat_options){.axis = 3},
         .input = {sdlf_shape(2, 2, 3, 2), sdlf_shape(2, 2, 3, 1)},
         .input_count = 2},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
