/* SPDX-License-Identifier: MIT */
/* ONNX files that contradict themselves are rejected, since the intended meaning cannot be known. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

enum { FLOAT = 1, INT64 = 7, OPSET = 17 };

/* A declaration that is duplicated or false. */
typedef struct contradiction {
    int graphs, opset, outputs, type, attributes; /* opset: of a second import; type: of the output's elements */
} contradiction;

/* x (1,4) -> LeakyRelu -> y */
static void write_model(const char *path, const contradiction *wanted)
{
    bytes node = {.size = 0}, graph = {.size = 0}, model = {.size = 0}, set = {.size = 0}, second = {.size = 0};
    bytes_text(&node, 1, "x");
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, "LeakyRelu");
    for (int i = 0; i < wanted->attributes; i++) {
        static const unsigned char half[] = {0x15, 0, 0, 0, 0x3F}; /* field 2, 0.5f */
        bytes attribute = {.size = 0};
        bytes_text(&attribute, 1, "alpha");
        bytes_append(&attribute, half, sizeof half);
        bytes_number(&attribute, 20, 1);
        bytes_message(&node, 5, &attribute);
    }
    bytes_message(&graph, 1, &node);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, 4}, 2);
    for (int i = 0; i < wanted->outputs; i++)
        bytes_typed_info(&graph, 12, "y", wanted->type, (const int64_t[]){1, 4}, 2);
    bytes_number(&set, 2, OPSET);
    bytes_message(&model, 8, &set);
    bytes_number(&second, 2, (uint64_t)wanted->opset);
    if (wanted->opset != 0) bytes_message(&model, 8, &second);
    for (int i = 0; i < wanted->graphs; i++) bytes_message(&model, 7, &graph);
    test_write_file(path, model.data, model.size);
}

static void what_is_said_twice_is_refused(void)
{
    static const struct {
        contradiction file;
        const char *text; /* NULL: valid */
    } cases[] = {
        {{1, 0, 1, FLOAT, 1}, NULL},
        {{1, OPSET, 1, FLOAT, 1}, NULL},
        {{2, 0, 1, FLOAT, 1}, "ModelProto: a second graph"},
        {{1, 12, 1, FLOAT, 1}, "opset 12, and 17 before"},
        {{1, 0, 2, FLOAT, 1}, "output 'y' is duplicated"},
        {{1, 0, 1, INT64, 1}, "output 'y' is declared as int64, but is float32"},
        {{1, 0, 1, FLOAT, 2}, "node 0 (LeakyRelu): attribute 'alpha' is duplicated"},
    };
    const char *path = test_path("twice.onnx");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_model *model = NULL;
        write_model(path, &cases[i].file);
        if (cases[i].text == NULL)
            CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
        else {
            CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_FORMAT, cases[i].text);
            CHECK(strstr(sdlf_error_message(), "twice.onnx: ") != NULL);
        }
        sdlf_model_free(model);
    }
}

/* Each name is compared with all earlier ones. */
static void very_many_outputs_are_refused(void)
{
    enum { COUNT = 4097 };
    static unsigned char file[COUNT * 12 + 100];
    bytes start = {.size = 0}, set = {.size = 0}, inside = {.size = 0};
    size_t length = 0;
    static unsigned char graph[COUNT * 12];
    for (int i = 0; i < COUNT; i++) {
        bytes info = {.size = 0}, one = {.size = 0};
        char name[16];
        snprintf(name, sizeof name, "o%d", i);
        bytes_text(&info, 1, name);
        bytes_message(&one, 12, &info);
        memcpy(graph + length, one.data, one.size);
        length += one.size;
    }
    bytes_number(&set, 2, OPSET);
    bytes_message(&start, 8, &set);
    bytes_varint(&inside, 7 << 3 | 2);
    bytes_varint(&inside, length);
    memcpy(file, start.data, start.size);
    memcpy(file + start.size, inside.data, inside.size);
    memcpy(file + start.size + inside.size, graph, length);
    sdlf_model *model = NULL;
    test_write_file(test_path("many.onnx"), file, start.size + inside.size + length);
    CHECK_FAILS(sdlf_model_from_onnx(&model, test_path("many.onnx"), NULL), SDLF_ERROR_UNSUPPORTED,
                "more than 4096 outputs");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(what_is_said_twice_is_refused);
    RUN(very_many_outputs_are_refused);
    return test_summary();
}
