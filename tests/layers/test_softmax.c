/* SPDX-License-Identifier: MIT */
/* softmax and log_softmax: shapes, values, gradients along any axis. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_model_add(model, sdlf_layer_class_find("softmax"), options, x, 1);
}

static sdlf_node build_log(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_model_add(model, sdlf_layer_class_find("log_softmax"), options, x, 1);
}

static void shapes_are_checked(void)
{
    layer_builder *const builders[] = {build, build_log};
    for (int index = 0; index < 2; index++) {
        check_output(builders[index], NULL, sdlf_shape(3, 4, 5), sdlf_shape(3, 4, 5));
        check_refused(builders[index], &(sdlf_softmax_options){.axis = 2}, sdlf_shape(3), SDLF_ERROR_SHAPE,
                      "axis 2 is not one of its input 1x3");
        check_refused(builders[index], &(sdlf_softmax_options){.axis = 8}, sdlf_shape(3), SDLF_ERROR_ARGUMENT,
                      "axis: expected -8 to 7, found 8");
        check_integers_refused(builders[index], NULL, sdlf_shape(3));
    }
}

/* Large logits neither overflow nor lose the small ones. */
static void values_match(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        float p[3], logarithm[3];
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        sdlf_model *model = sdlf_model_create("values");
        sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
        sdlf_output(model, "p", sdlf_softmax(model, x));
        sdlf_output(model, "log", sdlf_log_softmax(model, x));
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
        CHECK_OK(test_plan_write(plan, "x", (const float[]){1000, 999, 0}));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "p", p));
        CHECK_OK(test_plan_read(plan, "log", logarithm));
        CHECK_CLOSE(p[0], 1 / (1 + exp(-1)), 1e-6);
        CHECK_CLOSE(p[1], exp(-1) / (1 + exp(-1)), 1e-6);
        CHECK(p[2] == 0);
        CHECK_CLOSE(logarithm[0], -log1p(exp(-1)), 1e-4);
        CHECK_CLOSE(logarithm[2], -1000 - log1p(exp(-1)), 1e-3);
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

/* The class flags by which a plan finds the logits for its loss, and an evaluation the loss of its input. */
static void classes_say_what_they_make(void)
{
    CHECK(sdlf_layer_class_find("softmax")->scores == SDLF_SCORES_PROBABILITIES);
    CHECK(sdlf_layer_class_find("log_softmax")->scores == SDLF_SCORES_LOG_PROBABILITIES);
    CHECK(sdlf_layer_class_find("fully_connected")->scores == SDLF_SCORES_LOGITS);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "softmax", .build = build, .input = {sdlf_shape(3, 6)}, .unit = 0.125},
        {.what = "softmax over channels", .build = build, .input = {sdlf_shape(2, 4, 2, 3)}},
        {.what = "softmax over the last axis",
         .build = build,
         .options = &(sdlf_softmax_options){.axis = 3},
         .input = {sdlf_shape(2, 2, 2, 5)},
         .unit = 0.125},
        {.what = "softmax over the last axis, counted from the end",
         .build = build,
         .options = &(sdlf_softmax_options){.axis = -1},
         .input = {sdlf_shape(2, 2, 2, 5)},
         .unit = 0.125},
        {.what = "log_softmax", .build = build_log, .input = {sdlf_shape(3, 6)}, .unit = 0.125},
        {.what = "log_softmax over a middle axis",
         .build = build_log,
         .options = &(sdlf_softmax_options){.axis = 2},
         .input = {sdlf_shape(2, 2, 4, 3)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_are_checked);
    RUN(values_match);
    RUN(classes_say_what_they_make);
    RUN(gradients_match);
    return test_summary();
}
