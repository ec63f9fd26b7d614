/* SPDX-License-Identifier: MIT */
/* ONNX models: fixtures run as onnxruntime ran them, on every calculator. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/plan/networks.h"
#include "onnx/fixtures.h"

/* The tolerance covers float32 sums in different orders. */
static void check_close(const sdlf_tensor *found, const sdlf_tensor *expected, sdlf_dtype dtype, const char *what)
{
    double worst = 0, largest = 0;
    int64_t count = sdlf_tensor_count(expected);
    for (int64_t i = 0; i < count; i++) {
        double value = dtype == SDLF_FLOAT64 ? ((double *)found->data)[i] : (double)((float *)found->data)[i];
        double wanted = (double)((float *)expected->data)[i];
        worst = fmax(worst, fabs(value - wanted));
        largest = fmax(largest, fabs(wanted));
    }
    if (!CHECK(worst <= 1e-5 * largest)) printf("    %s: worst %g of %g\n", what, worst, largest);
}

static const char *in_folder(const char *folder, const char *what, int number)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, number);
    return path;
}

/* Run the model on the inputs in `folder`, and compare with the outputs there. */
static void run_model(const char *path, const char *folder, const char *calculator_name, sdlf_dtype dtype)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_status status =
        sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator, .dtype = dtype});
    CHECK_OK(status);
    for (int i = 0; status == SDLF_OK && i < sdlf_model_input_count(model); i++) {
        sdlf_tensor tensor;
        CHECK_OK(sdlf_tensor_read_file(&tensor, in_folder(folder, "input", i)));
        int64_t count = sdlf_tensor_count(&tensor);
        void *values = malloc((size_t)count * 8);
        sdlf_convert(dtype, values, SDLF_FLOAT32, tensor.data, count);
        CHECK_OK(test_plan_write(plan, sdlf_model_layer(model, sdlf_model_input(model, i).layer)->name, values));
        free(values);
        sdlf_tensor_release(&tensor, NULL);
    }
    if (status == SDLF_OK) CHECK_OK(sdlf_plan_forward(plan));
    for (int i = 0; status == SDLF_OK && i < sdlf_model_output_count(model); i++) {
        if (sdlf_model_output_is_length(model, i)) continue;
        sdlf_tensor expected;
        sdlf_binding binding;
        CHECK_OK(sdlf_tensor_read_file(&expected, in_folder(folder, "output", i)));
        CHECK_OK(sdlf_plan_output(plan, sdlf_model_output_name(model, i), &binding));
        sdlf_tensor found =
            sdlf_tensor_view(dtype, binding.tensor.shape, malloc((size_t)sdlf_tensor_bytes(&binding.tensor)));
        CHECK(test_download(&binding, found.data));
        CHECK_OK(sdlf_plan_trim(plan, sdlf_model_output_name(model, i), &found));
        if (CHECK(sdlf_shape_equal(found.shape, expected.shape))) check_close(&found, &expected, dtype, folder);
        free(found.data);
        sdlf_tensor_release(&expected, NULL);
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

static void run_fixture(const char *name, const char *calculator_name, sdlf_dtype dtype)
{
    run_model(onnx_fixture(name, "model.onnx"), onnx_fixture(name, "."), calculator_name, dtype);
}

static const char *const fixtures[] = {"small_cnn", "residual",  "moves",     "rows",      "external",
                                       "volume",    "integers",  "recurrent", "attention", "indices",
                                       "branches",  "quantised", "selected",  "sampled",   "stored",
                                       "scanned",   "states",    "learning",  "qdq",       "qlinear"};
enum { FIXTURE_COUNT = sizeof fixtures / sizeof fixtures[0] };

static void fixtures_run_everywhere(void)
{
    const sdlf_calculator_class *type;
    for (int c = 0; (type = test_calculator_class_at(c)) != NULL; c++)
        for (int i = 0; i < FIXTURE_COUNT; i++) {
            run_fixture(fixtures[i], type->name, SDLF_FLOAT32);
            run_fixture(fixtures[i], type->name, SDLF_FLOAT64);
        }
}

/* The scales of QLinearConv stay separate from its integers: none is folded into weights. */
static void integer_convolutions_stay_integers(void)
{
    sdlf_model *model;
    sdlf_calculator *cpu;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("qlinear", "model.onnx"), NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = cpu}));
    CHECK_EQUAL(count_steps(plan, "quantized_conv2d"), 3);
    CHECK_EQUAL(count_steps(plan, "conv2d_forward"), 0);
    sdlf_plan_free(plan);
    sdlf_calculator_close(cpu);
    sdlf_model_free(model);
}

/* The ONNX zoo's MNIST network, if SDLF_DATA has it. */
static void a_published_network_runs(void)
{
    char model[600];
    const char *found = test_data("onnx/mnist-8/model.onnx");
    if (found == NULL) {
        test_skip("SDLF_DATA has no onnx/mnist-8");
        return;
    }
    snprintf(model, sizeof model, "%s", found);
    for (int i = 0; i < 3; i++) {
        char name[64], folder[600];
        snprintf(name, sizeof name, "onnx/mnist-8/test_data_set_%d", i);
        found = test_data(name);
        if (!CHECK(found != NULL)) return;
        snprintf(folder, sizeof folder, "%s", found);
        const sdlf_calculator_class *type;
        for (int c = 0; (type = test_calculator_class_at(c)) != NULL; c++)
            run_model(model, folder, type->name, SDLF_FLOAT32);
    }
}

/* Biases in a separate Add become biases of the layer, so that they are trained and fused like others. */
static void biases_are_taken_in(void)
{
    sdlf_model *model;
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("small_cnn", "model.onnx"), NULL));
    CHECK_EQUAL(sdlf_model_trainable_count(model), 4 * 25 + 4 + 6 * 4 * 9 + 6 + 1500 + 10);
    for (int i = 0; i < sdlf_model_layer_count(model); i++)
        CHECK(strcmp(sdlf_model_layer(model, i)->type->name, "add") != 0);
    sdlf_model_free(model);
}

static void a_report_says_what_is_there(void)
{
    sdlf_onnx_report *report;
    CHECK_OK(sdlf_onnx_inspect(&report, onnx_fixture("residual", "model.onnx"), NULL));
    CHECK_OK(report->status);
    CHECK_EQUAL(report->opset, 13);
    CHECK_EQUAL(report->node_count, 12);
    CHECK_EQUAL(report->failed_count, 0);
    CHECK_TEXT(report->producer, "sdlf-fixtures");
    CHECK_EQUAL(report->input_count, 1);
    CHECK_EQUAL(report->output_count, 2);
    CHECK_TEXT(report->node[0].type, "Conv");
    CHECK(report->node[0].shape_known && sdlf_shape_equal(report->node[0].shape, sdlf_shape(1, 8, 8, 8)));
    CHECK(report->model != NULL && sdlf_model_parameter_count(report->model) > 0);
    sdlf_calculator *calculator;
    sdlf_memory_info memory;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    CHECK_OK(sdlf_plan_measure(&memory, report->model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK(memory.arena > 0 && memory.parameters > 0);
    CHECK(!sdlf_tensor_present(&sdlf_model_parameter(report->model, 0)->value)); /* nothing was allocated */
    sdlf_calculator_close(calculator);
    sdlf_onnx_report_free(report);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(fixtures_run_everywhere);
    RUN(integer_convolutions_stay_integers);
    RUN(a_published_network_runs);
    RUN(biases_are_taken_in);
    RUN(a_report_says_what_is_there);
    return test_summary();
}
