/* SPDX-License-Identifier: MIT */
/* sdlf info and sdlf bench: figures that agree with the library's, as text and as JSON. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/fixtures.h"
#include "apps/output/copies.h"
#include "apps/program.h"

#define CALCULATOR "--calculator", "reference"

static int64_t integer(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    CHECK(json_is_integer(value));
    return json_integer_value(value);
}

static void build(void)
{
    const program *p = SDLF(0, "info");
    CHECK_SAYS(p, "sdlf " SDLF_VERSION);
    CHECK_SAYS(p, "compiler");
    CHECK_SAYS(p, "processors");
    CHECK_SAYS(p, "CUDA");
    for (int i = 0; sdlf_layer_class_at(i); i++) CHECK_SAYS(p, sdlf_layer_class_at(i)->name);
    for (int i = 0; sdlf_calculator_class_at(i); i++) CHECK_SAYS(p, sdlf_calculator_class_at(i)->name);

    p = SDLF(0, "info", "--json");
    json_t *info = json_loads(p->out, 0, NULL);
    if (!CHECK(json_is_object(info))) return;
    CHECK_TEXT(json_string_value(json_object_get(info, "version")), SDLF_VERSION);
    CHECK(integer(info, "processors") >= 1);
    CHECK(integer(info, "available") > 0 && integer(info, "available") <= integer(info, "memory"));
    CHECK(json_array_size(json_object_get(info, "calculators")) >= 1);
    CHECK(json_array_size(json_object_get(info, "schedules")) == SDLF_SCHEDULE_COUNT);
    json_decref(info);
}

/* Layers of the JSON plan add up to the steps and to the model. */
static void plan(void)
{
    const program *p = SDLF(0, "info", "--net", "lenet5", "--batch", "32", "--steps", CALCULATOR);
    CHECK_SAYS(p, "net    lenet5");
    CHECK_SAYS(p, "plan   batch 32, training");
    CHECK_SAYS(p, "32x10");
    CHECK_SAYS(p, "softmax_cross_entropy_forward");
    CHECK_SAYS(p, "parameters");
    CHECK_SAYS(p, "total");

    for (int training = 0; training < 2; training++) {
        p = SDLF(0, "info", "--net", "lenet5", "--batch", "32", "--mode", training ? "train" : "infer", "--json",
                 CALCULATOR);
        json_t *info = json_loads(p->out, 0, NULL);
        if (!CHECK(json_is_object(info))) return;
        int64_t layer_flops = 0, step_flops = 0, parameters = 0;
        size_t i;
        json_t *entry;
        json_array_foreach(json_object_get(info, "layers"), i, entry)
        {
            layer_flops += integer(entry, "forward_flops") + integer(entry, "backward_flops");
            parameters += integer(entry, "parameters");
        }
        json_array_foreach(json_object_get(info, "steps"), i, entry) step_flops += integer(entry, "flops");
        CHECK_EQUAL(layer_flops, step_flops);
        CHECK_EQUAL(parameters, integer(info, "parameters"));
        const json_t *memory = json_object_get(info, "memory");
        CHECK_EQUAL(integer(memory, "parameters"), 4 * parameters);
        CHECK(integer(memory, "arena") <= integer(memory, "arena_without_reuse"));
        CHECK((integer(memory, "states") > 0) == (training == 1));
        json_decref(info);
    }
}

static void optimizers_change_the_memory(void)
{
    CHECK_SAYS(SDLF(0, "info", "--net", "mlp", CALCULATOR, "--optimizer", "adam"), "1,881,168"); /* two states */
    CHECK_SAYS(SDLF(0, "info", "--net", "mlp", CALCULATOR), "940,584");                          /* one */
    const program *p = SDLF(0, "info", "--net", "mlp", CALCULATOR, "--momentum", "0");           /* none */
    CHECK(!strstr(p->out, "optimizer states"));
    CHECK_SAYS(SDLF(0, "info", "--help"), "--momentum X");
    CHECK_SAYS(SDLF(2, "info", "--net", "mlp", "--beta1", "0.5"), "unknown option '--beta1'"); /* changes nothing */
}

