/* SPDX-License-Identifier: MIT */
/* dropout: gradients with the forward pass's mask, different elements in each step, no effect in inference. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_dropout(model, x[0], options);
}

static void shapes_follow(void)
{
    check_output(build, &(sdlf_dropout_options){.probability = 0.5f}, sdlf_shape(3, 4, 5), sdlf_shape(3, 4, 5));
    check_refused(build, &(sdlf_dropout_options){.probability = 1}, sdlf_shape(3), SDLF_ERROR_ARGUMENT,
                  "probability: expected 0 to 0.999999, found 1");
    check_refused(build, &(sdlf_dropout_options){.probability = -0.1f}, sdlf_shape(3), SDLF_ERROR_ARGUMENT,
                  "probability");
    check_integers_refused(build, &(sdlf_dropout_options){.probability = 0.5f}, sdlf_shape(3));
}

/* Plans for inference know nothing of it, not even as a copy. */
static void nothing_is_left_of_it_in_inference(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_plan *plan = NULL;
    sdlf_model *model = sdlf_model_create("idle");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
    x = sdlf_dropout(model, sdlf_relu(model, x), &(sdlf_dropout_options){.probability = 0.5f});
    sdlf_output(model, "y", sdlf_relu(model, x));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = reference, .no_fusion = true}));
    CHECK_EQUAL(sdlf_plan_step_count(plan), 2);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(reference);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "a half",
         .build = build,
         .options = &(sdlf_dropout_options){.probability = 0.5f},
         .input = {sdlf_shape(3, 11)}},
        {.what = "nothing", .build = build, .input = {sdlf_shape(2, 3)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

/* y of one forward pass on ones, at a step. */
static void drop(sdlf_plan *plan, int64_t step, float *y)
{
    CHECK_OK(sdlf_plan_set_step_number(plan, step));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
}

enum { COUNT = 4000 };

static void check_masks(const char *calculator_name, float *x, float *y, float *again)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *training = NULL, *inference = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = sdlf_model_create("masks");
    sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(COUNT));
    sdlf_output(model, "y", sdlf_dropout(model, in, &(sdlf_dropout_options){.probability = 0.25f}));
    sdlf_plan_options options = {.batch = 1, .mode = SDLF_TRAIN, .forward = calculator, .keep_activations = true};
    CHECK_OK(sdlf_plan_create(&training, model, &options));
    for (int e = 0; e < COUNT; e++) x[e] = 1;
    CHECK_OK(test_plan_write(training, "x", x));
    CHECK_OK(test_plan_write(training, "labels", (const int32_t[]){0}));
    drop(training, 0, y);
    int dropped = 0, changed = 0;
    for (int e = 0; e < COUNT; e++) {
        dropped += y[e] == 0;
        CHECK(y[e] == 0 || fabsf(y[e] - 4 / 3.0f) < 1e-6f);
    }
    CHECK_CLOSE(dropped / (double)COUNT, 0.25, 0.03);
    drop(training, 1, again);
    for (int e = 0; e < COUNT; e++) changed += y[e] != again[e];
    CHECK_CLOSE(changed / (double)COUNT, 2 * 0.25 * 0.75, 0.04);
    drop(training, 0, again);
    CHECK(memcmp(y, again, COUNT * sizeof *y) == 0);
    CHECK_OK(sdlf_plan_create(&inference, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_OK(test_plan_write(inference, "x", x));
    drop(inference, 0, y);
    CHECK(memcmp(x, y, COUNT * sizeof *y) == 0);
    sdlf_plan_free(inference);
    sdlf_plan_free(training);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void masks_change_by_step_alone(void)
{
    float *values = malloc(3 * COUNT * sizeof *values);
    for (int index = 0; test_calculator_class_at(index) != NULL; index++)
        check_masks(test_calculator_class_at(index)->name, values, values + COUNT, values + 2 * COUNT);
    free(values);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(gradients_match);
    RUN(nothing_is_left_of_it_in_inference);
    RUN(masks_change_by_step_alone);
    return test_summary();
}
