/* SPDX-License-Identifier: MIT */
/* Rejected network files and their messages: the line, what was expected and what was found. */
#include "testing.h"

#include <stdio.h>

#include "framework/formats/parse_network.h"

typedef struct bad_file {
    const char *text;
    const char *message;
} bad_file;

static void refuse(const bad_file *files, size_t count, sdlf_status status)
{
    for (size_t i = 0; i < count; i++) {
        sdlf_model *model;
        if (!CHECK_FAILS(parse(&model, files[i].text), status, files[i].message)) printf("    %s\n", files[i].text);
        CHECK(model == NULL);
    }
}
#define REFUSE(files, status) refuse(files, sizeof files / sizeof files[0], status)

static void bad_syntax(void)
{
    static const bad_file files[] = {
        {"", "net.json:1: not JSON: expected a value, found the end (column 1)"},
        {"{\n\"name\": \"x\",\n\"layers\" [\n", "net.json:3: not JSON: expected ':', found '[' (column 10)"},
        {"{\n} x", "net.json:2: not JSON: expected the end, found 'x' (column 3)"},
        {"{\"name\": \"a\",\n\"name\": \"b\"}", "net.json:2: not JSON: the key 'name' occurs twice in an object"},
        {"\n[]", "net.json:2: a network must be an object, found []"},
        {"{\"name\": \"\xff\"}", "not JSON: a string is not UTF-8 (column 10)"},
    };
    REFUSE(files, SDLF_ERROR_FORMAT);
}

static void bad_top_level(void)
{
    static const bad_file files[] = {
        {"{}", "net.json:1: 'input' is missing"},
        {"{" INPUT "}", "'layers' is missing"},
        {"{" INPUT ",\n\"layer\": []}",
         "net.json:2: unknown field 'layer'; a network has name, input or inputs, layers, outputs"},
        {"{" INPUT ",\n\"layers\": []}", "net.json:2: 'layers' must be a list of at least one layer, found none"},
        {"{" INPUT ",\n\"layers\": {}}", "net.json:2: 'layers' must be a list of at least one layer, found an object"},
        {"{" INPUT ",\n\"inputs\": []}", "net.json:1: there must be 'input' or 'inputs', not both"},
        {"{\"inputs\": [], \"layers\": [{}]}", "'inputs' must be a list of at least one input, found none"},
        {"{\"inputs\": {}, \"layers\": [{}]}", "'inputs' must be a list of at least one input, found an object"},
        {"{\"input\": 7, \"layers\": [{}]}", "an input must be an object, found 7"},
        {"{\"name\": 7, " INPUT "}", "the name of a network must be a string, found 7"},
        {"{\"name\": \"\", " INPUT "}", "the name of a network must have 1 to 128 bytes, found 0"},
        {"{\"input\": {}, \"layers\": [{}]}",
         "input 'input': 'shape' is missing; it must be a list of at most 7 integers"},
        {"{\"input\": {\"shape\": [0]}, \"layers\": [{}]}",
         "input 'input': 'shape' must be a list of at most 7 integers from 1 to 16777216, found [0]"},
        {"{\"input\": {\"shape\": [1,1,1,1,1,1,1,1]}, \"layers\": [{}]}", "at most 7 integers"},
        {"{\"input\": {\"shape\": [1],\n\"dtype\": \"float\"}, \"layers\": [{}]}",
         "net.json:2: input 'input': 'dtype' must be one of none, float32, "},
        {"{\"input\": {\"shape\": [1],\n\"type\": \"float\"}, \"layers\": [{}]}",
         "net.json:2: input 'input': unknown field 'type' (did you mean 'dtype'?); it has name, dtype, shape"},
        {LAYERS("{\"type\": \"relu\"}],\"outputs\": [1"),
         "net.json:3: 'outputs' must be an object such as {\"class\": \"softmax\"}, found [1]"},
        {LAYERS("{\"type\": \"relu\"}],\n\"outputs\": {\"a\": \"softmax\"},\"name\":\"x\"}"), "not JSON"},
        {"{" INPUT ",\"layers\": [{\"type\": \"relu\"}],\n\"outputs\": {\"a\":\n\"softmax\"}}",
         "net.json:2: output 'a': unknown layer or input 'softmax'; before it are image, relu"},
        {"{" INPUT ",\"layers\": [{\"type\": \"relu\"}],\"outputs\": {\"\": \"relu\"}}",
         "output '': a name has 1 to 128 bytes"},
        {"{" INPUT ",\"layers\": [{\"type\": \"relu\"}],\"outputs\": {\"a\": 1}}",
         "output 'a': expected the name of a layer or an input, found 1"},
    };
    REFUSE(files, SDLF_ERROR_FORMAT);
}

