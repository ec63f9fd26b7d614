/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: the measurements of each rung, on the host and on devices, and the report on rungs that do not
 * run. */
#include "testing.h"

#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/bench.h"
#include "apps/bench/conv/conv.h"
#include "apps/bench/conv/report.h"
#include "apps/capture.h"
#include "apps/program.h"

/* Every algorithm of the calculator's table is a row, in its order, with the calculator's own choice last. */
static void rungs_are_the_calculators(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--json", "-");
    const json_t *rungs = json_object_get(report, "rungs");
    sdlf_calculator *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    const char *const *names = cpu->type->kernel[SDLF_CONV2D_FORWARD].algorithms;
    size_t count = 0;
    for (; names[count + 1]; count++) {
        CHECK_TEXT(json_string_value(json_object_get(json_array_get(rungs, count), "name")), names[count + 1]);
    }
    CHECK_EQUAL(json_array_size(rungs), count + 1);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(rungs, count), "name")), "auto");
    sdlf_calculator_close(cpu);

    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    CHECK_EQUAL(whole(conv, "flops"), 2 * 2 * 5 * 72 * 27);
    CHECK_EQUAL(whole(conv, "bytes"), 4 * (2 * 3 * 72 + 5 * 27 + 2 * 5 * 72));
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(conv, "rungs"), i, row)
    {
        CHECK(json_is_true(json_object_get(row, "ran"))); /* all of them support this one */
        double seconds = number(row, "seconds");
        CHECK(seconds > 0 && number(row, "error") < 1e-5);
        CHECK_CLOSE(number(row, "compared"), 0.5, 1e-9); /* the last of two images */
        CHECK_CLOSE(number(row, "flops_per_second") * seconds / (double)whole(conv, "flops"), 1, 1e-6);
        CHECK_CLOSE(number(row, "bytes_per_second") * seconds / (double)whole(row, "work_bytes"), 1, 1e-6);
        CHECK_CLOSE(number(row, "of_floor") * seconds / number(conv, "floor_seconds"), 1, 1e-6);
    }
    const json_t *im2col = find(json_object_get(conv, "rungs"), "rung", "im2col");
    CHECK_EQUAL(whole(im2col, "work_bytes"), whole(conv, "bytes") + 2 * 4 * 2 * 27 * 72);
    const json_t *winograd = find(json_object_get(conv, "rungs"), "rung", "winograd-4x4");
    CHECK(whole(winograd, "work_flops") != whole(conv, "flops"));
    CHECK_EQUAL(whole(winograd, "prepared_bytes") % (36 * 3 * 4),
                0); /* 36 values for each channel and each padded filter */
    CHECK(whole(winograd, "prepared_bytes") >= 36 * 5 * 3 * 4);
    CHECK_EQUAL(whole(im2col, "prepared_bytes"), 0);
    CHECK_CLOSE(number(json_array_get(json_object_get(conv, "rungs"), 0), "speed_up"), 1, 1e-9);
    json_decref(report);
}

static void refusals_say_why(void)
{
    const program *p = SDLF(0, "bench", "conv", "--shape", "1x4x9x9", "--kernel", "4x3x3", "--stride", "2x1", QUICK);
    CHECK_SAYS(p, "1x4x9x9, 4 of 3x3, stride 2x1");
    CHECK_SAYS(p, "takes 3x3 windows, stride 1, no dilation, not depthwise; activations that are channels last");
    CHECK_SAYS(p, "0 of 1");
    json_t *report = CAPTURE_JSON(conv_bench.run, "--shape", "1x4x9x9", "--kernel", "4x3x3", "--stride", "2", QUICK,
                                  "--rung", "naive", "--rung", "winograd-2x2", "--json", "-");
    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    CHECK_EQUAL(json_array_size(json_object_get(conv, "rungs")), 2);
    const json_t *refused = find(json_object_get(conv, "rungs"), "rung", "winograd-2x2");
    CHECK(json_is_false(json_object_get(refused, "ran")));
    CHECK_TEXT(json_string_value(json_object_get(refused, "why")),
               "takes 3x3 windows, stride 1, no dilation, not depthwise; activations that are channels last");
    json_decref(report);
}

/* float64, and a calculator with a single algorithm. */
static void other_calculators_and_types(void)
{
    static const char *const calculators[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        json_t *report = CAPTURE_JSON(conv_bench.run, "--shape", "1x4x7x7", "--kernel", "4x3x3", "--groups", "2", QUICK,
                                      "--dtype", "float64", "--calculator", calculators[i], "--json", "-");
        const json_t *rungs = json_object_get(report, "rungs");
        if (i == 0) CHECK_EQUAL(json_array_size(rungs), 1);
        CHECK(number(json_array_get(rungs, 0), "seconds") > 0);
        CHECK(number(json_array_get(rungs, 0), "error") < 1e-14);
        CHECK_TEXT(json_string_value(json_object_get(report, "dtype")), "float64");
        json_decref(report);
    }
}

/* Memory that the host cannot access, and recorded runs. */
static void devices_are_measured(void)
{
    sdlf_calculator *device = NULL, *reference = NULL;
    lab_rung rungs[LAB_RUNGS];
    lab_result result = {.ran = false};
    lab_bench *made = NULL;
    sdlf_operation operation;
    const lab_shape shape = {
        .n = 1, .c = 2, .h = 6, .w = 5, .k = 3, .kernel = {3, 2}, .stride = {1, 2}, .dilation = {1, 1}, .groups = 1};
    CHECK_OK(sdlf_calculator_open(&device, "guarded", NULL));
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_EQUAL(lab_rungs_of(device, rungs, LAB_RUNGS), 1);
    CHECK_TEXT(rungs[0].name, "guarded");
    CHECK_OK(lab_shape_operation(&shape, SDLF_FLOAT32, &operation));
    CHECK_OK(lab_bench_create(&made, device, reference, &operation, true));
    CHECK_OK(lab_bench_run(made, &rungs[0], &(lab_effort){.repeats = 5, .seconds = 0.01}, &result));
    CHECK(result.ran && result.seconds > 0 && result.runs >= 1);
    CHECK_CLOSE(result.error, 0, 0);
    CHECK_CLOSE(result.compared, 1, 0);
    lab_bench_free(made);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(device);
}

/* As many filters as reference does in 1e8 FLOPs: of 2 times 1152 times 12544 each, 3 of 128. */
static void large_ones_are_compared_in_part(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, "--shape", "1x128x112x112", "--kernel", "128x3x3", "--padding", "1",
                                  QUICK, "--rung", "im2col", "--json", "-");
    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    const json_t *row = json_array_get(json_object_get(conv, "rungs"), 0);
    CHECK_CLOSE(number(row, "compared"), 3.0 / 128, 1e-9);
    CHECK(number(row, "error") > 0 && number(row, "error") < 1e-5);
    json_decref(report);
}

static void what_is_not_compared_is_not_told(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--no-check", "--rung", "im2col", "--json", "-");
    const json_t *conv = json_array_get(json_object_get(report, "convolutions"), 0);
    const json_t *row = json_array_get(json_object_get(conv, "rungs"), 0);
    CHECK(number(row, "seconds") > 0);
    CHECK_CLOSE(number(row, "compared"), 0, 0);
    CHECK(json_is_null(json_object_get(row, "error")));
    json_decref(report);
}

int main(void)
{
    RUN(rungs_are_the_calculators);
    RUN(refusals_say_why);
    RUN(other_calculators_and_types);
    RUN(devices_are_measured);
    RUN(large_ones_are_compared_in_part);
    RUN(what_is_not_compared_is_not_told);
    return test_summary();
}
