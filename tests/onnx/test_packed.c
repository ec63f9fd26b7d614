/* SPDX-License-Identifier: MIT */
/* Weights of 8 and 4 bits stay packed in a plan that reads them from the file: its results, and the memory that it
 * needs. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/fixtures.h"

static sdlf_calculator *calculator;

static sdlf_status open_plan(sdlf_model **model, sdlf_plan **plan, int64_t rows, bool leave, bool no_fusion)
{
    sdlf_status status =
        sdlf_model_from_onnx(model, onnx_fixture("packed", "model.onnx"), &(sdlf_onnx_options){.leave_weights = leave});
    *plan = NULL;
    if (status != SDLF_OK) return status;
    return sdlf_plan_create(
        plan, *model,
        &(sdlf_plan_options){
            .batch = rows, .forward = calculator, .consume_parameters = leave, .no_fusion = no_fusion});
}

/* Any number of rows of the fixture's batch, 1 to 8, matches onnxruntime's results. */
static void any_number_of_rows(void)
{
    sdlf_tensor x, y;
    CHECK_OK(sdlf_tensor_read_file(&x, onnx_fixture("packed", "input_0.pb")));
    CHECK_OK(sdlf_tensor_read_file(&y, onnx_fixture("packed", "output_0.pb")));
    for (int64_t i = 0; i < 16; i++) {
        int64_t rows = 1 + i / 2;
        sdlf_model *model;
        sdlf_plan *plan;
        float found[8 * 7];
        if (!CHECK_OK(open_plan(&model, &plan, rows, i % 2 == 0, false))) break;
        CHECK_OK(sdlf_plan_write(plan, "x", x.data, SDLF_FLOAT32, rows * 70 * (int64_t)sizeof(float)));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_read(plan, "y", found, SDLF_FLOAT32, rows * 7 * (int64_t)sizeof(float)));
        for (int64_t k = 0; k < rows * 7; k++) CHECK_CLOSE((double)found[k], (double)((const float *)y.data)[k], 2e-4);
        sdlf_plan_free(plan);
        sdlf_model_free(model);
    }
    sdlf_tensor_release(&x, NULL);
    sdlf_tensor_release(&y, NULL);
}

static int64_t bytes_of(bool leave, bool no_fusion)
{
    sdlf_model *model;
    sdlf_plan *plan;
    CHECK_OK(open_plan(&model, &plan, 1, leave, no_fusion));
    sdlf_memory_info memory = sdlf_plan_memory(plan);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    return memory.arena + memory.parameters;
}

/* 1,670 weights of 4 or 8 bits, with their scales, take less than half the memory of float32. */
static void packed_weights_take_less(void)
{
    int64_t packed = bytes_of(true, false), floats = bytes_of(true, true);
    CHECK(packed < floats / 2);
    if (packed >= floats / 2) printf("%lld and %lld bytes\n", (long long)packed, (long long)floats);
}

/* Packed copies would miss later changes of the values: a plan that does not consume them computes with floats. */
static void plans_that_do_not_take_have_floats(void)
{
    CHECK(bytes_of(false, false) > bytes_of(true, false));
}

int main(void)
{
    static const char *const names[] = {"reference", "cpu"};
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sdlf_calculator_open(&calculator, names[i], NULL));
        RUN(any_number_of_rows);
        RUN(packed_weights_take_less);
        RUN(plans_that_do_not_take_have_floats);
        sdlf_calculator_close(calculator);
    }
    return test_summary();
}