static void bad_layers(void)
{
    static const bad_file files[] = {
        {LAYERS("7"), "net.json:3: a layer must be an object, found 7"},
        {LAYERS("{}"), "net.json:3: a layer's 'type' is missing"},
        {LAYERS("{\"type\": 7}"), "net.json:3: unknown layer type 7; 'sdlf info' lists all "},
        {LAYERS("{\"name\": \"c1\",\n\"type\": \"convolution\"}"),
         "net.json:4: unknown layer type \"convolution\" (did you mean 'conv2d'?); 'sdlf info' lists all "},
        {LAYERS("{\"type\": \"relu\"},\n{\"type\": \"relu\", \"name\": 7}"),
         "net.json:4: the name of a layer must be a string, found 7"},
        {LAYERS("{\"type\": \"relu\", \"name\": \"a\"},\n{\"type\": \"relu\",\n\"name\": \"a\"}"),
         "net.json:5: the name \"a\" is taken already, at line 3"},
        {LAYERS("{\"type\": \"relu\", \"name\": \"image\"}"),
         "net.json:3: the name \"image\" is taken already, at line 1"},
        {LAYERS("{\"type\": \"relu\",\n\"inputs\": \"image\"}"),
         "net.json:4: layer 'relu' (relu): 'inputs' must be a list of names, found \"image\""},
        {LAYERS("{\"type\": \"relu\",\n\"inputs\": [\n7]}"),
         "net.json:5: layer 'relu' (relu): expected the name of a layer or an input, found 7"},
        {LAYERS("{\"type\": \"relu\",\n\"inputs\": [\n\"imag\"]}"),
         "net.json:5: layer 'relu' (relu): unknown layer or input 'imag' (did you mean 'image'?); before it are image"},
        {LAYERS("{\"type\": \"relu\", \"inputs\": [\"image:7\"]}"), "unknown layer or input 'image:7'"},
        {LAYERS("{\"type\": \"relu\", \"inputs\": [\"image\", \"image\"]}"),
         "layer 'relu' (relu): it takes 1 inputs, found 2"},
        {LAYERS("{\"type\": \"relu\", \"inputs\": []}"), "it takes 1 inputs, found 0"},
        {LAYERS("{\"type\": \"add\"}"), "inputs, found 1; name them, such as \"inputs\": [\"a\", \"b\"]"},
        {LAYERS("{\"type\": \"relu\", \"name\": \"a\",\n\"inputs\": [\"a\"]}"),
         "net.json:4: layer 'a' (relu): it reads its own output; a network has no cycles"},
        {LAYERS("{\"type\": \"add\", \"name\": \"a\", \"inputs\": [\"image\", \"b\"]},\n{\"type\": \"relu\", \"name\": "
                "\"b\", \"inputs\": [\"a\"]}"),
         "net.json:3: layer 'a' (add): 'b' comes later, at line 4; a layer reads only what comes before it, so there "
         "are no cycles"},
        {LAYERS("{\"type\": \"input\", \"shape\": [1], \"inputs\": [\"image\"]}"),
         "layer 'input' (input): it takes 0 inputs, found 1"},
    };
    REFUSE(files, SDLF_ERROR_FORMAT);
}

#define CONV(fields) LAYERS("{\"type\": \"conv2d\", \"name\": \"c1\",\n" fields "}")

