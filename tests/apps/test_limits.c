/* SPDX-License-Identifier: MIT */
/* Commands under resource limits: limits of the process are respected and reported, and cause no crash. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "onnx/fixtures.h"
#include "onnx/hostile.h"

enum { MEGA = 1 << 20 };

/* Run with that much address space. */
static const program *limited(long most, int code, const char *const *words)
{
    static program p;
    p = (program){.memory_limit = most};
    program_run(&p, words);
    if (!CHECK_EQUAL(p.code, code)) printf("%s%s", p.out, p.err);
    return &p;
}

/* The address space that the program and its libraries need: GPU kernels and NCCL take a lot of it. */
static long taken_by_program(void)
{
    long taken = 0;
    for (program p = {.code = -1}; p.code != 0 && taken < 16384L * MEGA;) {
        taken += 100L * MEGA;
        p = (program){.memory_limit = taken};
        program_run(&p, (const char *const[]){"--version", NULL});
    }
    return taken;
}

enum { SPARE = 400 * MEGA };

#define LIMITED(...) limited(least + SPARE, 1, (const char *const[]){__VA_ARGS__, NULL})

/* A GPU's driver needs more address space than available: doctor reports this and ends. */
static bool has_gpu(void)
{
    bool found = false;
    for (int i = 0; test_calculator_class_at(i) != NULL; i++)
        found = found || strcmp(test_calculator_class_at(i)->name, "cuda") == 0;
    return found;
}

static bool can_be_limited(void)
{
    if (TEST_LIMITS_MEMORY) return true;
    test_skip("the address space cannot be limited");
    return false;
}

static void doctor_tells(const char *model, long least)
{
    const program *p = LIMITED("doctor", model);
    CHECK_SAYS(p, "memory, besides 0 B of parameters: 1.88 GB on reference");
    CHECK_SAYS(p, "1.07 GB for output c25");
    CHECK_SAYS(p, "of memory is available here (its limit of address space, ulimit -v)");
    CHECK_SAYS(p, "not on reference: 2.95 GB are needed and ");
    CHECK_SAYS(p, "doubling.onnx: 2.95 GB are needed and ");
    json_t *json = json_loads(LIMITED("doctor", "--json", model)->out, 0, NULL);
    json_t *first = json_array_get(json_object_get(json, "calculators"), 0);
    CHECK(json_integer_value(json_object_get(json, "available")) <= SPARE + 100L * MEGA);
    CHECK(json_is_true(json_object_get(json, "convertible")) && json_is_false(json_object_get(first, "runs")));
    CHECK_EQUAL((int64_t)json_integer_value(json_object_get(first, "output_bytes")), INT64_C(1) << 30);
    json_decref(json);
}

/* x (1,4) becomes an output of 1 GB, through an intermediate tensor of half that size. */
static void an_output_that_does_not_fit(void)
{
    float x[4] = {1, 2, 3, 4};
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 4), x);
    hostile_graph graph = {.data = NULL};
    char model[600], input[620];
    if (!can_be_limited()) return;
    const long least = taken_by_program();
    const char *name = hostile_doubling(&graph, "x", 1, 26);
    snprintf(model, sizeof model, "%s", hostile_write(&graph, "doubling.onnx", name, 1));
    snprintf(input, sizeof input, "x=%s", test_path("x.npy"));
    CHECK_OK(sdlf_tensor_write_file(&tensor, input + 2));
    const program *p = LIMITED("run", model, "--input", input);
    CHECK_SAYS(
        p, "1.88 GB to run it, 0 B of parameters and 1.07 GB for output 'c25', its largest: 2.95 GB are needed and ");
    CHECK_SAYS(p, " are available (its limit of address space, ulimit -v); a smaller --batch needs less");
    if (!has_gpu()) doctor_tells(model, least);
    CHECK_SAYS(SDLF(0, "doctor", model), "runs on: reference"); /* nothing is allocated for it */
}

/* 6 MB of attributes that would become 700. */
static void a_file_that_becomes_large(void)
{
    hostile_graph graph = {.data = NULL};
    if (!can_be_limited()) return;
    const long least = taken_by_program();
    hostile_node(&graph, "Relu", "x", "y", 3000000);
    const char *path = hostile_write(&graph, "attributes.onnx", "y", 1);
    CHECK_SAYS(LIMITED("doctor", path), "of memory that reading a file of 6.0 MB may take, half of what is available");
    CHECK_SAYS(LIMITED("info", "--net", path), "of memory that reading a file of 6.0 MB may take");
}

/* 13 kB that would become 3.4 GB of parameters. */
static void constants_of_nothing(void)
{
    hostile_graph graph = {.data = NULL};
    char path[600];
    const char *name = hostile_zeros(&graph, 200);
    snprintf(path, sizeof path, "%s", hostile_write(&graph, "zeros.onnx", name, 4 * MEGA));
    const program *p = SDLF(1, "doctor", path);
    CHECK_SAYS(p, "its parameters: 3.4 GB, more than the 134.");
    CHECK_SAYS(p, "    200  ConstantOfShape");
    CHECK_SAYS(SDLF(1, "info", "--net", path, "--mode", "infer"), "its parameters: 3.4 GB, more than the 134.");
}

static void what_the_environment_says(void)
{
    CHECK(setenv("SDLF_MEMORY", "300M", 1) == 0);
    CHECK_SAYS(SDLF(0, "info"), "(SDLF_MEMORY), of 315 MB at most");
    CHECK_SAYS(SDLF(0, "info", "--net", "lenet5", "--batch", "1"),
               "MB of the host's memory is available (SDLF_MEMORY)");
    CHECK_SAYS(SDLF(1, "info", "--net", "lenet5", "--batch", "20000"),
               "are needed and 315 MB are available (SDLF_MEMORY)");
    CHECK_SAYS(SDLF(1, "train", "--net", "lenet5", "--data", "digits:1000000", "--epochs", "1"),
               "digits: 1000000 images: 788.0 MB of memory are needed, and ");
    CHECK_SAYS(SDLF(1, "data", "csv:/dev/zero"), "/dev/zero: the file has more than the "); /* it is endless */
    CHECK_SAYS(SDLF(1, "gcn", "infer", "--graph", "rmat:2000000000,1000000000"),
               "rmat: 1000000000 edges among 2000000000 nodes: 56.0 GB of memory are needed, and ");
    CHECK(setenv("SDLF_MEMORY", "much", 1) == 0);
    CHECK_SAYS(SDLF(2, "info"), "SDLF_MEMORY is 'much': expected bytes, or a size such as 512M or 4G");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
}

int main(void)
{
    if (onnx_available()) {
        RUN(an_output_that_does_not_fit);
        RUN(a_file_that_becomes_large);
        RUN(constants_of_nothing);
    }
    RUN(what_the_environment_says);
    return test_summary();
}
