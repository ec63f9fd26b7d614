/* SPDX-License-Identifier: MIT */
/* Integer constants of operators that float32 cannot represent are used exactly, or rejected. */
#include "testing.h"

#include <stdio.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

enum { INT64 = 7, UINT64 = 13 };

/* An input of the node: `count` integers, or for 0 a scalar. */
typedef struct constant {
    int type, count;
    int64_t item[2];
} constant;

/* y = `type`(x, the constants), where x is three int64; without `reads`, y = `type`(the constants). */
static sdlf_status import_node(sdlf_model **model, const char *type, bool reads, const constant *given, int count)
{
    bytes node = {.size = 0}, graph = {.size = 0}, file = {.size = 0}, set = {.size = 0};
    if (reads) bytes_text(&node, 1, "x");
    for (int i = 0; i < count; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        bytes tensor = {.size = 0};
        if (given[i].count > 0) bytes_number(&tensor, 1, (uint64_t)given[i].count);
        bytes_number(&tensor, 2, (uint64_t)given[i].type);
        bytes_text(&tensor, 8, name);
        bytes_field(&tensor, 9, given[i].item, 8 * (size_t)(given[i].count > 0 ? given[i].count : 1));
        bytes_message(&graph, 5, &tensor);
        bytes_text(&node, 1, name);
    }
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, type);
    bytes_message(&graph, 1, &node);
    bytes_typed_info(&graph, 11, "x", INT64, (const int64_t[]){3}, 1);
    bytes_typed_info(&graph, 12, "y", reads ? INT64 : UINT64, NULL, 0);
    bytes_number(&set, 2, 19);
    bytes_message(&file, 8, &set);
    bytes_message(&file, 7, &graph);
    test_write_file(test_path("large.onnx"), file.data, file.size);
    return sdlf_model_from_onnx(model, test_path("large.onnx"), NULL);
}

static void check_clip(const constant *bounds, const int64_t *x, const int64_t *expected)
{
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    int64_t y[3] = {0};
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    if (CHECK_OK(import_node(&model, "Clip", true, bounds, 2)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        for (int i = 0; i < 3; i++) CHECK(y[i] == expected[i]);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void bounds_are_exact(void)
{
    const int64_t far = ((int64_t)1 << 53) + 1;
    check_clip((const constant[]){{INT64, 0, {-16777217}}, {INT64, 0, {16777217}}},
               (const int64_t[]){-16777218, 5, 16777218}, (const int64_t[]){-16777217, 5, 16777217});
    check_clip((const constant[]){{INT64, 0, {INT64_MIN}}, {INT64, 0, {far}}},
               (const int64_t[]){INT64_MIN, far, far + 1}, (const int64_t[]){INT64_MIN, far, far});
    check_clip((const constant[]){{INT64, 0, {2}}, {INT64, 0, {INT64_MAX}}}, (const int64_t[]){-far, far, INT64_MAX},
               (const int64_t[]){2, far, INT64_MAX});
}

static void what_would_be_another_number_is_refused(void)
{
    sdlf_model *model = NULL;
    const constant pads = {INT64, 2, {1, 1}};
    if (CHECK_OK(import_node(&model, "Pad", true, (const constant[]){pads, {INT64, 0, {-2147483648}}}, 2)))
        sdlf_model_free(model);
    CHECK_FAILS(import_node(&model, "Pad", true, (const constant[]){pads, {INT64, 0, {16777217}}}, 2),
                SDLF_ERROR_UNSUPPORTED, "padding with 16777217, which float32 does not hold");
    CHECK_FAILS(import_node(&model, "Div", false, (const constant[]){{UINT64, 1, {-1}}, {UINT64, 1, {2}}}, 2),
                SDLF_ERROR_UNSUPPORTED, "of a constant of uint64 of 2^63 and more");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(bounds_are_exact);
    RUN(what_would_be_another_number_is_refused);
    return test_summary();
}
