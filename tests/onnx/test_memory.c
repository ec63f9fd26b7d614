/* SPDX-License-Identifier: MIT */
/* The memory of an import: a weight is read once, directly to its destination, so that a model needs its weights, its
 * arena and little else; and a file that is truncated while it is read is an error. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "tests/onnx/bytes.h"
#if SDLF_TEST_ONNX
#include "framework/formats/onnx/import/import.h"
#endif

enum { SIDE = 1024, BATCH = 256, LITTLE = 700 << 10 };

/* Write a file with y = x w, w of SIDE x SIDE float32 or float64, with its elements at the very end. */
static const char *write_model(const char *name, bool wide, bool transposed)
{
    bytes node = {.size = 0}, attribute = {.size = 0}, weight = {.size = 0}, graph = {.size = 0}, model = {.size = 0};
    bytes set = {.size = 0};
    size_t size = (size_t)SIDE * SIDE * (wide ? 8 : 4);
    bytes_text(&attribute, 1, "transB");
    bytes_number(&attribute, 3, transposed);
    bytes_number(&attribute, 20, 2);
    bytes_text(&node, 1, "x");
    bytes_text(&node, 1, "w");
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, "Gemm");
    bytes_message(&node, 5, &attribute);
    bytes_message(&graph, 1, &node);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, SIDE}, 2);
    bytes_value_info(&graph, 12, "y", (const int64_t[]){1, SIDE}, 2);
    for (int i = 0; i < 2; i++) bytes_number(&weight, 1, SIDE);
    bytes_number(&weight, 2, wide ? 11 : 1);
    bytes_text(&weight, 8, "w");
    bytes_varint(&weight, 9 << 3 | 2);
    bytes_varint(&weight, size);
    bytes_varint(&graph, 5 << 3 | 2);
    bytes_varint(&graph, weight.size + size);
    bytes_append(&graph, weight.data, weight.size);
    bytes_number(&set, 2, 13);
    bytes_message(&model, 8, &set);
    bytes_varint(&model, 7 << 3 | 2);
    bytes_varint(&model, graph.size + size);
    bytes_append(&model, graph.data, graph.size);

    char *file = malloc(model.size + size);
    memcpy(file, model.data, model.size);
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        double element = (double)(i % 97) - 48;
        float narrow = (float)element;
        memcpy(file + model.size + i * (wide ? 8 : 4), wide ? (void *)&element : (void *)&narrow, wide ? 8 : 4);
    }
    const char *path = test_path(name);
    test_write_file(path, file, model.size + size);
    free(file);
    return path;
}

/* Check that the weight's elements are in the right positions. */
static void check_weight(sdlf_model *model, bool transposed)
{
    const sdlf_parameter *weight = sdlf_model_parameter(model, 0);
    const float *value = weight->value.data;
    int64_t wrong = 0;
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t j = 0; j < SIDE; j++) {
            int64_t at = transposed ? i * SIDE + j : j * SIDE + i;
            wrong += value[i * SIDE + j] != (float)(at % 97 - 48);
        }
    CHECK_EQUAL(wrong, 0);
}

static void peak_of(const char *path, bool transposed)
{
    sdlf_model *model = NULL;
    sdlf_calculator *calculator;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
    if (model != NULL) check_weight(model, transposed);
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}));
    if (plan != NULL) {
        CHECK_OK(sdlf_plan_forward(plan));
        sdlf_memory_info memory = sdlf_plan_memory(plan);
        int64_t taken = test_peak_bytes() - before;
        CHECK(memory.arena >= (int64_t)BATCH * SIDE * 2 * (int64_t)sizeof(float));
        if (!CHECK((double)taken < (double)memory.parameters + 1.2 * (double)memory.arena + LITTLE))
            printf("    %lld bytes at the peak, for %lld of parameters and %lld of arena\n", (long long)taken,
                   (long long)memory.parameters, (long long)memory.arena);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void a_weight_is_there_once(void)
{
    for (int wide = 0; wide < 2; wide++)
        for (int transposed = 0; transposed < 2; transposed++)
            peak_of(write_model("model.onnx", wide, transposed), transposed);
}

/* Inspecting a model allocates nothing for its weights, wherever they are stored. */
static void looking_takes_no_weights(void)
{
    sdlf_onnx_report *report;
    const char *path = write_model("model.onnx", false, true);
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_OK(sdlf_onnx_inspect(&report, path, NULL));
    CHECK(report->model != NULL);
    CHECK(test_peak_bytes() - before < LITTLE);
    sdlf_onnx_report_free(report);
}

#if SDLF_TEST_ONNX
/* The weight does not remain buffered with the file's content either. */
static void a_weight_does_not_stay_in_the_file(void)
{
    onnx_file file;
    sdlf_model *model;
    int pieces = 0;
    CHECK_OK(onnx_file_open(&file, write_model("model.onnx", false, true), 0));
    CHECK_OK(onnx_import_run(&model, &file, NULL, NULL, true));
    for (uint64_t i = 0; i <= (file.map.size - 1) >> 16; i++) pieces += file.map.there[i];
    CHECK_EQUAL(pieces, 1);
    sdlf_model_free(model);
    onnx_file_close(&file);
}

/* Another program truncates the file after it was opened. */
static void a_file_that_becomes_shorter_is_told(void)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        onnx_file file;
        sdlf_model *model;
        const char *path = write_model("cut.onnx", transposed, transposed);
        CHECK_OK(onnx_file_open(&file, path, 0));
        CHECK(truncate(path, 100000) == 0);
        CHECK(onnx_import_run(&model, &file, NULL, NULL, true) == SDLF_ERROR_IO);
        CHECK(model == NULL);
        CHECK(strstr(sdlf_error_message(), "cut.onnx' to its end") != NULL);
        onnx_file_close(&file);
    }
}

int main(void)
{
    RUN(a_weight_is_there_once);
    RUN(looking_takes_no_weights);
    RUN(a_weight_does_not_stay_in_the_file);
    RUN(a_file_that_becomes_shorter_is_told);
    return test_summary();
}
#else
int main(void)
{
    (void)a_weight_is_there_once;
    (void)looking_takes_no_weights;
    puts("this build reads no ONNX files");
    return 77;
}
#endif
