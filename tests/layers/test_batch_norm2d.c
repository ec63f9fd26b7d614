/* SPDX-License-Identifier: MIT */
/* batch_norm2d: shapes, parameters, gradients, running statistics, inference. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_batch_norm2d(model, x[0], options);
}

static void shapes_follow(void)
{
    check_output(build, NULL, sdlf_shape(3, 4, 5), sdlf_shape(3, 4, 5));
    check_output(build, NULL, sdlf_shape(6), sdlf_shape(6));
    check_refused(build, NULL, sdlf_shape(6, 2), SDLF_ERROR_SHAPE, "expected an input (N,C,H,W) or (N,C), found 1x6x2");
    check_refused(build, &(sdlf_batch_norm2d_options){.epsilon = -1}, sdlf_shape(6), SDLF_ERROR_ARGUMENT, "epsilon");
    check_refused(build, &(sdlf_batch_norm2d_options){.momentum = 2}, sdlf_shape(6), SDLF_ERROR_ARGUMENT, "momentum");
    check_integers_refused(build, NULL, sdlf_shape(6));
}

static void parameters_follow(void)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK_OK(build_layer(&model, build, &(sdlf_batch_norm2d_options){.name = "n"}, SDLF_FLOAT32, sdlf_shape(3, 2, 2),
                         sdlf_shape(1), &y));
    const char *const names[] = {"n.weight", "n.bias", "n.running_mean", "n.running_var"};
    for (int index = 0; index < 4; index++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, index);
        CHECK_TEXT(parameter->name, names[index]);
        CHECK_TEXT(sdlf_shape_print(parameter->spec.shape).text, "3");
        CHECK(parameter->spec.trainable == (index < 2) && !parameter->spec.decay);
        CHECK(((const float *)parameter->value.data)[2] == (index == 0 || index == 3 ? 1 : 0));
    }
    CHECK_EQUAL(sdlf_model_trainable_count(model), 6);
    sdlf_model_free(model);
}

/* Without a scale the weight exists, as 1, and only the bias is trained. */
static void the_scale_may_be_left_out(void)
{
    sdlf_model *model;
    sdlf_node y;
    CHECK_OK(build_layer(&model, build, &(sdlf_batch_norm2d_options){.name = "n", .no_scale = true}, SDLF_FLOAT32,
                         sdlf_shape(3, 2, 2), sdlf_shape(1), &y));
    for (int index = 0; index < 4; index++) CHECK(sdlf_model_parameter(model, index)->spec.trainable == (index == 1));
    CHECK_EQUAL(sdlf_model_trainable_count(model), 3);
    sdlf_model_free(model);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "without a scale",
         .build = build,
         .options = &(sdlf_batch_norm2d_options){.no_scale = true},
         .input = {sdlf_shape(3, 2, 3, 3)}},
        {.what = "images", .build = build, .input = {sdlf_shape(3, 2, 3, 3)}},
        {.what = "rows, large epsilon",
         .build = build,
         .options = &(sdlf_batch_norm2d_options){.epsilon = 0.5f},
         .input = {sdlf_shape(5, 4)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

/* One training step and one inference on rows whose mean and variance are known. */
static void check_statistics(const char *calculator_name)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *training = NULL, *inference = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = sdlf_model_create("statistics");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(2));
    x = sdlf_batch_norm2d(model, x, &(sdlf_batch_norm2d_options){.name = "n", .momentum = 0.25f, .epsilon = 1e-3f});
    sdlf_output(model, "y", x);
    CHECK_OK(sdlf_plan_create(&training, model,
                              &(sdlf_plan_options){.batch = 4, .mode = SDLF_TRAIN, .forward = calculator}));
    CHECK_OK(test_plan_write(training, "x", (const float[]){1, 10, 2, 10, 3, 10, 6, 10}));
    CHECK_OK(test_plan_write(training, "labels", (const int32_t[]){0, 1, 0, 1}));
    CHECK_OK(sdlf_plan_step(training, 0));
    CHECK_OK(sdlf_plan_store_parameters(training));
    const float *mean = sdlf_model_find_parameter(model, "n.running_mean")->value.data;
    const float *variance = sdlf_model_find_parameter(model, "n.running_var")->value.data;
    CHECK_CLOSE(mean[0], 0.25 * 3, 1e-6);
    CHECK_CLOSE(mean[1], 0.25 * 10, 1e-6);
    CHECK_CLOSE(variance[0], 0.75 + 0.25 * 14 / 3, 1e-6); /* the unbiased variance */
    CHECK_CLOSE(variance[1], 0.75, 1e-6);
    CHECK_OK(sdlf_plan_create(&inference, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    float y[2];
    CHECK_OK(test_plan_write(inference, "x", (const float[]){2, 3}));
    CHECK_OK(sdlf_plan_forward(inference));
    CHECK_OK(test_plan_read(inference, "y", y));
    CHECK_CLOSE(y[0], (2 - 0.75) / sqrt(0.75 + 0.25 * 14 / 3 + 1e-3), 1e-6);
    CHECK_CLOSE(y[1], (3 - 2.5) / sqrt(0.75 + 1e-3), 1e-6);
    sdlf_plan_free(inference);
    sdlf_plan_free(training);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void statistics_are_kept_and_used(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++)
        check_statistics(test_calculator_class_at(index)->name);
}

/* In inference, a normalisation is folded into the preceding layer, but not through a reshape, which changes the
 * channels. */
static void check_folding(const char *calculator_name, bool reshaped)
{
    sdlf_calculator *calculator = NULL;
    float x[2 * 6], y[2][2 * 6];
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = sdlf_model_create("folding");
    sdlf_node node = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(6));
    node = sdlf_fully_connected(model, node, &(sdlf_fully_connected_options){.units = 6});
    if (reshaped) node = sdlf_reshape(model, node, &(sdlf_reshape_options){.shape = sdlf_shape(3, 2, 1)});
    node = sdlf_batch_norm2d(model, node, &(sdlf_batch_norm2d_options){.name = "n"});
    sdlf_output(model, "y", node);
    CHECK_OK(sdlf_model_build(model, 1));
    for (int index = 0; index < 4; index++) {
        float *value = sdlf_model_parameter(model, 2 + index)->value.data;
        for (int k = 0; k < (reshaped ? 3 : 6); k++) value[k] = 0.5f + 0.25f * (float)((k + index) % 5);
    }
    for (int e = 0; e < 12; e++) x[e] = (float)(e % 7) - 3;
    for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = 2, .forward = calculator, .no_fusion = no_fusion};
        CHECK_OK(sdlf_plan_create(&plan, model, &options));
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y[no_fusion]));
        sdlf_plan_free(plan);
    }
    for (int e = 0; e < 12; e++) CHECK_CLOSE(y[0][e], y[1][e], 1e-5);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void folding_changes_nothing(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        check_folding(test_calculator_class_at(index)->name, false);
        check_folding(test_calculator_class_at(index)->name, true);
    }
}

int main(void)
{
    RUN(shapes_follow);
    RUN(parameters_follow);
    RUN(the_scale_may_be_left_out);
    RUN(gradients_match);
    RUN(statistics_are_kept_and_used);
    RUN(folding_changes_nothing);
    return test_summary();
}
