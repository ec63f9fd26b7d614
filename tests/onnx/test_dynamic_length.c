/* SPDX-License-Identifier: MIT */
/* Outputs whose length depends on the input: their valid part, and which operators can and cannot read them. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

enum { FLOAT = 1, INT64 = 7 };

static void add_node(bytes *graph, const char *type, const char *a, const char *b, const char *y, int64_t axis)
{
    bytes node = {.size = 0};
    bytes_text(&node, 1, a);
    if (b != NULL) bytes_text(&node, 1, b);
    bytes_text(&node, 2, y);
    bytes_text(&node, 4, type);
    if (axis >= 0) {
        bytes attribute = {.size = 0};
        bytes_text(&attribute, 1, "axis");
        bytes_number(&attribute, 3, (uint64_t)axis);
        bytes_number(&attribute, 20, 2);
        bytes_message(&node, 5, &attribute);
    }
    bytes_message(graph, 1, &node);
}

/* places = NonZero(x), and y = `type` of them, or of x and them. */
static sdlf_status import_pair(sdlf_model **model, const char *type, const char *a, const char *b, int64_t axis, int y)
{
    bytes graph = {.size = 0}, file = {.size = 0}, set = {.size = 0};
    add_node(&graph, "NonZero", "x", NULL, "places", -1);
    add_node(&graph, type, a, b, "y", axis);
    bytes_typed_info(&graph, 11, "x", FLOAT, (const int64_t[]){2, 3}, 2);
    bytes_typed_info(&graph, 12, "y", y, NULL, 0);
    bytes_number(&set, 2, 17);
    bytes_message(&file, 8, &set);
    bytes_message(&file, 7, &graph);
    test_write_file(test_path("counted.onnx"), file.data, file.size);
    return sdlf_model_from_onnx(model, test_path("counted.onnx"), NULL);
}

/* The indices of the nonzero elements of 2x3, in order, and their number. */
static void what_counts_is_moved_together(void)
{
    static const float x[2][6] = {{0, 1, 0, 2, 0, 3}, {0, 0, 0, 0, 0, 0}};
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    int64_t places[12], length = -1;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    if (CHECK_OK(import_pair(&model, "Neg", "places", NULL, -1, INT64)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_EQUAL(sdlf_model_output_count(model), 2);
        CHECK_TEXT(sdlf_model_output_name(model, 1), "y.length");
        CHECK(!sdlf_model_output_is_length(model, 0) && sdlf_model_output_is_length(model, 1));
        for (int run = 0; run < 2; run++) {
            int64_t count = run == 0 ? 3 : 0;
            sdlf_tensor y = sdlf_tensor_view(SDLF_INT64, sdlf_shape(2, 6), places);
            CHECK_OK(test_plan_write(plan, "x", x[run]));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(sdlf_plan_read(plan, "y", places, SDLF_INT64, sizeof places));
            CHECK_OK(sdlf_plan_read(plan, "y.length", &length, SDLF_INT64, sizeof length));
            CHECK_EQUAL(length, count);
            CHECK_OK(sdlf_plan_trim(plan, "y", &y));
            CHECK(sdlf_shape_equal(y.shape, sdlf_shape(2, count)));
            static const int64_t wanted[] = {0, -1, -1, -1, 0, -2}; /* rows, then columns */
            for (int64_t i = 0; i < 2 * count; i++) CHECK_EQUAL(places[i], wanted[i]);
        }
        sdlf_tensor wrong = sdlf_tensor_view(SDLF_INT64, sdlf_shape(12), places);
        CHECK_FAILS(sdlf_plan_trim(plan, "y", &wrong), SDLF_ERROR_SHAPE, "output 'y' is int64 2x6, found int64 12");
        CHECK_FAILS(sdlf_plan_trim(plan, "z", &wrong), SDLF_ERROR_ARGUMENT, "no output 'z'");
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

/* Only elementwise readers are accepted: an operator that would read the invalid part is rejected. */
static void only_what_treats_all_alike_reads_them(void)
{
    static const struct {
        const char *type, *a, *b;
        int64_t axis;
        int y;
        bool reads;
    } cases[] = {{"Identity", "places", NULL, -1, INT64, true},   {"Transpose", "places", NULL, -1, INT64, true},
                 {"Add", "places", "places", -1, INT64, true},    {"Gather", "x", "places", 1, FLOAT, true},
                 {"Concat", "places", "places", 0, INT64, true},  {"Concat", "places", "places", 1, INT64, false},
                 {"Shape", "places", NULL, -1, INT64, false},     {"Size", "places", NULL, -1, INT64, false},
                 {"ReduceMax", "places", NULL, -1, INT64, false}, {"ArgMax", "places", NULL, 1, INT64, false},
                 {"Flatten", "places", NULL, 1, INT64, false},    {"NonZero", "places", NULL, -1, INT64, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_model *model = NULL;
        sdlf_status status = import_pair(&model, cases[i].type, cases[i].a, cases[i].b, cases[i].axis, cases[i].y);
        char wanted[80];
        snprintf(wanted, sizeof wanted, "the model's inputs make it: %s looks across", cases[i].type);
        if (cases[i].reads) {
            CHECK_OK(status);
            CHECK_EQUAL(sdlf_model_output_count(model), 2);
        } else {
            CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, wanted);
        }
        sdlf_model_free(model);
    }
}

/* In C: both are outputs, and neither is its own length. */
static void lengths_are_outputs(void)
{
    for (int wrong = 0; wrong < 4; wrong++) {
        sdlf_model *model = sdlf_model_create("lengths");
        sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
        sdlf_output(model, "y", x);
        sdlf_output(model, "n", x);
        sdlf_output_length(model, wrong == 0 ? "z" : "y", wrong == 1 ? -1 : 0,
                           wrong == 2   ? "y"
                           : wrong == 3 ? "m"
                                        : "n");
        CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "is to be as long, along axis");
        sdlf_model_free(model);
    }
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(what_counts_is_moved_together);
    RUN(only_what_treats_all_alike_reads_them);
    RUN(lengths_are_outputs);
    return test_summary();
}
