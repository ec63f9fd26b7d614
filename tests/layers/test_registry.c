/* SPDX-License-Identifier: MIT */
/* The registry, and the required members of every layer class. */
#include <string.h>

#include <sdlf/layers.h>

#include "framework/input_layer.h"
#include "testing.h"

static void classes_are_found(void)
{
    int count = 0;
    for (const sdlf_layer_class *type; (type = sdlf_layer_class_at(count)) != NULL; count++)
        CHECK(sdlf_layer_class_find(type->name) == type);
    CHECK(count >= 20);
    CHECK(sdlf_layer_class_at(-1) == NULL && sdlf_layer_class_at(count + 1) == NULL);
    CHECK(sdlf_layer_class_find("conv3d") == NULL && sdlf_layer_class_find(NULL) == NULL);
    CHECK(sdlf_layer_class_find("input") == NULL); /* models make it themselves */
}

static size_t field_size(sdlf_field_type type)
{
    switch (type) {
    case SDLF_FIELD_PAIR: return 2 * sizeof(int);
    case SDLF_FIELD_FLOAT: return sizeof(float);
    case SDLF_FIELD_DOUBLE: return sizeof(double);
    case SDLF_FIELD_BOOL: return sizeof(bool);
    case SDLF_FIELD_SHAPE: return sizeof(sdlf_shape);
    default: return sizeof(int);
    }
}

static void check_class(const sdlf_layer_class *type)
{
    CHECK(type->summary != NULL && strlen(type->summary) < 80);
    CHECK(type->infer != NULL && type->fields != NULL && type->options_size >= sizeof(const char *));
    CHECK(type->maximum_inputs >= type->minimum_inputs && type->maximum_inputs <= SDLF_MAX_LAYER_INPUTS);
    CHECK((type->forward == NULL) == (type->backward == NULL) || type == &sdlf_input_layer_class);
    for (const sdlf_field *field = type->fields; field->name != NULL; field++) {
        bool number =
            field->type == SDLF_FIELD_INT || field->type == SDLF_FIELD_PAIR || field->type == SDLF_FIELD_FLOAT;
        CHECK(field->help != NULL && field->offset >= sizeof(const char *));
        CHECK(field->offset + field_size(field->type) <= type->options_size);
        CHECK(field->type != SDLF_FIELD_CHOICE || (field->choices != NULL && field->choices[0] != NULL));
        CHECK(!number || field->minimum < field->maximum);
        bool falls_back = number && field->zero_means_default; /* a shape that is left out falls back on no number */
        CHECK(!falls_back || (field->fallback >= field->minimum && field->fallback <= field->maximum));
        for (const sdlf_field *other = type->fields; other != field; other++)
            CHECK(strcmp(other->name, field->name) != 0);
    }
}

static void classes_are_complete(void)
{
    for (int index = 0; sdlf_layer_class_at(index) != NULL; index++) check_class(sdlf_layer_class_at(index));
    check_class(&sdlf_input_layer_class);
}

static void inputs_are_checked(void)
{
    sdlf_model *model = sdlf_model_create("inputs");
    sdlf_input(model, "x", SDLF_NONE, sdlf_shape(3));
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "an input needs a dtype");
    sdlf_model_free(model);
    model = sdlf_model_create("inputs");
    sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3, 0));
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_ARGUMENT, "shape (a dimension): expected 1");
    sdlf_model_free(model);
    model = sdlf_model_create("inputs");
    sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(1, 1, 1, 1, 1, 1, 1, 1));
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "at most 7 dimensions besides the batch");
    sdlf_model_free(model);
    model = sdlf_model_create("inputs");
    sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(16777216, 16777216, 16777216));
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "more elements than can be counted");
    sdlf_model_free(model);
}

int main(void)
{
    RUN(classes_are_found);
    RUN(classes_are_complete);
    RUN(inputs_are_checked);
    return test_summary();
}
