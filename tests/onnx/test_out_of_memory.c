/* SPDX-License-Identifier: MIT */
/* Lack of memory while an ONNX file is inspected, read and run, and while tensors are read and written: the result is a
 * status, and nothing leaks. */
#include "onnx/fixtures.h"

#include <sdlf/sdlf.h>

static sdlf_status inspect(void *path)
{
    sdlf_onnx_report *report = NULL;
    sdlf_memory_info memory;
    sdlf_status status = sdlf_onnx_inspect(&report, path, NULL);
    for (int i = 0; status == SDLF_OK && i < report->input_count; i++) CHECK(report->input[i].name[0] != '\0');
    if (status == SDLF_OK) status = report->status;
    sdlf_calculator *reference = NULL;
    if (status == SDLF_OK) status = sdlf_calculator_open(&reference, "reference", NULL);
    if (status == SDLF_OK)
        status = sdlf_plan_measure(&memory, report->model, &(sdlf_plan_options){.batch = 1, .forward = reference});
    sdlf_calculator_close(reference);
    sdlf_onnx_report_free(report);
    return status;
}

static sdlf_status run(void *path)
{
    sdlf_model *model = NULL;
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_model_from_onnx(&model, path, NULL);
    if (status == SDLF_OK) status = sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = 1});
    if (status == SDLF_OK) status = sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = cpu});
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    sdlf_plan_free(plan);
    sdlf_calculator_close(cpu);
    sdlf_model_free(model);
    return status;
}

static void models(void)
{
    static const char *const names[] = {"small_cnn", "residual", "rows", "volume", "integers", "external", "moves"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char what[64];
        const char *path = onnx_fixture(names[i], "model.onnx");
        snprintf(what, sizeof what, "a look at %s", names[i]);
        test_every_allocation(what, inspect, (void *)path);
        snprintf(what, sizeof what, "a run of %s", names[i]);
        test_every_allocation(what, run, (void *)path);
    }
}

static sdlf_status read_and_write(void *path)
{
    sdlf_tensor tensor = {.data = NULL};
    sdlf_status status = sdlf_tensor_read_file(&tensor, path);
    if (status == SDLF_OK) status = sdlf_tensor_write_file(&tensor, test_path("copy.npy"));
    sdlf_tensor_release(&tensor, NULL);
    return status;
}

static void tensors(void)
{
    test_every_allocation("a tensor", read_and_write, (void *)onnx_fixture("small_cnn", "input_0.pb"));
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(models);
    RUN(tensors);
    return test_summary();
}
