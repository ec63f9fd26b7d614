/* SPDX-License-Identifier: MIT */
/* Strings with a NUL byte, at which C would end them: each is rejected, wherever it occurs, and nothing is opened under
 * a truncated name. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

enum { WEIGHTS = 4 };

/* y = relu(x + w), with w in a file. Every string contains a '~' and continues after it. */
static bytes make_model(void)
{
    bytes weight = {.size = 0}, entry = {.size = 0}, node = {.size = 0}, graph = {.size = 0};
    bytes set = {.size = 0}, model = {.size = 0}, metadata = {.size = 0};
    bytes_number(&weight, 1, WEIGHTS);
    bytes_number(&weight, 2, 1);
    bytes_text(&weight, 8, "w~eight");
    bytes_text(&entry, 1, "location");
    bytes_text(&entry, 2, "weights~.bin");
    bytes_message(&weight, 13, &entry);
    bytes_number(&weight, 14, 1);
    bytes_text(&node, 1, "x~in");
    bytes_text(&node, 1, "w~eight");
    bytes_text(&node, 2, "s~um");
    bytes_text(&node, 3, "a~dding");
    bytes_text(&node, 4, "Add");
    bytes_message(&graph, 1, &node);
    node = (bytes){.size = 0};
    bytes_text(&node, 1, "s~um");
    bytes_text(&node, 2, "y~out");
    bytes_text(&node, 4, "Relu");
    bytes_message(&graph, 1, &node);
    bytes_text(&graph, 2, "g~raph");
    bytes_message(&graph, 5, &weight);
    bytes_value_info(&graph, 11, "x~in", (const int64_t[]){1, WEIGHTS}, 2);
    bytes_value_info(&graph, 12, "y~out", (const int64_t[]){1, WEIGHTS}, 2);
    bytes_number(&set, 2, 13);
    bytes_text(&metadata, 1, "k~ey");
    bytes_text(&metadata, 2, "v~alue");
    bytes_number(&model, 1, 8);
    bytes_text(&model, 2, "p~roducer");
    bytes_text(&model, 3, "v~ersion");
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    bytes_message(&model, 14, &metadata);
    return model;
}

static sdlf_status read(const bytes *model)
{
    const char *path = test_path("model.onnx");
    sdlf_model *made;
    test_write_file(path, model->data, model->size);
    sdlf_status status = sdlf_model_from_onnx(&made, path, NULL);
    sdlf_model_free(made);
    return status;
}

static void a_byte_0_is_refused(void)
{
    static const float elements[WEIGHTS] = {1, 2, 3, 4};
    bytes model = make_model();
    int texts = 0;
    test_write_file(test_path("weights"), elements, sizeof elements);
    CHECK_FAILS(read(&model), SDLF_ERROR_IO, "weights~.bin");
    test_write_file(test_path("weights~.bin"), elements, sizeof elements);
    CHECK_OK(read(&model));
    for (size_t i = 0; i < model.size; i++) {
        if (model.data[i] != '~') continue;
        model.data[i] = '\0';
        CHECK_FAILS(read(&model), SDLF_ERROR_FORMAT, "a byte 0 in a text");
        model.data[i] = '~';
        texts++;
    }
    CHECK_EQUAL(texts, 15);
}

/* Strings in attributes are bytes with an explicit length. */
static void attributes_are_read_to_their_end(void)
{
    static const char word[] = "SAME_UPPER\0!";
    bytes kernel = {.size = 0}, padding = {.size = 0}, node = {.size = 0}, graph = {.size = 0}, set = {.size = 0};
    bytes model = {.size = 0};
    bytes_text(&kernel, 1, "kernel_shape");
    bytes_number(&kernel, 8, 2);
    bytes_number(&kernel, 8, 2);
    bytes_number(&kernel, 20, 7);
    bytes_text(&padding, 1, "auto_pad");
    bytes_field(&padding, 4, word, sizeof word - 1);
    bytes_number(&padding, 20, 3);
    bytes_text(&node, 1, "x");
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, "MaxPool");
    bytes_message(&node, 5, &kernel);
    bytes_message(&node, 5, &padding);
    bytes_message(&graph, 1, &node);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, 1, 4, 4}, 4);
    bytes_value_info(&graph, 12, "y", (const int64_t[]){1, 1, 4, 4}, 4);
    bytes_number(&set, 2, 13);
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    CHECK(read(&model) != SDLF_OK);
    CHECK(strstr(sdlf_error_message(), "SAME_UPPER?!") != NULL);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(a_byte_0_is_refused);
    RUN(attributes_are_read_to_their_end);
    return test_summary();
}
