/* SPDX-License-Identifier: MIT */
/* Invalid ONNX files, built byte by byte, truncated or changed: the defect is reported, and nothing leaks. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

static void expect(const bytes *model, sdlf_status status, const char *text)
{
    const char *path = test_path("model.onnx");
    sdlf_model *made;
    sdlf_onnx_report *report;
    test_write_file(path, model->data, model->size);
    CHECK_FAILS(sdlf_model_from_onnx(&made, path, NULL), status, text);
    CHECK(made == NULL && strstr(sdlf_error_message(), "model.onnx") != NULL);
    if (sdlf_onnx_inspect(&report, path, NULL) == SDLF_OK) CHECK(report->status != SDLF_OK && report->model == NULL);
    sdlf_onnx_report_free(report);
}

/* x (1,4) -> NODES -> y, with the weight w (4) */
static bytes model_of(const bytes *nodes, int opset)
{
    bytes graph = {.size = 0}, model = {.size = 0}, weight = {.size = 0}, set = {.size = 0};
    static const float w[4] = {1, 2, 3, 4};
    bytes_append(&graph, nodes->data, nodes->size);
    bytes_number(&weight, 1, 4);
    bytes_number(&weight, 2, 1);
    bytes_text(&weight, 8, "w");
    bytes_field(&weight, 9, w, sizeof w);
    bytes_message(&graph, 5, &weight);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, 4}, 2);
    bytes_value_info(&graph, 12, "y", (const int64_t[]){1, 4}, 2);
    bytes_number(&set, 2, (uint64_t)opset);
    bytes_number(&model, 1, 8);
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    return model;
}

static void add_node(bytes *nodes, const char *type, const char *inputs, const char *output)
{
    bytes node = {.size = 0};
    char copy[100], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", inputs);
    for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
        bytes_text(&node, 1, name);
    bytes_text(&node, 2, output);
    bytes_text(&node, 4, type);
    bytes_message(nodes, 1, &node);
}

static void graphs_that_are_wrong_are_told(void)
{
    static const struct {
        const char *what, *nodes[3][3];
        int opset;
        sdlf_status status;
        const char *text;
    } cases[] = {
        {"cycle", {{"Relu", "b", "a"}, {"Relu", "a", "b"}, {"Relu", "b", "y"}}, 13, SDLF_ERROR_FORMAT, "a cycle"},
        {"own output", {{"Relu", "y", "y"}}, 13, SDLF_ERROR_FORMAT, "a cycle"},
        {"unknown input",
         {{"Relu", "nothing", "y"}},
         13,
         SDLF_ERROR_FORMAT,
         "input 0, 'nothing', is no input, weight or node's output"},
        {"made twice", {{"Relu", "x", "y"}, {"Relu", "x", "y"}}, 13, SDLF_ERROR_FORMAT, "makes 'y', which there is"},
        {"no output", {{"Relu", "x", "z"}}, 13, SDLF_ERROR_FORMAT, "no node makes the graph's output 'y'"},
        {"no such operator", {{"Frobnicate", "x", "y"}}, 13, SDLF_ERROR_UNSUPPORTED, "SDLF has no operator Frobnicate"},
        {"too old", {{"Relu", "x", "y"}}, 6, SDLF_ERROR_UNSUPPORTED, "in opset 6; opsets 7 to 28 are supported"},
        {"too old for one of them",
         {{"Softsign", "x", "z"}, {"Relu", "z", "y"}},
         6,
         SDLF_ERROR_UNSUPPORTED,
         "in opset 6; opsets 7 to 28 are supported"},
        {"too new", {{"Relu", "x", "y"}}, 99, SDLF_ERROR_UNSUPPORTED, "in opset 99"},
        {"not yet there", {{"Mish", "x", "y"}}, 13, SDLF_ERROR_UNSUPPORTED, "operator Mish from opset 18 on"},
        {"inputs missing", {{"Conv", "x", "y"}}, 13, SDLF_ERROR_FORMAT, "1 inputs; 2 to 3 were expected"},
        {"inputs too many", {{"Relu", "x x", "y"}}, 13, SDLF_ERROR_FORMAT, "2 inputs; 1 was expected"},
        {"computed weight", {{"Conv", "x x", "y"}}, 13, SDLF_ERROR_UNSUPPORTED, "must be known"},
        {"ranks", {{"Conv", "x w", "y"}}, 13, SDLF_ERROR_FORMAT, "its weight is 4 and its input 1x4"},
        {"numbers for bools", {{"Compress", "x w", "y"}}, 13, SDLF_ERROR_FORMAT, "a condition is of bools"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes nodes = {.size = 0};
        for (int n = 0; n < 3 && cases[i].nodes[n][0] != NULL; n++)
            add_node(&nodes, cases[i].nodes[n][0], cases[i].nodes[n][1], cases[i].nodes[n][2]);
        bytes model = model_of(&nodes, cases[i].opset);
        expect(&model, cases[i].status, cases[i].text);
    }
}

/* An old opset is accepted if its operators have not changed since. */
static void what_never_changed_is_read_from_any_opset(void)
{
    for (int opset = 1; opset < 7; opset++) {
        bytes nodes = {.size = 0};
        add_node(&nodes, "Softsign", "x", "z");
        add_node(&nodes, "Transpose", "z", "y");
        bytes file = model_of(&nodes, opset);
        sdlf_model *model = NULL;
        test_write_file(test_path("old.onnx"), file.data, file.size);
        CHECK_OK(sdlf_model_from_onnx(&model, test_path("old.onnx"), NULL));
        sdlf_model_free(model);
    }
}

/* A weight with these dimensions and that many bytes. */
static void expect_weight(const int64_t *dims, int rank, size_t size, const char *text)
{
    static const char zeros[64] = {0};
    bytes weight = {.size = 0}, graph = {.size = 0}, model = {.size = 0}, set = {.size = 0};
    for (int i = 0; i < rank; i++) bytes_number(&weight, 1, (uint64_t)dims[i]);
    bytes_number(&weight, 2, 1);
    bytes_text(&weight, 8, "big");
    bytes_field(&weight, 9, zeros, size);
    add_node(&graph, "Relu", "x", "y");
    bytes_message(&graph, 5, &weight);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, 4}, 2);
    bytes_value_info(&graph, 12, "y", (const int64_t[]){1, 4}, 2);
    bytes_number(&set, 2, 13);
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    expect(&model, SDLF_ERROR_FORMAT, text);
}

