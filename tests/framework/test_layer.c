/* SPDX-License-Identifier: MIT */
/* The signatures that a layer's `infer` may return, and those that are rejected. */
#include "testing.h"

#include <sdlf/layer.h>

static const sdlf_parameter_spec weight = {.name = "weight", .shape = {.rank = 1, .dim = {3}}};

static void what_is_added_stands_in_its_order(void)
{
    sdlf_signature signature = {.batch = 2, .dtype = SDLF_FLOAT32};
    CHECK_OK(sdlf_signature_add_output(&signature, SDLF_FLOAT32, sdlf_shape(2, 3)));
    CHECK_OK(sdlf_signature_add_output(&signature, SDLF_INT64, sdlf_shape(2)));
    CHECK_OK(sdlf_signature_add_parameter(&signature, weight));
    CHECK_OK(sdlf_signature_add_saved(&signature, SDLF_UINT8, sdlf_shape(5)));
    CHECK_EQUAL(signature.output_count, 2);
    CHECK_EQUAL(signature.output_dtype[1], SDLF_INT64);
    CHECK(sdlf_shape_equal(signature.output_shape[0], sdlf_shape(2, 3)));
    CHECK_EQUAL(signature.parameter_count, 1);
    CHECK_TEXT(signature.parameter[0].name, "weight");
    CHECK_EQUAL(signature.saved_count, 1);
    CHECK_EQUAL(signature.saved_dtype[0], SDLF_UINT8);
}

static void shapes_without_elements_and_with_too_many_are_refused(void)
{
    sdlf_signature signature = {.batch = 1};
    CHECK_FAILS(sdlf_signature_add_output(&signature, SDLF_FLOAT32, sdlf_shape(4, 0)), SDLF_ERROR_SHAPE,
                "its output would have the shape 4x0");
    CHECK_FAILS(sdlf_signature_add_saved(&signature, SDLF_FLOAT32, sdlf_shape(INT64_MAX / 4)), SDLF_ERROR_SHAPE,
                "more elements than can be counted");
    CHECK_FAILS(sdlf_signature_add_output(&signature, SDLF_NONE, sdlf_shape(4)), SDLF_ERROR_ARGUMENT,
                "no element type");
    CHECK_EQUAL(signature.output_count + signature.saved_count, 0);
}

static void no_more_than_there_is_room_for(void)
{
    sdlf_signature signature = {.batch = 1};
    for (int i = 0; i < SDLF_MAX_LAYER_OUTPUTS; i++)
        CHECK_OK(sdlf_signature_add_output(&signature, SDLF_FLOAT32, sdlf_shape(1)));
    for (int i = 0; i < SDLF_MAX_LAYER_PARAMETERS; i++) CHECK_OK(sdlf_signature_add_parameter(&signature, weight));
    for (int i = 0; i < SDLF_MAX_LAYER_SAVED; i++)
        CHECK_OK(sdlf_signature_add_saved(&signature, SDLF_FLOAT32, sdlf_shape(1)));
    CHECK_FAILS(sdlf_signature_add_output(&signature, SDLF_FLOAT32, sdlf_shape(1)), SDLF_ERROR_ARGUMENT,
                "one more than");
    CHECK_FAILS(sdlf_signature_add_parameter(&signature, weight), SDLF_ERROR_ARGUMENT, "weight is one more than the 6");
    CHECK_FAILS(sdlf_signature_add_saved(&signature, SDLF_FLOAT32, sdlf_shape(1)), SDLF_ERROR_ARGUMENT,
                "one more than");
    CHECK_EQUAL(signature.output_count, SDLF_MAX_LAYER_OUTPUTS);
}

int main(void)
{
    RUN(what_is_added_stands_in_its_order);
    RUN(shapes_without_elements_and_with_too_many_are_refused);
    RUN(no_more_than_there_is_room_for);
    return test_summary();
}
