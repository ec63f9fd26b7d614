/* SPDX-License-Identifier: MIT */
/* relu, relu6, clip, leaky_relu, sigmoid and tanh: values, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build_relu(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_relu(model, x[0]);
}

static sdlf_node build_relu6(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_relu6(model, x[0]);
}

static sdlf_node build_clip(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_clip(model, x[0], options);
}

static sdlf_node build_leaky_relu(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_leaky_relu(model, x[0], options);
}

static sdlf_node build_sigmoid(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_sigmoid(model, x[0]);
}

static sdlf_node build_tanh(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_tanh(model, x[0]);
}

enum { COUNT = 6 };

static const float x[COUNT] = {-7, -0.5f, 0, 0.25f, 5, 9};

/* f of the values above on every calculator. */
static void check_values(layer_builder *build, const void *options, const double *expected)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        float y[COUNT];
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        sdlf_model *model = sdlf_model_create("values");
        sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(COUNT));
        sdlf_output(model, "y", build(model, &in, options));
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        for (int e = 0; e < COUNT; e++) CHECK_CLOSE(y[e], expected[e], 1e-6 * (1 + fabs(expected[e])));
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

static void values_match(void)
{
    double sigmoid[COUNT], tangent[COUNT];
    for (int e = 0; e < COUNT; e++) {
        sigmoid[e] = 1 / (1 + exp(-(double)x[e]));
        tangent[e] = tanh((double)x[e]);
    }
    check_values(build_relu, NULL, (const double[]){0, 0, 0, 0.25, 5, 9});
    check_values(build_relu6, NULL, (const double[]){0, 0, 0, 0.25, 5, 6});
    check_values(build_clip, &(sdlf_clip_options){.low = -1, .high = 0.125f},
                 (const double[]){-1, -0.5, 0, 0.125, 0.125, 0.125});
    check_values(build_leaky_relu, NULL, (const double[]){-0.07, -0.005, 0, 0.25, 5, 9});
    check_values(build_leaky_relu, &(sdlf_leaky_relu_options){.slope = 0.5f},
                 (const double[]){-3.5, -0.25, 0, 0.25, 5, 9});
    check_values(build_sigmoid, NULL, sigmoid);
    check_values(build_tanh, NULL, tangent);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "relu", .build = build_relu, .input = {sdlf_shape(2, 3, 4, 2)}},
        {.what = "relu6", .build = build_relu6, .input = {sdlf_shape(3, 17)}, .unit = 0.5},
        {.what = "clip",
         .build = build_clip,
         .options = &(sdlf_clip_options){.low = -0.5f, .high = 0.75f},
         .input = {sdlf_shape(3, 17)},
         .unit = 0.125},
        {.what = "leaky_relu", .build = build_leaky_relu, .input = {sdlf_shape(2, 9)}},
        {.what = "leaky_relu, steep",
         .build = build_leaky_relu,
         .options = &(sdlf_leaky_relu_options){.slope = 0.75f},
         .input = {sdlf_shape(2, 9)}},
        {.what = "sigmoid", .build = build_sigmoid, .input = {sdlf_shape(2, 13)}, .unit = 0.125},
        {.what = "tanh", .build = build_tanh, .input = {sdlf_shape(2, 2, 3, 3)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

static void shapes_and_options_are_checked(void)
{
    layer_builder *const builders[] = {build_relu, build_relu6, build_leaky_relu, build_sigmoid, build_tanh};
    for (int index = 0; index < 5; index++) {
        check_output(builders[index], NULL, sdlf_shape(2, 3), sdlf_shape(2, 3));
        check_integers_refused(builders[index], NULL, sdlf_shape(2, 3));
    }
    check_refused(build_clip, NULL, sdlf_shape(3), SDLF_ERROR_ARGUMENT, "expected low < high, found low 0 and high 0");
    check_refused(build_clip, &(sdlf_clip_options){.low = NAN, .high = 1}, sdlf_shape(3), SDLF_ERROR_ARGUMENT, "low");
    check_refused(build_leaky_relu, &(sdlf_leaky_relu_options){.slope = -0.1f}, sdlf_shape(3), SDLF_ERROR_ARGUMENT,
                  "slope: expected 0 to");
}

int main(void)
{
    RUN(values_match);
    RUN(gradients_match);
    RUN(shapes_and_options_are_checked);
    return test_summary();
}