static void bad_options(void)
{
    static const bad_file files[] = {
        {CONV("\"filters\": 6, \"kernal\": 5"),
         "net.json:4: layer 'c1' (conv2d): unknown field 'kernal' (did you mean 'kernel'?); it has type, "
         "name, inputs, frozen, filters, kernel, stride, "},
        {CONV("\"filters\": 6"),
         "net.json:3: layer 'c1' (conv2d): 'kernel' is missing; it must be an integer from 1 to 65535, or two of them"},
        {CONV("\"kernel\": 6"),
         "net.json:3: layer 'c1' (conv2d): 'filters' is missing; it must be an integer from 1 to 16777216"},
        {CONV("\"filters\": \"six\", \"kernel\": 5"), "'filters' must be an integer from 1 to 16777216, found \"six\""},
        {CONV("\"filters\": 6.5, \"kernel\": 5"), "'filters' must be an integer from 1 to 16777216, found 6.5"},
        {CONV("\"filters\": 0, \"kernel\": 5"), "'filters' must be an integer from 1 to 16777216, found 0"},
        {CONV("\"filters\": -1, \"kernel\": 5"), "found -1"},
        {CONV("\"filters\": 9223372036854775807, \"kernel\": 5"), "found 9223372036854775807"},
        {CONV("\"filters\": 1, \"kernel\": [5]"),
         "'kernel' must be an integer from 1 to 65535, or two of them: [vertical, horizontal], found [5]"},
        {CONV("\"filters\": 1, \"kernel\": [5, 5, 5]"), "found [5, 5, 5]"},
        {CONV("\"filters\": 1, \"kernel\": [5, true]"), "found [5, true]"},
        {CONV("\"filters\": 1, \"kernel\": [\"a long list of things that are written out in no message, as it would be "
              "unreadable\"]"),
         "found a list"},
        {CONV("\"filters\": 1, \"kernel\": {}"), "found an object"},
        {CONV("\"filters\": 1, \"kernel\": 5,\n\"stride\": 0"),
         "net.json:5: layer 'c1' (conv2d): 'stride' must be an integer from 1 to 65535"},
        {CONV("\"filters\": 1, \"kernel\": 5, \"padding\": -1"), "'padding' must be an integer from 0 to 65535"},
        {CONV("\"filters\": 1, \"kernel\": 5, \"no_bias\": 1"), "'no_bias' must be true or false, found 1"},
        {CONV("\"filters\": 1, \"kernel\": 5, \"initializer\": \"he\""),
         "'initializer' must be one of default, zero, one, he_uniform, "},
        {CONV("\"filters\": 1, \"kernel\": 5, \"initializer\": null"), "found null"},
        {LAYERS("{\"type\": \"dropout\", \"probability\": 1}"),
         "'probability' must be a number from 0 to 0.999999, found 1"},
        {LAYERS("{\"type\": \"dropout\", \"probability\": \"0.5\"}"),
         "'probability' must be a number from 0 to 0.999999, found \"0.5\""},
        {LAYERS("{\"type\": \"leaky_relu\", \"slope\": 0}"),
         "'slope' must be a number from 0 to 1000000, but not 0, found 0"},
        {LAYERS("{\"type\": \"leaky_relu\", \"slope\": 1e-99}"), "but not 0, found 1e-99"},
        {LAYERS("{\"type\": \"reshape\"}"), "'shape' is missing"},
        {LAYERS("{\"type\": \"reshape\", \"shape\": 784}"),
         "'shape' must be a list of at most 7 integers from -1 to 16777216, found 784"},
        {LAYERS("{\"type\": \"reshape\", \"shape\": [1e3]}"), "found [1000.0]"},
        {LAYERS("{\"type\": \"relu\", \"units\": 1}"), "unknown field 'units'; it has type, name, inputs"},
        {LAYERS("{\"type\": \"clip\", \"low\": 2}"),
         "expected low < high, found low 2 and high 0; from input 'image'; at net.json:3"},
    };
    REFUSE(files, SDLF_ERROR_FORMAT);
}

static void impossible_shapes(void)
{
    static const bad_file files[] = {
        {LAYERS("{\"type\": \"conv2d\", \"name\": \"c2\", \"filters\": 1, \"kernel\": 24},\n"
                "{\"type\": \"max_pool2d\", \"window\": 7}"),
         "layer 2 'max_pool2d' (max_pool2d): window 7x7 is larger than its input 5x5 (plus padding 0); from conv2d "
         "'c2'; at net.json:4"},
        {LAYERS("{\"type\": \"conv2d\", \"filters\": 1, \"kernel\": 3, \"groups\": 2}"), "at net.json:3"},
        {LAYERS("{\"type\": \"flatten\"},\n{\"type\": \"add\", \"inputs\": [\"image\", \"flatten\"]}"),
         "at net.json:4"},
        {LAYERS("{\"type\": \"reshape\", \"shape\": [5, -1]}"), "does not hold the 784 elements"},
        {LAYERS("{\"type\": \"softmax\", \"axis\": 7}"), "at net.json:3"},
    };
    REFUSE(files, SDLF_ERROR_SHAPE);
    static const bad_file outputs[] = {
        {"{" INPUT ", \"layers\": [{\"type\": \"relu\"}], \"outputs\": {\"a\": \"relu:1\"}}",
         "output 'a' is output 1 of layer 'relu', which has 1"},
        {LAYERS("{\"type\": \"relu\", \"inputs\": [\"image:2\"]}"), "input 0 is output 2 of 'image', which has 1"},
    };
    REFUSE(outputs, SDLF_ERROR_ARGUMENT);
}

static void absurd_sizes(void)
{
    static const bad_file files[] = {
        {"{\"input\": {\"shape\": [16777216]}, \"layers\": [\n{\"type\": \"fully_connected\", \"units\": 16777216}]}",
         "model: the parameters up to layer 'fully_connected' (fully_connected) take 1.126e+06 GB, and "},
    };
    REFUSE(files, SDLF_ERROR_MEMORY);
    static const bad_file shapes[] = {
        {"{\"input\": {\"shape\": [16777216,16777216,16777216]}, \"layers\": [{\"type\": \"relu\"}]}", "at net.json:1"},
        {"{\"input\": {\"shape\": [1048576,1048576,1048576]}, \"layers\": [{\"type\": \"fully_connected\", \"units\": "
         "16777216}]}",
         "at net.json:1"},
    };
    REFUSE(shapes, SDLF_ERROR_SHAPE);
}

int main(void)
{
    RUN(bad_syntax);
    RUN(bad_top_level);
    RUN(bad_layers);
    RUN(bad_options);
    RUN(impossible_shapes);
    RUN(absurd_sizes);
    return test_summary();
}
