/* SPDX-License-Identifier: MIT */
/* Training with class weights, and with two labels per sample, compared with gradients of weighted losses computed
 * here. */
#include <math.h>
#include <stdio.h>

#include "framework/trainer_history.h"

/* One step on all samples, compared with gradients of weighted losses computed here: weight w of a class has the effect
 * of w copies of its samples. */
static void weights_are_as_copies(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(12, 3), copies = synthetic_dataset(24, 3);
    const int32_t *label = data.labels.data;
    int64_t pixels = SYNTHETIC_SIDE * SYNTHETIC_SIDE, count = 0;
    for (int n = 0; n < 12; n++)
        for (int copy = 0; copy < (label[n] == 1 ? 2 : 1); copy++, count++) {
            memcpy((uint8_t *)copies.samples.data + count * pixels, (uint8_t *)data.samples.data + n * pixels,
                   (size_t)pixels);
            ((int32_t *)copies.labels.data)[count] = label[n];
        }
    copies.samples.shape.dim[0] = copies.labels.shape.dim[0] = count;
    float after[2][3];
    for (int which = 0; which < 2; which++) {
        sdlf_trainer_options options = {.batch = 64,
                                        .schedule = sdlf_constant(.peak = 0.5f),
                                        .forward = synthetic_calculator(),
                                        .callback = watch,
                                        .user = &seen};
        if (which == 0) snprintf(options.class_weights, sizeof options.class_weights, "1,2,1");
        sdlf_model *model = sdlf_model_create("linear");
        sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
        x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "f", .units = SYNTHETIC_CLASSES});
        sdlf_output(model, "class", sdlf_softmax(model, x));
        CHECK_OK(train(model, which == 0 ? &data : &copies, NULL, &options));
        memcpy(after[which], sdlf_model_find_parameter(model, "f.bias")->value.data, sizeof after[which]);
        sdlf_model_free(model);
    }
    for (int k = 0; k < 3; k++) CHECK_CLOSE(after[0][k], after[1][k], 1e-5);
    CHECK(fabsf(after[0][0]) > 1e-3f);
    synthetic_release(&copies);
    synthetic_release(&data);
}

static void lists_of_weights(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(40, 1);
    static const char *const bad[] = {"1,2", "1,2,3,4", "1,x,3", "1,0,3", "1,2,inf", "balance"};
    sdlf_trainer_options options = base_options(&seen);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(options.class_weights, sizeof options.class_weights, "%s", bad[i]);
        sdlf_model *model = synthetic_model();
        sdlf_trainer *trainer = NULL;
        CHECK_FAILS(sdlf_trainer_create(&trainer, model, &data, NULL, &options), SDLF_ERROR_ARGUMENT,
                    "expected balanced, or 3 numbers above 0");
        sdlf_model_free(model);
    }
    snprintf(options.class_weights, sizeof options.class_weights, "balanced");
    uint32_t hash = trained_hash(&data, options); /* the numbers that it stands for */
    int32_t counts[3] = {0, 0, 0};
    for (int n = 0; n < 40; n++) counts[((int32_t *)data.labels.data)[n]]++;
    snprintf(options.class_weights, sizeof options.class_weights, "%.9g,%.9g,%.9g",
             (double)(float)(40.0 / (3 * counts[0])), (double)(float)(40.0 / (3 * counts[1])),
             (double)(float)(40.0 / (3 * counts[2])));
    CHECK_EQUAL(trained_hash(&data, options), hash);
    synthetic_release(&data);
}

/* The gradient with respect to the scores' bias, sum of w (p - t) + w' (p - t'), on every calculator. */
static void losses_of_mixed_labels_are_added(void)
{
    enum { N = 4 };
    static const int32_t label[N] = {0, 1, 2, 1}, second[N] = {1, 1, 0, 2};
    static const float weight[N] = {0.2f, 0.25f, 0.125f, 0.15f}, other[N] = {0.05f, 0, 0.125f, 0.1f};
    float x[N * SYNTHETIC_SIDE * SYNTHETIC_SIDE];
    const sdlf_calculator_class *type;
    for (int i = 0; i < N * 64; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) {
        sdlf_model *model = sdlf_model_create("linear");
        sdlf_node image = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(64));
        sdlf_output(model, "class",
                    sdlf_fully_connected(model, image, &(sdlf_fully_connected_options){.name = "f", .units = 3}));
        sdlf_calculator *calculator = test_open(type->name);
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {
            .batch = N, .mode = SDLF_TRAIN, .forward = calculator, .gradients_only = true, .mixed = true};
        if (CHECK_OK(sdlf_plan_create(&plan, model, &options))) {
            CHECK_OK(sdlf_plan_write(plan, "image", x, SDLF_FLOAT32, sizeof x));
            CHECK_OK(sdlf_plan_write(plan, "labels", label, SDLF_INT32, sizeof label));
            CHECK_OK(sdlf_plan_write(plan, "second_labels", second, SDLF_INT32, sizeof second));
            CHECK_OK(sdlf_plan_write(plan, "weights", weight, SDLF_FLOAT32, sizeof weight));
            CHECK_OK(sdlf_plan_write(plan, "second_weights", other, SDLF_FLOAT32, sizeof other));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(sdlf_plan_backward(plan));
            const float *w = sdlf_model_find_parameter(model, "f.weight")->value.data;
            const float *b = sdlf_model_find_parameter(model, "f.bias")->value.data;
            double wanted[3] = {0, 0, 0};
            for (int n = 0; n < N; n++) {
                double p[3], sum = 0;
                for (int k = 0; k < 3; k++) {
                    p[k] = (double)b[k];
                    for (int e = 0; e < 64; e++) p[k] += (double)w[k * 64 + e] * (double)x[n * 64 + e];
                    sum += p[k] = exp(p[k]);
                }
                for (int k = 0; k < 3; k++)
                    wanted[k] += (double)weight[n] * (p[k] / sum - (label[n] == k)) +
                                 (double)other[n] * (p[k] / sum - (second[n] == k));
            }
            sdlf_binding binding;
            float found[3];
            CHECK_OK(sdlf_plan_gradient(plan, "f.bias", &binding));
            CHECK_OK(sdlf_plan_synchronize(plan));
            test_download(&binding, found);
            for (int k = 0; k < 3; k++) CHECK_CLOSE(found[k], wanted[k], 1e-5);
        }
        sdlf_plan_free(plan);
        sdlf_calculator_close(calculator);
        sdlf_model_free(model);
    }
}

int main(void)
{
    RUN(weights_are_as_copies);
    RUN(lists_of_weights);
    RUN(losses_of_mixed_labels_are_added);
    return test_summary();
}
