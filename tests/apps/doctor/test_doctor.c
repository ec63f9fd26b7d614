/* SPDX-License-Identifier: MIT */
/* sdlf doctor: its reports on valid ONNX models and on invalid files. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "apps/fixtures.h"
#include "apps/program.h"
#include "onnx/fixtures.h"

static void doctor_says_what_is_there(void)
{
    const program *p = SDLF(0, "doctor", fixture("residual/model.onnx"));
    CHECK_SAYS(p, "opset 13, 12 nodes");
    CHECK_SAYS(p, "input   x  float 1x3x15x15\n");
    CHECK_SAYS(p, "output  mean  float 1x8x1x1");
    CHECK_SAYS(p, "BatchNormalization  1x8x8x8");
    CHECK_SAYS(p, "runs on: reference, cpu");
    p = SDLF(0, "doctor", "--json", fixture("residual/model.onnx"));
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK(json != NULL && json_is_true(json_object_get(json, "convertible")));
    CHECK_EQUAL((int64_t)json_array_size(json_object_get(json, "nodes")), 12);
    json_t *first = json_array_get(json_object_get(json, "calculators"), 0);
    CHECK(json_integer_value(json_object_get(first, "flops")) > 10000);
    json_t *last = json_array_get(json_object_get(json, "parameters"), 0);
    CHECK(json_is_true(json_object_get(last, "trained")) && json_is_array(json_object_get(last, "shape")));
    json_decref(json);
}

/* Everything that PyTorch trains, and what it does not: scales that an exporter added, running statistics. */
static void doctor_says_what_is_trained(void)
{
    const program *p = SDLF(0, "doctor", fixture("training/norms/model.onnx"));
    CHECK_SAYS(p, "trains: 14 parameters (1,186 numbers); not trained 10: ");
    CHECK_SAYS(p, " and 4 more\n");
    p = SDLF(0, "doctor", fixture("training/vit/model.onnx"));
    CHECK_SAYS(p, "trains: 20 parameters (1,197 numbers)\n");
}

/* The name of an operator is replaced by one that does not exist; then the file is truncated. */
static void doctor_says_what_is_wrong(void)
{
    static char bytes[16384];
    FILE *file = fopen(fixture("residual/model.onnx"), "rb");
    size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file != NULL) fclose(file);
    for (size_t i = 0; i + 4 < size; i++)
        if (memcmp(bytes + i, "Relu", 4) == 0) memcpy(bytes + i, "Ralu", 4);
    const char *path = test_path("broken.onnx");
    test_write_file(path, bytes, size);
    const program *p = SDLF(1, "doctor", path);
    CHECK_SAYS(p, "cannot be run:");
    CHECK_SAYS(p, "(Ralu): SDLF has no operator Ralu");
    CHECK_SAYS(p, "nodes that depend on these could not be checked");
    test_write_file(path, bytes, size / 2);
    p = SDLF(1, "doctor", path);
    CHECK_SAYS(p, "broken.onnx: byte ");
    SDLF(1, "doctor", test_path("absent.onnx"));
    static const char weights[] = "\2\0\0\0\0\0\0\0{}";
    test_write_file(path, weights, sizeof weights - 1);
    CHECK_SAYS(SDLF(1, "doctor", path), "expected an ONNX file, found safetensors; 'sdlf info --weights FILE'");
    SDLF(2, "doctor");
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(doctor_says_what_is_there);
    RUN(doctor_says_what_is_trained);
    RUN(doctor_says_what_is_wrong);
    return test_summary();
}
