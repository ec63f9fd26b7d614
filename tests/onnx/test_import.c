/* ONNX models: fixtures run as onnxruntime ran them, on every calculator; what is wrong with a file is told.
 *
 * fixtures/ is made by scripts/make-onnx-fixtures.py. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"

static const char *fixture(const char *name, const char *file)
{
    static char path[8][600];
    static int next;
    char *text = path[next++ % 8];
    snprintf(text, sizeof path[0], "%s/%s/%s", SDLF_FIXTURES, name, file);
    return text;
}

static bool available(void)
{
    sdlf_onnx_report *report;
    sdlf_status status = sdlf_onnx_inspect(&report, fixture("moves", "model.onnx"), NULL);
    bool absent = status == SDLF_ERROR_UNSUPPORTED && strstr(sdlf_error_message(), "protobuf-c") != NULL;
    sdlf_onnx_report_free(report);
    return !absent;
}

/* Tolerance: both compute in float32, in different orders. */
static void check_close(const sdlf_tensor *found, const sdlf_tensor *expected, sdlf_dtype dtype, const char *what)
{
    double worst = 0, largest = 0;
    int64_t count = sdlf_tensor_count(expected);
    for (int64_t i = 0; i < count; i++) {
        double value = dtype == SDLF_FLOAT64 ? ((double *)found->data)[i] : (double)((float *)found->data)[i];
        double wanted = (double)((float *)expected->data)[i];
        worst = fmax(worst, fabs(value - wanted));
        largest = fmax(largest, fabs(wanted));
    }
    if (!CHECK(worst <= 1e-5 * largest)) printf("    %s: worst %g of %g\n", what, worst, largest);
}

static const char *in_folder(const char *folder, const char *what, int number)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, number);
    return path;
}