static void check_bench(const json_t *bench, bool epoch)
{
    if (!CHECK(json_is_object(bench))) return;
    const json_t *limits = json_array_get(json_object_get(bench, "limits"), 0);
    CHECK(json_number_value(json_object_get(limits, "flops_per_second")) > 1e6);
    CHECK(json_number_value(json_object_get(limits, "bytes_per_second")) > 1e6);
    double seconds = 0;
    size_t i;
    json_t *layer;
    json_array_foreach(json_object_get(bench, "layers"), i, layer)
    {
        const json_t *forward = json_object_get(layer, "forward"), *backward = json_object_get(layer, "backward");
        seconds += json_number_value(json_object_get(forward, "seconds"));
        seconds += json_number_value(json_object_get(backward, "seconds"));
    }
    CHECK(seconds > 0);
    CHECK_CLOSE(seconds, json_number_value(json_object_get(json_object_get(bench, "step"), "seconds")), 1e-6 * seconds);
    CHECK_TEXT(json_string_value(json_object_get(bench, "math")), "fp32");
    CHECK_EQUAL(integer(json_object_get(bench, "copies"), "count"), 0);
    const json_t *measured = json_object_get(bench, "epoch");
    CHECK(epoch ? json_number_value(json_object_get(measured, "seconds")) > 0 : json_is_null(measured));
}

static void bench(void)
{
    const char *net = small_network();
#define BENCH "bench", "--net", net, "--data", "digits:2000", "--copy-size", "1MB", "--repeats", "3", CALCULATOR
    const program *p = SDLF(0, BENCH);
    CHECK_SAYS(p, "limits reference: ");
    CHECK_SAYS(p, "FLOP/s in a product of");
    CHECK_SAYS(p, "epoch  ");
    CHECK_SAYS(p, "for 2,000 samples");
    CHECK_SAYS(p, "floor  ");
    CHECK(strstr(p->out, "extrapolated from") == NULL);
    CHECK_SAYS(p, "max_pool2d");
    CHECK_SAYS(SDLF(0, BENCH, "--steps", "10"), "extrapolated from 10 of 32 steps");
    CHECK_SAYS(SDLF(0, BENCH, "--mode", "infer"), "pass   ");
    CHECK_SAYS(SDLF(1, BENCH, "--copy-size", "1TB"), "available");

    json_t *json = json_loads(SDLF(0, BENCH, "--json")->out, 0, NULL);
    check_bench(json, true);
    json_decref(json);
    json = json_loads(SDLF(0, BENCH, "--json", "--mode", "infer")->out, 0, NULL);
    check_bench(json, false);
    json_decref(json);
}

/* A list of the copies, with their sum. */
static void check_copies(const json_t *copies, bool timed)
{
    int64_t bytes = 0;
    size_t i;
    json_t *copy;
    json_array_foreach(json_object_get(copies, "list"), i, copy)
    {
        bytes += integer(copy, "bytes");
        CHECK(json_is_string(json_object_get(copy, "content")) && json_is_string(json_object_get(copy, "layer")));
        CHECK(json_is_null(json_object_get(copy, "seconds")) == !timed);
    }
    CHECK(i > 3);
    CHECK_EQUAL(bytes, integer(copies, "bytes"));
    CHECK_EQUAL((int64_t)i, integer(copies, "count"));
    CHECK((json_number_value(json_object_get(copies, "seconds")) > 0) == timed);
}

/* With --time every operation has a time, without it none. */
static void steps_are_timed(void)
{
    const program *p = SDLF(0, "info", "--net", "lenet5", "--batch", "2", "--steps", "--time", CALCULATOR);
    CHECK_SAYS(p, " ms\n");
    for (int timed = 0; timed < 2; timed++) {
        p = timed ? SDLF(0, "info", "--net", "lenet5", "--batch", "2", "--json", "--time", CALCULATOR)
                  : SDLF(0, "info", "--net", "lenet5", "--batch", "2", "--json", CALCULATOR);
        json_t *info = json_loads(p->out, 0, NULL), *entry;
        size_t i;
        if (!CHECK(json_array_size(json_object_get(info, "steps")) > 5)) continue;
        json_array_foreach(json_object_get(info, "steps"), i, entry)
            CHECK((json_number_value(json_object_get(entry, "seconds")) > 0) == (timed == 1));
        json_decref(info);
    }
    SDLF(2, "info", "--time");
    static const char one_row[] =
        "{\"name\":\"one_row\",\"input\":{\"name\":\"token\",\"shape\":[3],\"dtype\":\"int32\"},"
        "\"layers\":[{\"type\":\"embedding\",\"vocabulary\":1,\"units\":4},"
        "{\"type\":\"flatten\"},{\"type\":\"fully_connected\",\"units\":2}]}";
    const char *net = test_path("one_row.json");
    test_write_file(net, one_row, strlen(one_row));
    CHECK_SAYS(SDLF(0, "info", "--net", net, "--batch", "2", "--steps", "--time", CALCULATOR), " ms\n");
}

