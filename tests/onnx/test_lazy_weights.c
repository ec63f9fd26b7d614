/* SPDX-License-Identifier: MIT */
/* What a model keeps in memory when its weights are left in the ONNX file: their locations, and computed elements that
 * are not in the file. */
#include "onnx/fixtures.h"

#include <stdio.h>
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "tests/onnx/bytes.h"

static const sdlf_onnx_options leaving = {.leave_weights = true};

enum { ROWS = 3, COLUMNS = 4 };

static void add_tensor(bytes *graph, const char *name, const int64_t *dims, int rank, const float *values, int count)
{
    bytes tensor = {.size = 0};
    for (int i = 0; i < rank; i++) bytes_number(&tensor, 1, (uint64_t)dims[i]);
    bytes_number(&tensor, 2, 1);
    bytes_text(&tensor, 8, name);
    bytes_field(&tensor, 9, values, (size_t)count * sizeof *values);
    bytes_message(graph, 5, &tensor);
}

static void add_node(bytes *graph, const char *type, const char *const *inputs, const char *output)
{
    bytes node = {.size = 0};
    for (; *inputs != NULL; inputs++) bytes_text(&node, 1, *inputs);
    bytes_text(&node, 2, output);
    bytes_text(&node, 4, type);
    bytes_message(graph, 1, &node);
}

/* y = relu(x (a b) + c) r + s: the first weight is computed from two others, the first bias and the second weight are
 * in the file; the second bias is one computed element, used for all. */
static const char *write_folded(void)
{
    static float a[ROWS * COLUMNS], r[COLUMNS * COLUMNS], b = 3, c[COLUMNS] = {0.5f, -1, 2, 0.25f},
                                                          s[COLUMNS] = {1, 2, 3, 4};
    bytes graph = {.size = 0}, set = {.size = 0}, model = {.size = 0};
    for (int i = 0; i < ROWS * COLUMNS; i++) a[i] = (float)(i % 5 - 2) / 4;
    for (int i = 0; i < COLUMNS * COLUMNS; i++) r[i] = (float)(i % 7 - 3) / 8;
    add_node(&graph, "Mul", (const char *const[]){"a", "b", NULL}, "w");
    add_node(&graph, "Mul", (const char *const[]){"s", "b", NULL}, "t");
    add_node(&graph, "Gemm", (const char *const[]){"x", "w", "c", NULL}, "h");
    add_node(&graph, "Relu", (const char *const[]){"h", NULL}, "g");
    add_node(&graph, "Gemm", (const char *const[]){"g", "r", "t", NULL}, "y");
    add_tensor(&graph, "a", (const int64_t[]){ROWS, COLUMNS}, 2, a, ROWS * COLUMNS);
    add_tensor(&graph, "b", NULL, 0, &b, 1);
    add_tensor(&graph, "c", (const int64_t[]){COLUMNS}, 1, c, COLUMNS);
    add_tensor(&graph, "r", (const int64_t[]){COLUMNS, COLUMNS}, 2, r, COLUMNS * COLUMNS);
    add_tensor(&graph, "s", (const int64_t[]){COLUMNS}, 1, s, COLUMNS);
    bytes_value_info(&graph, 11, "x", (const int64_t[]){1, ROWS}, 2);
    bytes_value_info(&graph, 12, "y", (const int64_t[]){1, COLUMNS}, 2);
    bytes_number(&set, 2, 13);
    bytes_message(&model, 8, &set);
    bytes_message(&model, 7, &graph);
    const char *path = test_path("folded.onnx");
    test_write_file(path, (const char *)model.data, model.size);
    return path;
}

static bool run(const char *path, bool leave, float *y)
{
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    const float x[ROWS] = {1, -2, 0.5f};
    bool ran = CHECK_OK(sdlf_model_from_onnx(&model, path, leave ? &leaving : NULL)) &&
               CHECK_OK(sdlf_plan_create(
                   &plan, model, &(sdlf_plan_options){.batch = 1, .forward = cpu, .consume_parameters = leave})) &&
               CHECK_OK(test_plan_write(plan, "x", x)) && CHECK_OK(sdlf_plan_forward(plan)) &&
               CHECK_OK(test_plan_read(plan, "y", y));
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(cpu);
    return ran;
}