/* The model on the inputs in `folder`, against the outputs there. */
static void run_model(const char *path, const char *folder, const char *calculator_name, sdlf_dtype dtype)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_status status =
        sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator, .dtype = dtype});
    CHECK_OK(status);
    for (int i = 0; status == SDLF_OK && i < sdlf_model_input_count(model); i++) {
        sdlf_tensor tensor;
        CHECK_OK(sdlf_tensor_read_file(&tensor, in_folder(folder, "input", i)));
        int64_t count = sdlf_tensor_count(&tensor);
        void *values = malloc((size_t)count * 8);
        sdlf_convert(dtype, values, SDLF_FLOAT32, tensor.data, count);
        CHECK_OK(sdlf_plan_write(plan, sdlf_model_layer(model, sdlf_model_input(model, i).layer)->name, values));
        free(values);
        sdlf_tensor_release(&tensor, NULL);
    }
    if (status == SDLF_OK) CHECK_OK(sdlf_plan_forward(plan));
    for (int i = 0; status == SDLF_OK && i < sdlf_model_output_count(model); i++) {
        sdlf_tensor expected;
        sdlf_binding binding;
        CHECK_OK(sdlf_tensor_read_file(&expected, in_folder(folder, "output", i)));
        CHECK_OK(sdlf_plan_output(plan, sdlf_model_output_name(model, i), &binding));
        CHECK(sdlf_shape_equal(binding.tensor.shape, expected.shape));
        sdlf_tensor found = sdlf_tensor_view(dtype, expected.shape, malloc((size_t)sdlf_tensor_count(&expected) * 8));
        CHECK(test_download(&binding, found.data));
        check_close(&found, &expected, dtype, folder);
        free(found.data);
        sdlf_tensor_release(&expected, NULL);
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

static void run_fixture(const char *name, const char *calculator_name, sdlf_dtype dtype)
{
    run_model(fixture(name, "model.onnx"), fixture(name, "."), calculator_name, dtype);
}

static const char *const fixtures[] = {"small_cnn", "residual", "moves", "rows", "external", "volume", "integers"};
enum { FIXTURE_COUNT = sizeof fixtures / sizeof fixtures[0] };

static void fixtures_run_everywhere(void)
{
    const sdlf_calculator_class *type;
    for (int c = 0; (type = test_calculator_class_at(c)) != NULL; c++)
        for (int i = 0; i < FIXTURE_COUNT; i++) {
            run_fixture(fixtures[i], type->name, SDLF_FLOAT32);
            run_fixture(fixtures[i], type->name, SDLF_FLOAT64);
        }
}

/* The ONNX zoo's MNIST network, where SDLF_DATA has it. */
static void a_published_network_runs(void)
{
    char model[600];
    const char *found = test_data("onnx/mnist-8/model.onnx");
    if (found == NULL) {
        test_skip("SDLF_DATA has no onnx/mnist-8");
        return;
    }
    snprintf(model, sizeof model, "%s", found);
    for (int i = 0; i < 3; i++) {
        char name[64], folder[600];
        snprintf(name, sizeof name, "onnx/mnist-8/test_data_set_%d", i);
        found = test_data(name);
        if (!CHECK(found != NULL)) return;
        snprintf(folder, sizeof folder, "%s", found);
        const sdlf_calculator_class *type;
        for (int c = 0; (type = test_calculator_class_at(c)) != NULL; c++)
            run_model(model, folder, type->name, SDLF_FLOAT32);
    }
}

/* An open first dimension is the plan's batch; with a batch given, it is the model's. */
static void the_batch_is_the_plans(void)
{
    sdlf_model *model;
    CHECK_OK(sdlf_model_from_onnx(&model, fixture("small_cnn", "model.onnx"), NULL));
    sdlf_calculator *calculator;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    sdlf_plan *plan;
    sdlf_binding binding;
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 7, .forward = calculator}));
    CHECK_OK(sdlf_plan_output(plan, "class", &binding));
    CHECK(sdlf_shape_equal(binding.tensor.shape, sdlf_shape(7, 10)));
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    CHECK_OK(sdlf_model_from_onnx(&model, fixture("small_cnn", "model.onnx"), &(sdlf_onnx_options){.batch = 3}));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK_OK(sdlf_plan_output(plan, "class", &binding));
    CHECK(sdlf_shape_equal(binding.tensor.shape, sdlf_shape(3, 10)));
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

/* Places of maxima are counted through the whole input, batch and all: a plan for another batch is refused. */
static void places_are_for_one_batch(void)
{
    sdlf_model *model;
    sdlf_calculator *calculator;
    sdlf_plan *plan;
    CHECK_OK(sdlf_model_from_onnx(&model, fixture("volume", "model.onnx"), NULL));
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    CHECK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .forward = calculator}) == SDLF_ERROR_SHAPE);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

/* Biases that stand in an Add of their own become the layer's, so that they are trained and fused like others. */
static void biases_are_taken_in(void)
{
    sdlf_model *model;
    CHECK_OK(sdlf_model_from_onnx(&model, fixture("small_cnn", "model.onnx"), NULL));
    CHECK_EQUAL(sdlf_model_trainable_count(model), 4 * 25 + 4 + 6 * 4 * 9 + 6 + 1500 + 10);
    for (int i = 0; i < sdlf_model_layer_count(model); i++)
        CHECK(strcmp(sdlf_model_layer(model, i)->type->name, "add") != 0);
    sdlf_model_free(model);
}

