/* SPDX-License-Identifier: MIT */
/* Network files: their meaning, their maximum size, and unreadable files. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/layers.h>

#include "framework/formats/network_graph.h"
#include "framework/formats/parse_network.h"
#include "framework/input_layer.h"

static void chain(void)
{
    sdlf_model *model;
    if (!CHECK_OK(parse(
            &model, "{\"name\": \"lenet\", " INPUT ", \"layers\": [\n"
                    "{\"type\": \"conv2d\", \"name\": \"c1\", \"filters\": 6, \"kernel\": [5, 3], \"padding\": 2},\n"
                    "{\"type\": \"relu\"}, {\"type\": \"relu\"},\n"
                    "{\"type\": \"fully_connected\", \"units\": 10, \"no_bias\": true, \"initializer\": \"zero\"}]}")))
        return;
    CHECK_TEXT(sdlf_model_name(model), "lenet");
    CHECK_EQUAL(sdlf_model_layer_count(model), 5);
    CHECK_EQUAL(sdlf_model_input_count(model), 1);
    const sdlf_layer *conv = sdlf_model_layer(model, 1);
    const sdlf_conv2d_options *options = conv->options;
    CHECK_TEXT(conv->name, "c1");
    CHECK_TEXT(conv->origin, "net.json:2");
    CHECK_EQUAL(options->filters, 6);
    CHECK(options->kernel[0] == 5 && options->kernel[1] == 3);
    CHECK(options->padding[0] == 2 && options->padding[1] == 2);
    CHECK(options->stride[0] == 1 && options->groups == 1 && !options->no_bias);
    CHECK_TEXT(sdlf_model_layer(model, 2)->name, "relu");
    CHECK_TEXT(sdlf_model_layer(model, 3)->name, "relu_2");
    const sdlf_fully_connected_options *fc = sdlf_model_layer(model, 4)->options;
    CHECK(fc->units == 10 && fc->no_bias && fc->initializer == SDLF_INIT_ZERO);
    for (int i = 1; i < 5; i++) CHECK_EQUAL(sdlf_model_layer_input(model, i, 0).layer, i - 1);
    CHECK_EQUAL(sdlf_model_output_count(model), 1);
    CHECK_TEXT(sdlf_model_output_name(model, 0), "output");
    CHECK_EQUAL(sdlf_model_output(model, 0).layer, 4);
    CHECK(sdlf_shape_equal(sdlf_model_node_shape(model, sdlf_model_output(model, 0)), sdlf_shape(1, 10)));
    CHECK_EQUAL(sdlf_model_parameter_count(model), 0); /* reading creates none */
    sdlf_model_free(model);
}

static void graph(void)
{
    sdlf_model *model;
    if (!CHECK_OK(parse(
            &model, "{\"inputs\": [{\"name\": \"a\", \"shape\": [4, 8, 8]}, {\"name\": \"b\", \"shape\": [4, 8, 8]},"
                    "{\"name\": \"n\", \"shape\": [], \"dtype\": \"int32\"}], \"layers\": ["
                    "{\"type\": \"relu\"},"
                    "{\"type\": \"relu\", \"name\": \"rb\", \"inputs\": [\"b\"]},"
                    "{\"type\": \"add\", \"inputs\": [\"relu\", \"rb\"]},"
                    "{\"type\": \"concat\", \"inputs\": [\"add\", \"a\", \"b:0\"], \"axis\": 2}],"
                    "\"outputs\": {\"sum\": \"add\", \"all\": \"concat\"}}")))
        return;
    CHECK_EQUAL(sdlf_model_input_count(model), 3);
    CHECK_EQUAL(sdlf_model_layer_input(model, 3, 0).layer, 0); /* the first layer takes the first input */
    CHECK_EQUAL(sdlf_model_layer_input(model, 4, 0).layer, 1);
    CHECK_EQUAL(sdlf_model_layer_input(model, 5, 1).layer, 4);
    CHECK_EQUAL(sdlf_model_layer_input_count(model, 6), 3);
    CHECK_EQUAL(sdlf_model_layer_input(model, 6, 2).layer, 1);
    CHECK_EQUAL(((const sdlf_input_options *)sdlf_model_layer(model, 2)->options)->dtype, SDLF_INT32);
    CHECK_EQUAL(((const sdlf_input_options *)sdlf_model_layer(model, 1)->options)->dtype, SDLF_FLOAT32);
    CHECK_TEXT(sdlf_model_output_name(model, 1), "all");
    CHECK_EQUAL(sdlf_model_output(model, 1).layer, 6);
    CHECK(sdlf_shape_equal(sdlf_model_node_shape(model, sdlf_model_output(model, 1)), sdlf_shape(1, 4, 24, 8)));
    sdlf_model_free(model);
}

static void chosen_names_avoid_given_ones(void)
{
    sdlf_model *model;
    if (!CHECK_OK(parse(&model, "{\"input\": {\"shape\": [3]}, \"layers\": [{\"type\": \"relu\"}, {\"type\": \"relu\"},"
                                "{\"type\": \"tanh\", \"name\": \"relu\"}, {\"type\": \"tanh\", \"name\": \"relu_3\"},"
                                "{\"type\": \"relu\"}]}")))
        return;
    CHECK_TEXT(sdlf_model_layer(model, 0)->name, "input");
    CHECK_TEXT(sdlf_model_layer(model, 1)->name, "relu_2");
    CHECK_TEXT(sdlf_model_layer(model, 2)->name, "relu_4");
    CHECK_TEXT(sdlf_model_layer(model, 5)->name, "relu_5");
    sdlf_model_free(model);
}