static void weights_that_lie_are_told(void)
{
    const int64_t huge = INT64_C(1) << 60, two[] = {2, 3}, negative[] = {4, -1};
    expect_weight(&huge, 1, 8, "more elements than can be counted");
    expect_weight((const int64_t[]){huge, huge}, 2, 8, "more elements than can be counted");
    expect_weight(two, 2, 20, "tensor 'big': its shape 2x3 of float takes 24 bytes, found 20");
    expect_weight(negative, 2, 16, "dimension 1 is -1, a negative number");
    expect_weight((const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, 4, "more than 8 dimensions");
}

static void inputs_that_lie_are_told(void)
{
    const int64_t dims[][2] = {{1, INT64_C(1) << 60}, {1, -5}};
    const char *const text[] = {
        "layer 0 'x' (input): shape (a dimension): expected 1 to 16777216, found 1152921504606846976",
        "input 'x': dimension 1 is -5"};
    for (int i = 0; i < 2; i++) {
        bytes graph = {.size = 0}, model = {.size = 0}, set = {.size = 0};
        add_node(&graph, "Relu", "x", "y");
        bytes_value_info(&graph, 11, "x", dims[i], 2);
        bytes_value_info(&graph, 12, "y", dims[i], 2);
        bytes_number(&set, 2, 13);
        bytes_message(&model, 8, &set);
        bytes_message(&model, 7, &graph);
        const char *path = test_path("model.onnx");
        sdlf_model *made;
        test_write_file(path, model.data, model.size);
        CHECK_FAILS(sdlf_model_from_onnx(&made, path, NULL), SDLF_ERROR_FORMAT,
                    text[i]); /* the file's fault, not the caller's */
    }
}

/* Forbidden locations of external data. */
static void external_data_stay_in_the_folder(void)
{
    static const struct {
        const char *location;
        sdlf_status status;
        const char *text;
    } cases[] = {
        {"/etc/passwd", SDLF_ERROR_FORMAT, "a path inside the model's folder"},
        {"../secret", SDLF_ERROR_FORMAT, "a path inside the model's folder"},
        {"a/../../secret", SDLF_ERROR_FORMAT, "a path inside the model's folder"},
        {"", SDLF_ERROR_FORMAT, "a path inside the model's folder"},
        {"absent.bin", SDLF_ERROR_IO, "there is no file"},
        {"model.onnx", SDLF_ERROR_FORMAT, "bytes 0 to 4000000 of 'model.onnx' were expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes weight = {.size = 0}, graph = {.size = 0}, model = {.size = 0}, set = {.size = 0}, entry = {.size = 0};
        bytes_number(&weight, 1, 1000000);
        bytes_number(&weight, 2, 1);
        bytes_text(&weight, 8, "w");
        bytes_text(&entry, 1, "location");
        bytes_text(&entry, 2, cases[i].location);
        bytes_message(&weight, 13, &entry);
        bytes_number(&weight, 14, 1);
        add_node(&graph, "Relu", "x", "y");
        bytes_message(&graph, 5, &weight);
        bytes_value_info(&graph, 11, "x", (const int64_t[]){1, 4}, 2);
        bytes_value_info(&graph, 12, "y", (const int64_t[]){1, 4}, 2);
        bytes_number(&set, 2, 13);
        bytes_message(&model, 8, &set);
        bytes_message(&model, 7, &graph);
        expect(&model, cases[i].status, cases[i].text);
    }
}

static size_t read_fixture(const char *name, unsigned char *data, size_t size)
{
    FILE *file = fopen(onnx_fixture(name, "model.onnx"), "rb");
    CHECK(file != NULL);
    size_t count = file != NULL ? fread(data, 1, size, file) : 0;
    if (file != NULL) fclose(file);
    return count;
}

/* Truncated anywhere: an error that names the file. */
static void cut_files_are_told(void)
{
    static unsigned char data[16384];
    size_t size = read_fixture("residual", data, sizeof data);
    const char *path = test_path("cut.onnx");
    for (size_t length = 0; length < size; length += length < 400 ? 1 : 37) {
        sdlf_model *model;
        test_write_file(path, data, length);
        CHECK(sdlf_model_from_onnx(&model, path, NULL) != SDLF_OK);
        CHECK(model == NULL && strstr(sdlf_error_message(), "cut.onnx") != NULL);
    }
}

/* One byte changed anywhere: a model or an error, and no memory leaks. */
static void changed_files_do_no_harm(void)
{
    static unsigned char data[16384];
    const char *const names[] = {"residual", "moves"};
    int64_t live = test_live_allocations();
    for (int n = 0; n < 2; n++) {
        size_t size = read_fixture(names[n], data, sizeof data);
        const char *path = test_path("changed.onnx");
        for (size_t at = 0; at < size; at += n == 0 ? 3 : 1) {
            unsigned char before = data[at];
            sdlf_onnx_report *report;
            data[at] = (unsigned char)(before ^ (1u << at % 8));
            test_write_file(path, data, size);
            (void)sdlf_onnx_inspect(&report, path, NULL);
            sdlf_onnx_report_free(report);
            data[at] = before;
        }
    }
    CHECK_EQUAL(test_live_allocations(), live);
}

static sdlf_status attempt(void *argument)
{
    sdlf_model *model;
    sdlf_status status = sdlf_model_from_onnx(&model, argument, NULL);
    sdlf_model_free(model);
    return status;
}

static void running_out_of_memory_is_survived(void)
{
    test_every_allocation("import", attempt, (void *)onnx_fixture("moves", "model.onnx"));
    test_every_allocation("import of windows over three dimensions", attempt,
                          (void *)onnx_fixture("volume", "model.onnx"));
    test_every_allocation("import of quantised weights", attempt, (void *)onnx_fixture("integers", "model.onnx"));
    test_every_allocation("import with external data", attempt, (void *)onnx_fixture("external", "model.onnx"));
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(graphs_that_are_wrong_are_told);
    RUN(what_never_changed_is_read_from_any_opset);
    RUN(weights_that_lie_are_told);
    RUN(inputs_that_lie_are_told);
    RUN(external_data_stay_in_the_folder);
    RUN(cut_files_are_told);
    RUN(changed_files_do_no_harm);
    RUN(running_out_of_memory_is_survived);
    return test_summary();
}