static void a_report_says_what_is_there(void)
{
    sdlf_onnx_report *report;
    CHECK_OK(sdlf_onnx_inspect(&report, fixture("residual", "model.onnx"), NULL));
    CHECK_OK(report->status);
    CHECK_EQUAL(report->opset, 13);
    CHECK_EQUAL(report->node_count, 12);
    CHECK_EQUAL(report->failed_count, 0);
    CHECK_TEXT(report->producer, "sdlf-fixtures");
    CHECK_EQUAL(report->input_count, 1);
    CHECK_EQUAL(report->output_count, 2);
    CHECK_TEXT(report->node[0].type, "Conv");
    CHECK(report->node[0].shape_known && sdlf_shape_equal(report->node[0].shape, sdlf_shape(1, 8, 8, 8)));
    CHECK(report->model != NULL && sdlf_model_parameter_count(report->model) > 0);
    sdlf_calculator *calculator;
    sdlf_memory_info memory;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    CHECK_OK(sdlf_plan_measure(&memory, report->model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    CHECK(memory.arena > 0 && memory.parameters > 0);
    CHECK(!sdlf_tensor_present(&sdlf_model_parameter(report->model, 0)->value)); /* nothing was allocated */
    sdlf_calculator_close(calculator);
    sdlf_onnx_report_free(report);
}

/* ---- files that are wrong, made byte by byte ---- */

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
        {"too old", {{"Relu", "x", "y"}}, 6, SDLF_ERROR_UNSUPPORTED, "in opset 6; opsets 7 to 22 are supported"},
        {"too new", {{"Relu", "x", "y"}}, 99, SDLF_ERROR_UNSUPPORTED, "in opset 99"},
        {"not yet there", {{"Mish", "x", "y"}}, 13, SDLF_ERROR_UNSUPPORTED, "operator Mish from opset 18 on"},
        {"inputs missing", {{"Conv", "x", "y"}}, 13, SDLF_ERROR_FORMAT, "1 inputs; 2 to 3 were expected"},
        {"computed weight", {{"Conv", "x x", "y"}}, 13, SDLF_ERROR_UNSUPPORTED, "must be known"},
        {"ranks", {{"Conv", "x w", "y"}}, 13, SDLF_ERROR_FORMAT, "its weight is 4 and its input 1x4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes nodes = {.size = 0};
        for (int n = 0; n < 3 && cases[i].nodes[n][0] != NULL; n++)
            add_node(&nodes, cases[i].nodes[n][0], cases[i].nodes[n][1], cases[i].nodes[n][2]);
        bytes model = model_of(&nodes, cases[i].opset);
        expect(&model, cases[i].status, cases[i].text);
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
    const char *const text[] = {"x", "dimension 1 is -5"};
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
        CHECK(sdlf_model_from_onnx(&made, path, NULL) != SDLF_OK);
        CHECK(strstr(sdlf_error_message(), text[i]) != NULL);
    }
}

/* Where external data may not lie. */
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
    FILE *file = fopen(fixture(name, "model.onnx"), "rb");
    CHECK(file != NULL);
    size_t count = file != NULL ? fread(data, 1, size, file) : 0;
    if (file != NULL) fclose(file);
    return count;
}

/* Cut off anywhere: an error that names the file. */
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

/* One byte changed anywhere: a model or an error, and no memory lost. */
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
    test_every_allocation("import", attempt, (void *)fixture("moves", "model.onnx"));
    test_every_allocation("import of windows over three dimensions", attempt, (void *)fixture("volume", "model.onnx"));
    test_every_allocation("import of quantised weights", attempt, (void *)fixture("integers", "model.onnx"));
    test_every_allocation("import with external data", attempt, (void *)fixture("external", "model.onnx"));
}

static void no_onnx(void)
{
    test_skip("this build reads no ONNX files");
}

int main(void)
{
    if (!available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(fixtures_run_everywhere);
    RUN(a_published_network_runs);
    RUN(the_batch_is_the_plans);
    RUN(places_are_for_one_batch);
    RUN(biases_are_taken_in);
    RUN(a_report_says_what_is_there);
    RUN(graphs_that_are_wrong_are_told);
    RUN(weights_that_lie_are_told);
    RUN(inputs_that_lie_are_told);
    RUN(external_data_stay_in_the_folder);
    RUN(cut_files_are_told);
    RUN(changed_files_do_no_harm);
    RUN(running_out_of_memory_is_survived);
    return test_summary();
}
