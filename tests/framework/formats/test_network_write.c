/* SPDX-License-Identifier: MIT */
/* Writing networks: every layer and option reads back the same. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/field.h"

static sdlf_status parse(sdlf_model **model, const char *text)
{
    return sdlf_network_parse(model, text, strlen(text), "net.json");
}

/* Check that both are the same network: names, types, options, connections, outputs. */
static void check_same(const sdlf_model *a, const sdlf_model *b)
{
    CHECK_TEXT(sdlf_model_name(a), sdlf_model_name(b));
    if (!CHECK_EQUAL(sdlf_model_layer_count(a), sdlf_model_layer_count(b))) return;
    for (int i = 0; i < sdlf_model_layer_count(a); i++) {
        const sdlf_layer *left = sdlf_model_layer(a, i), *right = sdlf_model_layer(b, i);
        CHECK_TEXT(left->name, right->name);
        if (!CHECK(left->type == right->type)) continue;
        CHECK(sdlf_fields_difference(left->type->fields, left->options, right->options) == NULL);
        int count = sdlf_model_layer_input_count(a, i);
        if (!CHECK_EQUAL(count, sdlf_model_layer_input_count(b, i))) continue;
        for (int j = 0; j < count; j++) {
            CHECK_EQUAL(sdlf_model_layer_input(a, i, j).layer, sdlf_model_layer_input(b, i, j).layer);
            CHECK_EQUAL(sdlf_model_layer_input(a, i, j).output, sdlf_model_layer_input(b, i, j).output);
        }
    }
    if (!CHECK_EQUAL(sdlf_model_output_count(a), sdlf_model_output_count(b))) return;
    for (int i = 0; i < sdlf_model_output_count(a); i++) {
        CHECK_TEXT(sdlf_model_output_name(a, i), sdlf_model_output_name(b, i));
        CHECK_EQUAL(sdlf_model_output(a, i).layer, sdlf_model_output(b, i).layer);
    }
}

static void check_round_trip(const sdlf_model *model)
{
    char *text = NULL;
    if (!CHECK_OK(sdlf_network_write(model, &text))) return;
    sdlf_model *again = NULL;
    if (CHECK_OK(parse(&again, text)))
        check_same(model, again);
    else
        printf("%s", text);
    sdlf_model_free(again);
    free(text);
}

static void writes_one_layer_a_line(void)
{
    sdlf_model *model = sdlf_model_create("small");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = 6, .kernel = {5, 3}, .padding = {2, 2}});
    x = sdlf_leaky_relu(model, x, &(sdlf_leaky_relu_options){.slope = 0.1f});
    x = sdlf_add(model, x, x);
    sdlf_output(model, "class", sdlf_softmax(model, x));
    char *text = NULL;
    CHECK_OK(sdlf_network_write(model, &text));
    CHECK_TEXT(text,
               "{\n"
               "  \"name\": \"small\",\n"
               "  \"input\": {\"name\": \"image\", \"shape\": [1, 28, 28]},\n"
               "  \"layers\": [\n"
               "    {\"type\": \"conv2d\", \"name\": \"conv2d\", \"filters\": 6, \"kernel\": [5, 3], \"padding\": 2},\n"
               "    {\"type\": \"leaky_relu\", \"name\": \"leaky_relu\", \"slope\": 0.1},\n"
               "    {\"type\": \"add\", \"name\": \"add\", \"inputs\": [\"leaky_relu\", \"leaky_relu\"]},\n"
               "    {\"type\": \"softmax\", \"name\": \"softmax\"}\n"
               "  ],\n"
               "  \"outputs\": {\"class\": \"softmax\"}\n"
               "}\n");
    free(text);
    check_round_trip(model);
    sdlf_model_free(model);
}

/* Inputs between and after layers keep their positions, because random streams are counted by position. */
static void inputs_anywhere(void)
{
    sdlf_model *model = sdlf_model_create("\"odd\" name\n\xc3\xa9");
    sdlf_node a = sdlf_input(model, "a", SDLF_FLOAT32, sdlf_shape(10));
    sdlf_node b = sdlf_input(model, "b:1", SDLF_FLOAT64, sdlf_shape(10));
    sdlf_node x = sdlf_add(model, a, b);
    sdlf_node labels = sdlf_input(model, "labels", SDLF_INT32, SDLF_SCALAR);
    sdlf_node loss =
        sdlf_softmax_cross_entropy(model, x, labels, &(sdlf_softmax_cross_entropy_options){.smoothing = 0.05f});
    sdlf_output(model, "loss", loss);
    sdlf_output(model, "logits", x);
    check_round_trip(model);
    sdlf_model_free(model);
}

/* A layer names its input unless that is the first output of the preceding layer. */
static void branches_name_what_they_take(void)
{
    sdlf_model *model = sdlf_model_create("branches");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(10));
    sdlf_node first = sdlf_relu(model, x), second = sdlf_tanh(model, x), third = sdlf_sigmoid(model, first);
    sdlf_node largest = sdlf_top_k(model, second, &(sdlf_top_k_layer_options){.k = 3, .axis = 1});
    sdlf_node places = sdlf_cast(model, (sdlf_node){largest.layer, 1}, NULL);
    sdlf_output(model, "third", third);
    sdlf_output(model, "places", places);
    check_round_trip(model);
    sdlf_model_free(model);
}

static void no_outputs(void)
{
    sdlf_model *model = sdlf_model_create("none");
    sdlf_relu(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(10)));
    check_round_trip(model);
    sdlf_model_free(model);
}

