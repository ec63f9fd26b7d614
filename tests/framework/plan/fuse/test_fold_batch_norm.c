/* SPDX-License-Identifier: MIT */
/* Inference plans: batch normalisation is folded into the convolution before it, and what does nothing goes. */
#include <math.h>
#include <string.h>

#include "framework/plan/branching_inputs.h"
#include "framework/plan/networks.h"
#include "testing.h"

static void check_folding(const char *name)
{
    sdlf_calculator *calculator = NULL;
    if (!CHECK_OK(sdlf_calculator_open(&calculator, name, NULL))) return;
    sdlf_model *net = branching_net(0.25f);
    CHECK_OK(sdlf_model_build(net, 3));
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        float *value = parameter->value.data;
        if (strstr(parameter->name, "batch_norm2d") == NULL) continue;
        fill_random(value, 3, 40 + (uint64_t)i);
        for (int c = 0; c < 3 && strstr(parameter->name, "var") != NULL; c++) value[c] = fabsf(value[c]) + 0.5f;
    }
    for (int d = 0; d < 2; d++) {
        sdlf_dtype dtype = d == 0 ? SDLF_FLOAT32 : SDLF_FLOAT64;
        double result[2][BATCH * 6];
        for (int fused = 0; fused < 2; fused++) {
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(
                &plan, net,
                &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .dtype = dtype, .no_fusion = fused == 0}));
            if (plan == NULL) continue;
            CHECK((count_steps(plan, "batch_norm2d_infer") > 0) == (fused == 0));
            CHECK(count_steps(plan, "dropout_forward") == 0);
            write_images(plan, dtype);
            CHECK_OK(sdlf_plan_forward(plan));
            unsigned char bytes[BATCH * 3 * sizeof(double)];
            const char *outputs[2] = {"class", "side"};
            for (int o = 0; o < 2; o++) {
                CHECK_OK(test_plan_read(plan, outputs[o], bytes));
                sdlf_convert(SDLF_FLOAT64, &result[fused][o * BATCH * 3], dtype, bytes, BATCH * 3);
            }
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < BATCH * 6; i++) CHECK_CLOSE(result[1][i], result[0][i], d == 0 ? 4e-6 : 1e-13);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

static void folded_inference_equals_unfolded(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) check_folding(test_calculator_class_at(i)->name);
}

/* Windows of one element, as exporters leave them where a size is right already. */
static void pooling_of_single_elements_goes(void)
{
    sdlf_calculator *reference = NULL;
    sdlf_plan *plan = NULL;
    float found[2 * 2 * 2];
    static const float image[2 * 2 * 2] = {1, -2, 3, -4, 5, -6, 7, -8};
    sdlf_model *net = sdlf_model_create("single");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(2, 2, 2));
    x = sdlf_avg_pool2d(net, x, &(sdlf_pool2d_options){.window = {1, 1}, .stride = {1, 1}});
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {1, 1}});
    sdlf_node all = sdlf_relu(net, x);
    sdlf_output(net, "all", all);
    sdlf_output(net, "some", sdlf_avg_pool2d(net, all, &(sdlf_pool2d_options){.window = {1, 1}, .stride = {1, 2}}));
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    CHECK(count_steps(plan, "max_pool2d_forward") == 0);
    CHECK_EQUAL(count_steps(plan, "avg_pool2d_forward"), 1);
    CHECK_OK(test_plan_write(plan, "x", image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "all", found));
    for (int i = 0; i < 8; i++) CHECK_CLOSE(found[i], image[i] > 0 ? image[i] : 0, 0);
    CHECK_OK(test_plan_read(plan, "some", found));
    for (int i = 0; i < 4; i++) CHECK_CLOSE(found[i], image[2 * i] > 0 ? image[2 * i] : 0, 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(folded_inference_equals_unfolded);
    RUN(pooling_of_single_elements_goes);
    return test_summary();
}
