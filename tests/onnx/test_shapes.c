/* SPDX-License-Identifier: MIT */
/* Shapes of inputs and outputs: open dimensions, with and without a name, and the report on shapes that the file lacks
 * or states wrongly; and Clip with a lower bound above the upper one. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

/* Dimensions of x: a size, or for size 0 the name, "" for none. */
typedef struct dimension {
    int64_t size;
    const char *name;
} dimension;

static void add_weight(bytes *graph, const char *name, float value)
{
    bytes weight = {.size = 0};
    bytes_number(&weight, 2, 1);
    bytes_text(&weight, 8, name);
    bytes_field(&weight, 9, &value, sizeof value);
    bytes_message(graph, 5, &weight);
}

/* x of these four dimensions -> Clip(low, high), or with an axis Flatten -> y, whose shape the file states as `said`,
 * or omits */
static void write_model(const char *path, const dimension *x, const int64_t *said, float low, float high, int64_t axis)
{
    bytes node = {.size = 0}, graph = {.size = 0}, model = {.size = 0}, set = {.size = 0};
    bytes shape = {.size = 0}, tensor = {.size = 0}, type = {.size = 0}, info = {.size = 0};
    bytes_text(&node, 1, "x");
    if (axis == 0) {
        bytes_text(&node, 1, "low");
        bytes_text(&node, 1, "high");
        add_weight(&graph, "low", low);
        add_weight(&graph, "high", high);
    } else {
        bytes attribute = {.size = 0};
        bytes_text(&attribute, 1, "axis");
        bytes_number(&attribute, 3, (uint64_t)axis);
        bytes_number(&attribute, 20, 2);
        bytes_message(&node, 5, &attribute);
    }
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, axis == 0 ? "Clip" : "Flatten");
    bytes_message(&graph, 1, &node);
    for (int i = 0; i < 4; i++) {
        bytes dim = {.size = 0};
        if (x[i].size > 0)
            bytes_number(&dim, 1, (uint64_t)x[i].size);
        else if (x[i].name[0] != '\0')
            bytes_text(&dim, 2, x[i].name);
        bytes_message(&shape, 1, &dim);
    }
    bytes_number(&tensor, 1, 1);
    bytes_message(&tensor, 2, &shape);
    bytes_message(&type, 1, &tensor);
    bytes_text(&info, 1, "x");
    bytes_message(&info, 2, &type);
    bytes_message(&graph, 11, &info);
    if (said != NULL) {
        bytes_value_info(&graph, 12, "y", said, 4);
    } else {
        bytes output = {.size = 0};
        bytes_text(&output, 1, "y");
        bytes_message(&graph, 12, &output);
    }
    bytes_number(&set, 2, 17);
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    test_write_file(path, model.data, model.size);
}

static const dimension fixed[] = {{1, ""}, {3, ""}, {2, ""}, {2, ""}};

static void open_dimensions_are_told_and_given(void)
{
    const dimension named[] = {{0, "N"}, {3, ""}, {0, "height"}, {0, "width"}},
                    unnamed[] = {{0, ""}, {3, ""}, {0, ""}, {0, ""}};
    const sdlf_onnx_dimension by_name[] = {{"height", 5}, {"width", 4}}, by_place[] = {{"x:2", 5}, {"x:3", 4}};
    const char *path = test_path("open.onnx");
    sdlf_model *model;
    for (int i = 0; i < 2; i++) {
        sdlf_onnx_options wrong = {.dimensions = i == 0 ? by_place : by_name, .dimension_count = 2},
                          right = {.dimensions = i == 0 ? by_name : by_place, .dimension_count = 2};
        write_model(path, i == 0 ? named : unnamed, NULL, 0, 1, 0);
        CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_ARGUMENT,
                    i == 0 ? "as in --dim height=224"
                           : "has no name: a model is made for sizes, so give it one, as in --dim x:2=224");
        CHECK_FAILS(sdlf_model_from_onnx(&model, path, &wrong), SDLF_ERROR_ARGUMENT, "no input leaves a dimension '");
        CHECK_OK(sdlf_model_from_onnx(&model, path, &right));
        sdlf_model_free(model);
    }
}

static void check_output(const int64_t *said, const dimension *x, sdlf_shape expected)
{
    sdlf_onnx_report *report = NULL;
    write_model(test_path("said.onnx"), x, said, 0, 1, 0);
    if (!CHECK_OK(sdlf_onnx_inspect(&report, test_path("said.onnx"), NULL))) return;
    if (!CHECK(report->output[0].shape_known && sdlf_shape_equal(report->output[0].shape, expected)))
        printf("    %s\n", sdlf_shape_print(report->output[0].shape).text);
    sdlf_onnx_report_free(report);
}

static void reports_have_the_shapes_of_outputs(void)
{
    const dimension open[] = {{0, "N"}, {3, ""}, {0, "height"}, {2, ""}};
    sdlf_onnx_report *report = NULL;
    check_output(NULL, fixed, sdlf_shape(1, 3, 2, 2));
    check_output((const int64_t[]){1, 3, 7, 7}, fixed, sdlf_shape(1, 3, 2, 2)); /* wrong */
    write_model(test_path("unmade.onnx"), open, NULL, 0, 1, 0);
    if (!CHECK_OK(sdlf_onnx_inspect(&report, test_path("unmade.onnx"), NULL))) return;
    CHECK_EQUAL(report->status, SDLF_ERROR_ARGUMENT);
    CHECK(!report->output[0].shape_known && report->input[0].shape_known);
    sdlf_onnx_report_free(report);
}

static void axes_are_told_as_the_file_has_them(void)
{
    sdlf_model *model;
    write_model(test_path("axis.onnx"), fixed, NULL, 0, 0, -7);
    CHECK_FAILS(sdlf_model_from_onnx(&model, test_path("axis.onnx"), NULL), SDLF_ERROR_FORMAT,
                "axis -7 is not one of 4 dimensions");
}

/* min(max(x, low), high), as in the standard, for 12 values. */
static void check_clip(float low, float high)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_calculator *calculator = NULL;
    const float x[12] = {-3, -1, 0, 0.5f, 1, 2, 3, INFINITY, -INFINITY, 0.25f, 10, -10};
    float y[12] = {0};
    write_model(test_path("clip.onnx"), fixed, NULL, low, high, 0);
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    if (CHECK_OK(sdlf_model_from_onnx(&model, test_path("clip.onnx"), NULL)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        for (int i = 0; i < 12; i++) CHECK(y[i] == fminf(fmaxf(x[i], low), high));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void bounds_of_clip(void)
{
    sdlf_model *model;
    check_clip(-1, 2);
    check_clip(2, 1);
    check_clip(1, 1);
    write_model(test_path("clip.onnx"), fixed, NULL, NAN, 1, 0);
    CHECK_FAILS(sdlf_model_from_onnx(&model, test_path("clip.onnx"), NULL), SDLF_ERROR_UNSUPPORTED, "bounds nan and 1");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(open_dimensions_are_told_and_given);
    RUN(reports_have_the_shapes_of_outputs);
    RUN(axes_are_told_as_the_file_has_them);
    RUN(bounds_of_clip);
    return test_summary();
}