static void chosen_names_are_those_of_the_calls(void)
{
    sdlf_model *read = NULL, *made = sdlf_model_create("m");
    sdlf_node x = sdlf_input(made, "x", SDLF_FLOAT32, sdlf_shape(3));
    for (int i = 0; i < 3; i++) x = sdlf_relu(made, x);
    CHECK_OK(parse(&read, "{\"input\": {\"shape\": [3]}, \"layers\": [{\"type\": \"relu\"}, {\"type\": \"relu\"}, "
                          "{\"type\": \"relu\"}]}"));
    for (int i = 1; i <= 3 && read != NULL; i++)
        CHECK_TEXT(sdlf_model_layer(read, i)->name, sdlf_model_layer(made, i)->name);
    sdlf_model_free(made);
    sdlf_model_free(read);
}

/* A layer with that many outputs. */
static char *with_outputs(int count)
{
    size_t size = 200 + (size_t)count * 32, at = 0;
    char *text = malloc(size);
    if (!CHECK(text != NULL)) return NULL;
    at += (size_t)snprintf(text, size, "{" INPUT ", \"layers\": [{\"type\": \"relu\"}], \"outputs\": {");
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, size - at, "%s\"o%d\": \"relu\"", i > 0 ? ", " : "", i);
    snprintf(text + at, size - at, "}}");
    return text;
}

/* A text of `count` copies of `part` between two others. */
static char *repeat(const char *before, const char *part, size_t count, const char *after)
{
    size_t length = strlen(part), start = strlen(before);
    char *text = malloc(start + count * length + strlen(after) + 1);
    if (!CHECK(text != NULL)) return NULL;
    memcpy(text, before, start);
    for (size_t i = 0; i < count; i++) memcpy(text + start + i * length, part, length);
    memcpy(text + start + count * length, after, strlen(after) + 1);
    return text;
}

static void limits(void)
{
    sdlf_model *model;
    char *text =
        repeat("{" INPUT ", \"layers\": [", "{\"type\": \"relu\"},", NETWORK_MAX_LAYERS, "{\"type\": \"relu\"}]}");
    if (text != NULL) CHECK_FAILS(parse(&model, text), SDLF_ERROR_FORMAT, "a network has at most 30000 layers, found ");
    free(text);
    text = repeat("{" INPUT ", \"layers\": [", "{\"type\": \"relu\"},\n", NETWORK_MAX_LAYERS - 1,
                  "{\"type\": \"relu\"}]}");
    if (text != NULL && CHECK_OK(parse(&model, text))) {
        CHECK_TEXT(sdlf_model_layer(model, 10000)->name, "relu_10000");
        CHECK_TEXT(sdlf_model_layer(model, 10000)->origin, "net.json:10000");
        sdlf_model_free(model);
    }
    free(text);
    text = with_outputs(NETWORK_MAX_OUTPUTS + 1);
    if (text != NULL)
        CHECK_FAILS(parse(&model, text), SDLF_ERROR_FORMAT,
                    "net.json:1: a network has at most 4096 outputs, found 4097");
    free(text);
    text = with_outputs(NETWORK_MAX_OUTPUTS);
    if (text != NULL && CHECK_OK(parse(&model, text))) {
        CHECK_EQUAL(sdlf_model_output_count(model), NETWORK_MAX_OUTPUTS);
        sdlf_model_free(model);
    }
    free(text);
    text = repeat("{\"layers\": ", "[", 1000000, "");
    if (text != NULL)
        CHECK_FAILS(parse(&model, text), SDLF_ERROR_FORMAT,
                    "net.json:1: not JSON: lists and objects are nested more than 500 deep");
    free(text);
    text = repeat("{", " ", 17000000, "}");
    if (text != NULL) CHECK_FAILS(parse(&model, text), SDLF_ERROR_FORMAT, "more than the 16777216 bytes");
    free(text);
    text = repeat("{" INPUT ", \"layers\": [{\"type\": \"relu\", \"name\": \"", "n", 129, "\"}]}");
    if (text != NULL) CHECK_FAILS(parse(&model, text), SDLF_ERROR_FORMAT, "must have 1 to 128 bytes, found 129");
    free(text);
    text = repeat("{" INPUT ", \"layers\": [{\"type\": \"", "n", 100000, "\"}]}");
    if (text != NULL) CHECK_FAILS(parse(&model, text), SDLF_ERROR_FORMAT, "nnn...\"; 'sdlf info' lists all");
    free(text);
}

static void files(void)
{
    sdlf_model *model;
    const char *path = test_path("net.json");
    CHECK_FAILS(sdlf_network_read(&model, path), SDLF_ERROR_IO, "No such file or directory");
    CHECK_FAILS(sdlf_network_read(&model, test_path(".")), SDLF_ERROR_IO, "it is a folder");
    CHECK_FAILS(sdlf_network_read(&model, "/dev/zero"), SDLF_ERROR_FORMAT, "more than the 16777216 bytes");
    static const char good[] = LAYERS("{\"type\": \"relu\"}"), bad[] = LAYERS("{\"type\": \"rely\"}");
    test_write_file(path, good, strlen(good));
    if (CHECK_OK(sdlf_network_read(&model, path))) sdlf_model_free(model);
    static const char marked[] = "\xef\xbb\xbf" LAYERS("{\"type\": \"relu\"}");
    test_write_file(path, marked, strlen(marked));
    if (CHECK_OK(sdlf_network_read(&model, path))) sdlf_model_free(model);
    test_write_file(path, bad, strlen(bad));
    CHECK_FAILS(sdlf_network_read(&model, path), SDLF_ERROR_FORMAT, "net.json:3: unknown layer type \"rely\"");
}

int main(void)
{
    RUN(chain);
    RUN(graph);
    RUN(chosen_names_avoid_given_ones);
    RUN(chosen_names_are_those_of_the_calls);
    RUN(limits);
    RUN(files);
    return test_summary();
}
