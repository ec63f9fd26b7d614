/* SPDX-License-Identifier: MIT */
/* Weights that are left in their ONNX file until a plan reads them: results are unchanged, and until then the model
 * reports what it cannot be used for. (Memory: test_lazy_memory.c.) */
#include "onnx/fixtures.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "framework/plan/networks.h"
#include "onnx/outside.h"
#include "onnx/products.h"

static int open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder != NULL && readdir(folder) != NULL) count++;
    if (folder != NULL) closedir(folder);
    return count;
}

/* ---- what is computed ---- */

static void write_inputs(sdlf_plan *plan, const sdlf_model *model)
{
    for (int i = 0; i < sdlf_model_input_count(model); i++) {
        const char *name = sdlf_model_layer(model, sdlf_model_input(model, i).layer)->name;
        sdlf_binding binding;
        if (!CHECK_OK(sdlf_plan_input(plan, name, &binding))) continue;
        int64_t count = sdlf_tensor_count(&binding.tensor);
        void *values = calloc(1, (size_t)sdlf_tensor_bytes(&binding.tensor) + 1);
        float *numbers = calloc((size_t)count + 1, sizeof *numbers);
        fill_random(numbers, (int)count, 3);
        if (sdlf_dtype_is_float(binding.tensor.dtype))
            sdlf_convert(binding.tensor.dtype, values, SDLF_FLOAT32, numbers, count);
        free(numbers);
        CHECK_OK(test_plan_write(plan, name, values));
        free(values);
    }
}

/* All outputs, concatenated; the caller frees them. */
static char *run(sdlf_calculator *calculator, sdlf_calculator *other, const char *path, sdlf_dtype dtype, bool leave,
                 size_t *size)
{
    sdlf_placement placement[64];
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    char *all = NULL;
    *size = 0;
    int files = open_files();
    CHECK_OK(sdlf_model_from_onnx(&model, path, leave ? &leaving : NULL));
    CHECK(open_files() > files || !leave);
    sdlf_plan_options options = {
        .batch = 1, .forward = calculator, .dtype = dtype, .consume_parameters = leave, .placement = placement};
    for (int i = 1; i < sdlf_model_layer_count(model) && i < 64 && other != NULL; i += 2)
        placement[options.placement_count++] =
            (sdlf_placement){.layer = sdlf_model_layer(model, i)->name, .forward = other};
    if (model == NULL || !CHECK_OK(sdlf_plan_create(&plan, model, &options))) return NULL;
    CHECK_EQUAL(open_files(), files);
    write_inputs(plan, model);
    for (int again = 0; again < 2; again++) {
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_load_parameters(plan));
    }
    for (int i = 0; i < sdlf_model_output_count(model); i++) {
        const char *name = sdlf_model_output_name(model, i);
        sdlf_binding binding;
        if (!CHECK_OK(sdlf_plan_output(plan, name, &binding))) continue;
        size_t bytes = (size_t)sdlf_tensor_bytes(&binding.tensor);
        all = realloc(all, *size + bytes + 1);
        CHECK_OK(test_plan_read(plan, name, all + *size));
        *size += bytes;
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    return all;
}

/* Compare results in both types, with all layers on one calculator and with every other layer on `other`. */
static void compare(sdlf_calculator *calculator, sdlf_calculator *other, const char *path)
{
    for (int i = 0; i < 4; i++) {
        sdlf_calculator *second = i % 2 ? other : NULL;
        sdlf_dtype dtype = i / 2 ? SDLF_FLOAT64 : SDLF_FLOAT32;
        size_t expected_size, found_size;
        char *expected = run(calculator, second, path, dtype, false, &expected_size);
        char *found = run(calculator, second, path, dtype, true, &found_size);
        CHECK_EQUAL((int64_t)found_size, (int64_t)expected_size);
        if (!CHECK(expected != NULL && found != NULL && found_size > 0 && memcmp(found, expected, found_size) == 0))
            printf("    %s on %s, %s%s\n", path, calculator->type->name, sdlf_dtype_name(dtype),
                   second ? ", with another" : "");
        free(expected);
        free(found);
    }
}

/* Folded normalisation, weights that are transposed or repeated, in a file beside the model, or
 * integers. */
static void results_are_the_same(void)
{
    static const char *const names[] = {"small_cnn", "residual", "rows", "volume", "integers", "external", "moves"};
    sdlf_model *net = branching_net(0);
    const char *path = test_path("branching.onnx");
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_to_onnx(net, path, NULL, NULL));
    sdlf_model_free(net);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
        if (calculator == NULL) continue;
        sdlf_calculator *other = test_open(i % 2 ? "cpu" : "reference");
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
            compare(calculator, other, onnx_fixture(names[j], "model.onnx"));
        compare(calculator, other, path);
        sdlf_calculator_close(other);
        sdlf_calculator_close(calculator);
    }
}

