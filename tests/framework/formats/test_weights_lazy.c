/* SPDX-License-Identifier: MIT */
/* Weights that stay in a safetensors file until a plan reads them: results are unchanged, neither the host nor a device
 * holds them twice, and a file that was changed meanwhile is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "framework/formats/safetensors.h"
#include "framework/plan/networks.h"

#include "testing.h"

enum { CLASSES = 3, A = 2 * 25, B = 25 };

/* Compute all outputs of the network for one sample; false if there is no plan. */
static bool run(sdlf_calculator *calculator, const char *path, sdlf_dtype dtype, bool leave, double *y)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 1, .forward = calculator, .dtype = dtype, .consume_parameters = leave};
    CHECK_OK((leave ? sdlf_model_open_to_take : sdlf_model_open_to_run)(&model, path));
    bool made = model != NULL && CHECK_OK(sdlf_plan_create(&plan, model, &options));
    float narrow[A + B];
    double wide[A + B];
    fill_random(narrow, A + B, 5);
    for (int i = 0; i < A + B; i++) wide[i] = (double)narrow[i];
    memset(y, 0, 2 * CLASSES * sizeof *y);
    for (int again = 0; again < 2 && made; again++) {
        bool single = dtype == SDLF_FLOAT32;
        CHECK_OK(test_plan_write(plan, "a", single ? (void *)narrow : (void *)wide));
        CHECK_OK(test_plan_write(plan, "b", single ? (void *)(narrow + A) : (void *)(wide + A)));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_load_parameters(plan));
    }
    if (made) CHECK_OK(test_plan_read(plan, "class", y));
    if (made) CHECK_OK(test_plan_read(plan, "side", y + CLASSES));
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    return made;
}

static void results_are_the_same(void)
{
    const char *path = test_path("branching.safetensors");
    sdlf_model *net = branching_net(0);
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_save(net, path));
    sdlf_model_free(net);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
        if (calculator == NULL) continue;
        for (int wide = 0; wide < 2; wide++) {
            double found[2 * CLASSES], expected[2 * CLASSES];
            bool both = run(calculator, path, wide ? SDLF_FLOAT64 : SDLF_FLOAT32, false, expected) &&
                        run(calculator, path, wide ? SDLF_FLOAT64 : SDLF_FLOAT32, true, found);
            CHECK(both && memcmp(found, expected, sizeof found) == 0);
        }
        sdlf_calculator_close(calculator);
    }
}

/* ---- parts of a tensor ---- */

static void parts_are_read(void)
{
    enum { COUNT = 40000 };
    static float values[COUNT], found[COUNT];
    const char *path = test_path("halves.safetensors");
    static uint16_t halves[COUNT];
    fill_random(values, COUNT, 9);
    sdlf_convert(SDLF_FLOAT16, halves, SDLF_FLOAT32, values, COUNT);
    sdlf_convert(SDLF_FLOAT32, values, SDLF_FLOAT16, halves, COUNT);
    safetensors_item item = {.name = "h", .tensor = sdlf_tensor_view(SDLF_FLOAT16, sdlf_shape(COUNT), halves)};
    CHECK_OK(safetensors_write(path, &item, 1, NULL));
    safetensors_file file;
    if (!CHECK_OK(safetensors_open(&file, path))) return;
    static const int first[] = {0, 1, 17, COUNT - 1, 5, COUNT}, count[] = {COUNT, 3, 20000, 1, 0, 0};
    for (int i = 0; i < 6; i++) {
        memset(found, 0, sizeof found);
        CHECK_OK(safetensors_read_part(&file, &file.header.entries[0], (uint64_t)first[i], (uint64_t)count[i], found));
        CHECK(memcmp(found, values + first[i], (size_t)count[i] * sizeof *found) == 0);
        CHECK(count[i] == COUNT || found[count[i]] == 0);
    }
    safetensors_close(&file);
}

/* ---- memory ---- */

enum { SIDE = 1024, LAYERS = 4, WEIGHTS = LAYERS * SIDE * SIDE * (int)sizeof(float) };

static const char *write_products(void)
{
    const char *path = test_path("products.safetensors");
    sdlf_model *net = sdlf_model_create("products");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(SIDE));
    for (int i = 0; i < LAYERS; i++) x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = SIDE});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_save(net, path));
    sdlf_model_free(net);
    return path;
}