static void what_was_worked_out_stays(void)
{
    float expected[COLUMNS], found[COLUMNS];
    const char *path = write_folded();
    if (!run(path, false, expected) || !run(path, true, found)) return;
    CHECK(memcmp(found, expected, sizeof expected) == 0);
    CHECK(found[0] != 0 && found[0] != found[1]);
}

/* y = x w, where w is an input of the graph that the caller passes as a constant, and then frees. */
static void what_the_caller_knew_stays(void)
{
    static const int sides[] = {8, 600}; /* the second: 1.44 MB */
    for (int i = 0; i < 2; i++) {
        const int side = sides[i];
        const sdlf_shape shape = sdlf_shape(side, side);
        bytes graph = {.size = 0}, set = {.size = 0}, model = {.size = 0};
        add_node(&graph, "MatMul", (const char *const[]){"x", "w", NULL}, "y");
        bytes_value_info(&graph, 11, "x", (const int64_t[]){1, side}, 2);
        bytes_value_info(&graph, 11, "w", shape.dim, 2);
        bytes_value_info(&graph, 12, "y", (const int64_t[]){1, side}, 2);
        bytes_number(&set, 2, 13);
        bytes_message(&model, 8, &set);
        bytes_message(&model, 7, &graph);
        const char *path = test_path("known.onnx");
        test_write_file(path, (const char *)model.data, model.size);
        float *w = malloc((size_t)side * (size_t)side * sizeof *w), *x = calloc((size_t)side, sizeof *x);
        float *y = calloc((size_t)side, sizeof *y);
        for (int e = 0; e < side * side; e++) w[e] = (float)(e % side + 1);
        x[0] = 1;
        sdlf_onnx_options options = leaving;
        options.known = &(sdlf_onnx_known){"w", sdlf_tensor_view(SDLF_FLOAT32, shape, w)};
        options.known_count = 1;
        sdlf_calculator *cpu = test_open("cpu");
        sdlf_model *made = NULL;
        sdlf_plan *plan = NULL;
        bool there = CHECK_OK(sdlf_model_from_onnx(&made, path, &options));
        memset(w, 0, (size_t)side * (size_t)side * sizeof *w);
        free(w);
        if (there &&
            CHECK_OK(sdlf_plan_create(&plan, made,
                                      &(sdlf_plan_options){.batch = 1, .forward = cpu, .consume_parameters = true})) &&
            CHECK_OK(test_plan_write(plan, "x", x)) && CHECK_OK(sdlf_plan_forward(plan)) &&
            CHECK_OK(test_plan_read(plan, "y", y))) {
            for (int e = 0; e < side; e++) CHECK_CLOSE(y[e], e + 1, 0);
        }
        sdlf_plan_free(plan);
        sdlf_model_free(made);
        sdlf_calculator_close(cpu);
        free(x);
        free(y);
    }
}

/* A file with so many layers that their description is far larger than their weights. */
static void what_it_says_of_the_network_goes(void)
{
    enum { LAYERS = 3000, LITTLE = 800 << 10 };
    const char *path = test_path("deep.onnx");
    sdlf_model *net = sdlf_model_create("deep"), *whole = NULL, *left = NULL;
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(4));
    for (int i = 0; i < LAYERS; i++)
        x = i % 500 ? sdlf_relu(net, x) : sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 4});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_to_onnx(net, path, NULL, NULL));
    sdlf_model_free(net);
    int64_t before = test_live_bytes();
    test_reset_peak();
    CHECK_OK(sdlf_model_from_onnx(&whole, path, NULL));
    int64_t with_weights = test_live_bytes() - before, most = test_peak_bytes() - before;
    CHECK_OK(sdlf_model_from_onnx(&left, path, &leaving));
    int64_t without = test_live_bytes() - before - with_weights;
    CHECK(most > with_weights + 2 * LITTLE); /* the file's description, while it is read */
    if (!CHECK(without < with_weights + LITTLE))
        printf("    %lld bytes, the model alone %lld\n", (long long)without, (long long)with_weights);
    sdlf_model_free(whole);
    sdlf_model_free(left);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(what_was_worked_out_stays);
    RUN(what_the_caller_knew_stays);
    RUN(what_it_says_of_the_network_goes);
    return test_summary();
}