/* ---- what goes wrong ---- */

static void the_model_waits_for_its_plan(void)
{
    static const char *const why = "its weights have been left in their file (leave_weights)";
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_memory_info memory = {0}, planned;
    sdlf_plan_options options = {.batch = 1, .forward = reference};
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("small_cnn", "model.onnx"), &leaving));
    if (model == NULL) return;
    CHECK(sdlf_model_parameter_count(model) > 0 && sdlf_model_parameter(model, 0)->value.data == NULL);
    CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_plan_create(&plan, model, &options), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_model_save(model, test_path("left.safetensors")), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_model_to_onnx(model, test_path("left.onnx"), NULL, NULL), SDLF_ERROR_ARGUMENT, why);
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_ARGUMENT, why);
    options.consume_parameters = true;
    CHECK_OK(sdlf_plan_measure(&memory, model, &options));
    CHECK_OK(sdlf_plan_create(&plan, model, &options));
    if (plan != NULL) {
        planned = sdlf_plan_memory(plan);
        CHECK_EQUAL(planned.arena, memory.arena);
        CHECK_EQUAL(planned.parameters, memory.parameters);
    }
    CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "a plan has taken its parameters");
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(reference);
}

/* Adding a layer would make the model differ from its file. */
static void no_layer_is_added(void)
{
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("small_cnn", "model.onnx"), &leaving));
    if (model == NULL) return;
    CHECK(sdlf_relu(model, sdlf_model_output(model, 0)).layer < 0);
    CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "its weights have been left in their file");
    sdlf_model_free(model);
}

typedef enum change { CUT, REWRITTEN, REPLACED, REMOVED, CHANGES } change;

static void make_change(change what, const char *path)
{
    if (what == CUT) CHECK(truncate(path, WEIGHTS / 2) == 0);
    if (what == REWRITTEN) test_change_file(path);
    if (what == REPLACED) {
        test_write_file(test_path("other"), "another", 7);
        CHECK(rename(test_path("other"), path) == 0);
    }
    if (what == REMOVED) CHECK(unlink(path) == 0);
}

/* A plan never mixes weights of two files. One that cannot be created leaves the model unchanged; a file that is
 * replaced or removed stays available to a model that has opened it. */
static void a_file_that_changes_is_told(void)
{
    static const char *const why[CHANGES] = {[CUT] = "cannot read '", [REWRITTEN] = "it has been changed"};
    for (int i = 0; i < 2 * 2 * CHANGES; i++) {
        change what = (change)(i / 4);
        bool outside = i % 2;
        sdlf_calculator *calculator = test_open(i / 2 % 2 ? "guarded" : "cpu");
        const char *path = write_products("changed.onnx", outside);
        sdlf_model *model = NULL;
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = 1, .forward = calculator, .consume_parameters = true};
        CHECK_OK(sdlf_model_from_onnx(&model, path, &leaving));
        char weights[600];
        CHECK_EQUAL(outside_files(path, weights), outside);
        make_change(what, outside ? weights : path);
        if (why[what] == NULL) {
            CHECK_OK(sdlf_plan_create(&plan, model, &options));
        } else {
            CHECK_FAILS(sdlf_plan_create(&plan, model, &options), SDLF_ERROR_IO, why[what]);
            CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "have been left in their file");
            for (int p = 0; p < sdlf_model_parameter_count(model); p++)
                CHECK(sdlf_model_parameter(model, p)->value.data == NULL);
        }
        CHECK((plan == NULL) == (why[what] != NULL));
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

static sdlf_status attempt(void *calculator)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_model_from_onnx(&model, onnx_fixture("residual", "model.onnx"), &leaving);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&plan, model,
                                  &(sdlf_plan_options){.batch = 1, .forward = calculator, .consume_parameters = true});
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    return status;
}

static void memory_runs_out(void)
{
    for (int device = 0; device < 2; device++) {
        sdlf_calculator *calculator = test_open(device ? "guarded" : "cpu");
        test_every_allocation(device ? "weights left, on a device" : "weights left", attempt, calculator);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(results_are_the_same);
    RUN(the_model_waits_for_its_plan);
    RUN(no_layer_is_added);
    RUN(a_file_that_changes_is_told);
    RUN(memory_runs_out);
    return test_summary();
}