static void weights_of_a_device_leave_the_host(void)
{
    enum { LITTLE = 3 << 20 };
    const char *path = write_products();
    sdlf_calculator *guarded = test_open("guarded");
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_OK(sdlf_model_open_to_take(&model, path));
    CHECK_OK(sdlf_plan_create(&plan, model,
                              &(sdlf_plan_options){.batch = 1, .forward = guarded, .consume_parameters = true}));
    if (!CHECK(test_peak_bytes() - before < LITTLE)) printf("    %lld\n", (long long)(test_peak_bytes() - before));
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(guarded);
}

/* ---- what goes wrong ---- */

static void what_cannot_be_opened_is_told(void)
{
    const char *path = test_path("bad.safetensors");
    sdlf_model *model = NULL, *net = small_cnn();
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_save(net, path));
    sdlf_model_free(net);
    CHECK_OK(sdlf_model_open_to_take(&model, path));
    CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "have been left in their file");
    CHECK_FAILS(sdlf_model_save(model, test_path("again.safetensors")), SDLF_ERROR_ARGUMENT, "left in their file");
    sdlf_model_free(model); /* with its file */
    CHECK_FAILS(sdlf_model_open_to_take(&model, test_path("none")), SDLF_ERROR_IO, "none");
    CHECK(model == NULL);
    CHECK(truncate(path, 600) == 0);
    CHECK_FAILS(sdlf_model_open_to_take(&model, path), SDLF_ERROR_FORMAT, "bad.safetensors");
    float number = 1;
    safetensors_item item = {.name = "h", .tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), &number)};
    CHECK_OK(safetensors_write(path, &item, 1, NULL));
    CHECK_FAILS(sdlf_model_open_to_take(&model, path), SDLF_ERROR_FORMAT, "does not describe its network");
    CHECK(model == NULL);
}

/* Overwritten in place with the same number of bytes, immediately: such a change gets the time of the next tick. */
static void rewrite(const char *path)
{
    FILE *file = fopen(path, "r+b");
    if (!CHECK(file != NULL)) return;
    CHECK(fseek(file, -4, SEEK_END) == 0 && fputc('x', file) == 'x');
    CHECK(fclose(file) == 0);
}

static void a_file_that_changes_is_told(void)
{
    for (int device = 0; device < 2; device++) {
        for (int change = 0; change < 4; change++) {
            const char *path = write_products();
            sdlf_calculator *calculator = test_open(device ? "guarded" : "cpu");
            sdlf_model *model = NULL;
            sdlf_plan *plan = NULL;
            sdlf_plan_options options = {.batch = 1, .forward = calculator, .consume_parameters = true};
            CHECK_OK(sdlf_model_open_to_take(&model, path));
            if (change == 0) rewrite(path);
            if (change == 1) CHECK(truncate(path, WEIGHTS / 2) == 0);
            if (change == 2) CHECK(unlink(path) == 0);
            if (change == 3) CHECK(rename(path, test_path("elsewhere")) == 0);
            if (change < 2) {
                CHECK_FAILS(sdlf_plan_create(&plan, model, &options), SDLF_ERROR_IO,
                            "it has been changed since it was opened");
                CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "have been left in their file");
            } else {
                CHECK_OK(sdlf_plan_create(&plan, model, &options));
            }
            sdlf_plan_free(plan);
            sdlf_model_free(model);
            sdlf_calculator_close(calculator);
        }
    }
}

static sdlf_status attempt(void *calculator)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_model_open_to_take(&model, test_path("branching.safetensors"));
    if (status == SDLF_OK)
        status = sdlf_plan_create(&plan, model,
                                  &(sdlf_plan_options){.batch = 1, .forward = calculator, .consume_parameters = true});
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    return status;
}

static void memory_runs_out(void)
{
    sdlf_calculator *cpu = test_open("cpu");
    test_every_allocation("weights left in a safetensors file", attempt, cpu);
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(results_are_the_same);
    RUN(parts_are_read);
    RUN(weights_of_a_device_leave_the_host);
    RUN(what_cannot_be_opened_is_told);
    RUN(a_file_that_changes_is_told);
    RUN(memory_runs_out);
    return test_summary();
}