/* --version --json: the linked libraries, with licences. */
static void libraries_are_named(void)
{
    json_t *said = json_loads(SDLF(0, "--version", "--json")->out, 0, NULL),
           *first = json_array_get(json_object_get(said, "libraries"), 0);
    CHECK_TEXT(json_string_value(json_object_get(said, "version")), SDLF_VERSION);
    CHECK_TEXT(json_string_value(json_object_get(first, "name")), "zlib");
    CHECK_TEXT(json_string_value(json_object_get(first, "licence")), "Zlib");
    CHECK(json_is_string(json_object_get(first, "version")));
    json_decref(said);
}

/* Copies between memory spaces in a plan: the network's pooling runs on a device. */
static void copies_are_listed(void)
{
    sdlf_model *net = NULL;
    sdlf_calculator *host = NULL, *device = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_network_read(&net, small_network()));
    CHECK_OK(sdlf_calculator_open(&host, "cpu", NULL));
    CHECK_OK(sdlf_calculator_open(&device, "guarded", NULL));
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = device, .backward = host}));
    json_t *copies = copies_json(plan, false);
    check_copies(copies, false);
    json_decref(copies);
    CHECK_OK(sdlf_plan_time(plan, 1));
    copies = copies_json(plan, true);
    check_copies(copies, true);
    json_decref(copies);
    char *text = NULL;
    size_t size;
    terminal out = {.file = open_memstream(&text, &size), .width = 100};
    copies_print(&out, plan, true);
    fclose(out.file);
    CHECK(strstr(text, "guarded:0 to host: output of max_pool2d") != NULL);
    CHECK(strstr(text, "host to guarded:0: fully_connected.weight") != NULL);
    CHECK(strstr(text, "copies a step") != NULL);
    free(text);
    sdlf_plan_free(plan);
    sdlf_calculator_close(device);
    sdlf_calculator_close(host);
    sdlf_model_free(net);
}

/* Every command that reads an ONNX file accepts sizes for open dimensions: here one of two, so the other is missing. */
static void open_sizes_are_given(void)
{
    char net[600];
    if (!reads_onnx()) {
        test_skip("this build reads no ONNX files");
        return;
    }
    snprintf(net, sizeof net, "%s", fixture("open/model.onnx"));
    const char *const out = test_path("out"), *const onnx = test_path("out.onnx");
    const char *const words[][6] = {{"info", "--weights", net},
                                    {"info", "--net", net},
                                    {"eval", "--weights", net, "--data", "digits:100"},
                                    {"quantize", net, "-o", onnx},
                                    {"parity", "--weights", net},
                                    {"predict", "--weights", net, "x.png"},
                                    {"report", net, "-o", out},
                                    {"serve", "--weights", net, "--port", "0"},
                                    {"train", "--net", net, "--data", "digits:100", "--no-save"},
                                    {"train", "--from", net, "--data", "digits:100", "--no-save"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *const *w = words[i];
        CHECK_SAYS(SDLF(2, w[0], "--dim", "H=7", w[1], w[2], w[3], w[4], w[5]), "'W', is open");
    }
    CHECK_SAYS(SDLF(0, "info", "--weights", net, "--dim", "H=7", "--dim", "W=5"), "64x2x7x5");
    CHECK_SAYS(SDLF(2, "info", "--net", "lenet5", "--dim", "H=7"), "'lenet5' leaves only the batch open");
}

int main(void)
{
    RUN(open_sizes_are_given);
    RUN(steps_are_timed);
    RUN(copies_are_listed);
    RUN(build);
    RUN(libraries_are_named);
    RUN(plan);
    RUN(optimizers_change_the_memory);
    RUN(bench);
    return test_summary();
}
