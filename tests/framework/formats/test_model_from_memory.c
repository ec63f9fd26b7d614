/* SPDX-License-Identifier: MIT */
/* Models from file contents in memory: the same as from the files, and no byte out of bounds is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static sdlf_model *make(void)
{
    sdlf_model *model = sdlf_model_create("small");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(5));
    sdlf_output(model, "y", sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = 3}));
    CHECK_OK(sdlf_model_build(model, 7));
    return model;
}

/* A file's content, in a block of exactly its size, so that sanitizers detect reads out of bounds. */
static unsigned char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!CHECK(file != NULL)) exit(1);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size);
    CHECK(bytes != NULL && fread(bytes, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

static void check_same(sdlf_model *found, sdlf_model *expected)
{
    CHECK_EQUAL(sdlf_model_parameter_count(found), sdlf_model_parameter_count(expected));
    for (int i = 0; i < sdlf_model_parameter_count(expected); i++) {
        const sdlf_tensor *a = &sdlf_model_parameter(found, i)->value, *b = &sdlf_model_parameter(expected, i)->value;
        CHECK(sdlf_tensor_bytes(a) == sdlf_tensor_bytes(b));
        CHECK(memcmp(a->data, b->data, (size_t)sdlf_tensor_bytes(b)) == 0);
    }
}

static void weights_bring_their_network(void)
{
    sdlf_model *model = make(), *again = NULL;
    const char *path = test_path("small.safetensors");
    size_t size;
    CHECK_OK(sdlf_model_save(model, path));
    unsigned char *bytes = read_all(path, &size);
    if (CHECK_OK(sdlf_model_from_memory(&again, bytes, size, "embedded", NULL))) check_same(again, model);
    sdlf_model_free(again);
    for (size_t cut = 0; cut < size; cut++) { /* every length that is too short */
        unsigned char *part = malloc(cut + 1);
        memcpy(part, bytes, cut);
        unsigned char *exact = realloc(part, cut > 0 ? cut : 1);
        CHECK(sdlf_model_from_memory(&again, exact, cut, "embedded", NULL) != SDLF_OK && again == NULL);
        free(exact);
    }
    bytes[9] ^= 1; /* in the header */
    CHECK_FAILS(sdlf_model_from_memory(&again, bytes, size, "embedded", NULL), SDLF_ERROR_FORMAT, "embedded");
    free(bytes);
    sdlf_model_free(model);
}

static void onnx_comes_from_memory(void)
{
    sdlf_model *model = make(), *again = NULL;
    const char *path = test_path("small.onnx");
    sdlf_status status = sdlf_model_to_onnx(model, path, NULL, NULL);
    if (status == SDLF_OK) {
        size_t size;
        unsigned char *bytes = read_all(path, &size);
        if (CHECK_OK(sdlf_model_from_memory(&again, bytes, size, NULL, NULL))) check_same(again, model);
        sdlf_model_free(again);
        free(bytes);
    } else {
        CHECK_EQUAL(status, SDLF_ERROR_UNSUPPORTED); /* a build without */
        CHECK_FAILS(sdlf_model_from_memory(&again, "\x08\x08", 2, "some", NULL), SDLF_ERROR_UNSUPPORTED, "some");
    }
    sdlf_model_free(model);
}

static void anything_else_is_refused(void)
{
    sdlf_model *model = NULL;
    CHECK(sdlf_model_from_memory(&model, "no model at all", 15, "letter", NULL) != SDLF_OK);
    CHECK(model == NULL && strstr(sdlf_error_message(), "letter") != NULL);
    CHECK(sdlf_model_from_memory(&model, "", 0, NULL, NULL) != SDLF_OK);
}

int main(void)
{
    RUN(weights_bring_their_network);
    RUN(onnx_comes_from_memory);
    RUN(anything_else_is_refused);
    return test_summary();
}
