/* SPDX-License-Identifier: MIT */
/* conv2d: shapes, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_conv2d(model, x[0], options);
}

static void shapes_follow(void)
{
    sdlf_conv2d_options plain = {.filters = 8, .kernel = {5, 3}};
    check_output(build, &plain, sdlf_shape(3, 28, 28), sdlf_shape(8, 24, 26));
    sdlf_conv2d_options full = {.filters = 6,
                                .kernel = {3, 3},
                                .stride = {2, 1},
                                .padding = {1, 2},
                                .padding_extra = {1, -1},
                                .dilation = {2, 1},
                                .groups = 3};
    check_output(build, &full, sdlf_shape(3, 10, 7), sdlf_shape(6, 5, 8));
}

static void parameters_follow(void)
{
    sdlf_model *model;
    sdlf_node y;
    sdlf_conv2d_options options = {.name = "c", .filters = 6, .kernel = {3, 2}, .groups = 2};
    CHECK_OK(build_layer(&model, build, &options, SDLF_FLOAT32, sdlf_shape(4, 9, 9), sdlf_shape(1), &y));
    const sdlf_parameter *weight = sdlf_model_find_parameter(model, "c.weight");
    const sdlf_parameter *bias = sdlf_model_find_parameter(model, "c.bias");
    CHECK_TEXT(sdlf_shape_print(weight->spec.shape).text, "6x2x3x2");
    CHECK(weight->spec.fan_in == 12 && weight->spec.fan_out == 18 && weight->spec.trainable && weight->spec.decay);
    CHECK_EQUAL(weight->spec.initializer, SDLF_INIT_HE_UNIFORM);
    CHECK_TEXT(sdlf_shape_print(bias->spec.shape).text, "6");
    CHECK(bias->spec.initializer == SDLF_INIT_ZERO && bias->spec.trainable && !bias->spec.decay);
    sdlf_model_free(model);
    options.no_bias = true;
    options.initializer = SDLF_INIT_XAVIER_NORMAL;
    CHECK_OK(build_layer(&model, build, &options, SDLF_FLOAT32, sdlf_shape(4, 9, 9), sdlf_shape(1), &y));
    CHECK_EQUAL(sdlf_model_parameter_count(model), 1);
    CHECK_EQUAL(sdlf_model_parameter(model, 0)->spec.initializer, SDLF_INIT_XAVIER_NORMAL);
    sdlf_model_free(model);
}

static void nonsense_is_refused(void)
{
    sdlf_shape image = sdlf_shape(4, 5, 5);
    check_refused(build, NULL, image, SDLF_ERROR_ARGUMENT, "filters: expected 1 to 16777216, found 0");
    check_refused(build, &(sdlf_conv2d_options){.filters = 4}, image, SDLF_ERROR_ARGUMENT,
                  "kernel (vertical): expected 1 to 65535, found 0");
    check_refused(build, &(sdlf_conv2d_options){.filters = 4, .kernel = {7, 7}}, image, SDLF_ERROR_SHAPE,
                  "kernel 7x7 is larger than its input 5x5 (plus padding 0)");
    check_refused(
        build, &(sdlf_conv2d_options){.filters = 4, .kernel = {1, 3}, .dilation = {1, 4}, .padding = {0, 1}}, image,
        SDLF_ERROR_SHAPE,
        "kernel 1x3, dilated 1x4, is larger than its input 5x5 (plus padding top 0, left 1, bottom 0, right 1)");
    check_refused(build, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding_extra = {-1, 0}}, image,
                  SDLF_ERROR_SHAPE, "padding 0 with padding_extra -1 would be negative below");
    check_refused(build, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .groups = 3}, image, SDLF_ERROR_SHAPE,
                  "4 channels do not divide into 3 groups");
    check_refused(build, &(sdlf_conv2d_options){.filters = 6, .kernel = {3, 3}, .groups = 4}, image, SDLF_ERROR_SHAPE,
                  "6 filters do not divide into 4 groups");
    check_refused(build, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .stride = {-1, 1}}, image,
                  SDLF_ERROR_ARGUMENT, "stride (vertical)");
    check_refused(build, &(sdlf_conv2d_options){.filters = 4, .kernel = {1, 1}}, sdlf_shape(5), SDLF_ERROR_SHAPE,
                  "expected an input (N,C,H,W), found 1x5");
    check_refused(build,
                  &(sdlf_conv2d_options){.filters = 16777216, .kernel = {65535, 65535}, .padding = {65535, 65535}},
                  image, SDLF_ERROR_SHAPE, "more elements than can be counted");
    check_integers_refused(build, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}}, image);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "plain",
         .build = build,
         .options = &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 3}},
         .input = {sdlf_shape(2, 2, 5, 6)}},
        {.what = "padded, strided",
         .build = build,
         .options = &(sdlf_conv2d_options){.filters = 2, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}},
         .input = {sdlf_shape(2, 2, 6, 4)}},
        {.what = "unevenly padded, dilated",
         .build = build,
         .options =
             &(sdlf_conv2d_options){
                 .filters = 2, .kernel = {2, 3}, .dilation = {2, 2}, .padding = {1, 2}, .padding_extra = {1, -1}},
         .input = {sdlf_shape(2, 1, 4, 5)}},
        {.what = "grouped, no bias",
         .build = build,
         .options = &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .groups = 2, .no_bias = true},
         .input = {sdlf_shape(2, 4, 4, 4)}},
        {.what = "depthwise",
         .build = build,
         .options = &(sdlf_conv2d_options){.filters = 6, .kernel = {3, 3}, .groups = 3, .padding = {1, 1}},
         .input = {sdlf_shape(2, 3, 4, 3)}},
        {.what = "pointwise",
         .build = build,
         .options = &(sdlf_conv2d_options){.filters = 5, .kernel = {1, 1}},
         .input = {sdlf_shape(3, 3, 3, 2)}},
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