static void default_output_is_left_out(void)
{
    sdlf_model *model = sdlf_model_create("default");
    sdlf_output(model, "output", sdlf_relu(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(10))));
    char *text = NULL;
    CHECK_OK(sdlf_network_write(model, &text));
    CHECK(text != NULL && strstr(text, "outputs") == NULL);
    free(text);
    check_round_trip(model);
    sdlf_model_free(model);
}

static void refuses_to_write(void)
{
    char *text;
    CHECK_FAILS(sdlf_network_write(NULL, &text), SDLF_ERROR_MEMORY, "");
    CHECK(text == NULL);
    sdlf_model *model = sdlf_model_create("empty");
    CHECK_FAILS(sdlf_network_write(model, &text), SDLF_ERROR_ARGUMENT, "an input first");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(10));
    CHECK_FAILS(sdlf_network_write(model, &text), SDLF_ERROR_ARGUMENT, "an input first");
    sdlf_model_add(model, sdlf_layer_class_find("softmax"), &(sdlf_softmax_options){.name = "\xff"}, &x, 1);
    CHECK_FAILS(sdlf_network_write(model, &text), SDLF_ERROR_ARGUMENT, "the name '?' does not fit");
    sdlf_model_free(model);
}

/* Set every option of a class to something that is not its default, as far as its range allows. */
static void set_odd_options(const sdlf_layer_class *type, void *options)
{
    for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
        void *member = (char *)options + field->offset;
        bool whole = field->type == SDLF_FIELD_INT || field->type == SDLF_FIELD_PAIR;
        int odd = whole ? (int)(field->minimum + (field->maximum > field->minimum ? 1 : 0)) : 0;
        if (odd == field->fallback && odd + 1 <= field->maximum) odd++;
        switch (field->type) {
        case SDLF_FIELD_INT: *(int *)member = odd; break;
        case SDLF_FIELD_PAIR: ((int *)member)[0] = odd, ((int *)member)[1] = odd + (odd + 1 <= field->maximum); break;
        case SDLF_FIELD_FLOAT:
            *(float *)member = (float)(field->minimum + (field->maximum - field->minimum) / 3);
            break;
        case SDLF_FIELD_DOUBLE: *(double *)member = field->minimum + (field->maximum - field->minimum) / 3; break;
        case SDLF_FIELD_BOOL: *(bool *)member = true; break;
        case SDLF_FIELD_CHOICE: *(int *)member = 1; break;
        case SDLF_FIELD_SHAPE: *(sdlf_shape *)member = sdlf_shape(3, 5); break;
        }
    }
}

/* Every option of every registered class survives writing and reading, by the class's own table; shapes are not
 * checked. */
static void every_option_of_every_class(void)
{
    for (int i = 0; sdlf_layer_class_at(i) != NULL; i++) {
        const sdlf_layer_class *type = sdlf_layer_class_at(i);
        sdlf_model *model = sdlf_model_create(type->name), *again = NULL;
        sdlf_node inputs[SDLF_MAX_LAYER_INPUTS];
        for (int j = 0; j < type->minimum_inputs || j < 1; j++) { /* a network has an input */
            char name[16];
            snprintf(name, sizeof name, "x%d", j);
            inputs[j] = sdlf_input(model, name, SDLF_FLOAT32, sdlf_shape(4, 9, 9));
        }
        void *options = calloc(1, type->options_size);
        if (!CHECK(options != NULL)) return;
        set_odd_options(type, options);
        sdlf_node node = sdlf_model_add(model, type, options, inputs, type->minimum_inputs);
        free(options);
        char *text = NULL;
        CHECK_OK(sdlf_network_write(model, &text));
        sdlf_status status = text != NULL ? parse(&again, text) : SDLF_ERROR_MEMORY;
        if (status == SDLF_OK)
            check_same(model, again);
        else if (!CHECK(strstr(sdlf_error_message(), "; at net.json:") != NULL)) /* it got as far as the shapes */
            printf("    %s: %s\n%s", type->name, sdlf_error_message(), text);
        for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
            char key[64];
            snprintf(key, sizeof key, "\"%s\": ", field->name);
            if (!CHECK(text != NULL && strstr(text, key) != NULL))
                printf("    %s of %s is not written\n", field->name, type->name);
        }
        CHECK(node.layer >= 0);
        free(text);
        sdlf_model_free(model);
        sdlf_model_free(again);
    }
}

/* ---- memory ---- */

static sdlf_status read_and_write(void *text)
{
    sdlf_model *model;
    sdlf_status status = parse(&model, text);
    if (status != SDLF_OK) return status;
    char *written = NULL;
    status = sdlf_network_write(model, &written);
    free(written);
    sdlf_model_free(model);
    return status;
}

static void every_allocation(void)
{
    json_set_alloc_funcs(malloc, free); /* so that the JSON library's allocations are counted and fail too */
    test_every_allocation(
        "network", read_and_write,
        (char *)"{\"inputs\": [{\"name\": \"a\", \"shape\": [1, 8, 8]}, {\"shape\": [1, 8, 8]}], \"layers\": ["
                "{\"type\": \"conv2d\", \"filters\": 2, \"kernel\": [3, 3]}, {\"type\": \"relu\"},"
                "{\"type\": \"add\", \"inputs\": [\"relu\", \"relu:0\"]}, {\"type\": \"dropout\", \"probability\": "
                "0.25}],"
                "\"outputs\": {\"one\": \"relu\"}}");
}

int main(void)
{
    RUN(writes_one_layer_a_line);
    RUN(inputs_anywhere);
    RUN(branches_name_what_they_take);
    RUN(no_outputs);
    RUN(default_output_is_left_out);
    RUN(refuses_to_write);
    RUN(every_option_of_every_class);
    RUN(every_allocation);
    return test_summary();
}
