/* SPDX-License-Identifier: MIT */
/* reshape and flatten: shapes, rejected inputs, gradients that pass through. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_reshape(model, x[0], options);
}

static sdlf_node build_flatten(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_flatten(model, x[0]);
}

/* A reshaped image that is convolved: the order of the elements matters. */
static sdlf_node build_and_use(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node y = sdlf_reshape(model, x[0], options);
    return sdlf_conv2d(model, y, &(sdlf_conv2d_options){.filters = 2, .kernel = {2, 2}});
}

static sdlf_node build_flatten_and_use(sdlf_model *model, const sdlf_node *x, const void *options)
{
    (void)options;
    return sdlf_fully_connected(model, sdlf_flatten(model, x[0]), &(sdlf_fully_connected_options){.units = 4});
}

static void shapes_follow(void)
{
    check_output(build_flatten, NULL, sdlf_shape(3, 4, 5), sdlf_shape(60));
    check_output(build_flatten, NULL, SDLF_SCALAR, sdlf_shape(1));
    check_output(build, &(sdlf_reshape_options){.shape = sdlf_shape(4, 15)}, sdlf_shape(3, 4, 5), sdlf_shape(4, 15));
    check_output(build, &(sdlf_reshape_options){.shape = sdlf_shape(2, -1, 5)}, sdlf_shape(60), sdlf_shape(2, 6, 5));
    check_output(build, &(sdlf_reshape_options){.shape = SDLF_SCALAR}, sdlf_shape(1, 1), SDLF_SCALAR);
}

/* Batch and all: a sample (2,3) in a batch of one becomes (3,2,1), a scalar or (6). */
static void the_whole_is_reshaped(void)
{
    const sdlf_reshape_options options[] = {
        {.shape = sdlf_shape(3, -1, 1), .whole = true},
        {.shape = sdlf_shape(6), .whole = true},
        {.shape = sdlf_shape(1, 1, 1, 1, 1, 1, 2, 3), .whole = true},
    };
    const sdlf_shape expected[] = {sdlf_shape(3, 2, 1), sdlf_shape(6), sdlf_shape(1, 1, 1, 1, 1, 1, 2, 3)};
    for (int i = 0; i < 3; i++) {
        sdlf_model *model = sdlf_model_create("whole");
        sdlf_node y = sdlf_reshape(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(2, 3)), &options[i]);
        CHECK_OK(sdlf_model_build(model, 1));
        CHECK(sdlf_shape_equal(sdlf_model_node_shape(model, y), expected[i]));
        sdlf_model_free(model);
    }
    sdlf_model *model = sdlf_model_create("whole");
    sdlf_reshape(model, sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(2, 3)),
                 &(sdlf_reshape_options){.shape = sdlf_shape(4), .whole = true});
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "does not hold the 6 elements of its input 1x2x3");
    sdlf_model_free(model);
}

static void nonsense_is_refused(void)
{
    sdlf_shape x = sdlf_shape(3, 4, 5);
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(7, 8)}, x, SDLF_ERROR_SHAPE,
                  "shape 7x8 does not hold the 60 elements of a sample of its input 1x3x4x5");
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(7, -1)}, x, SDLF_ERROR_SHAPE, "shape 7x-1");
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(-1, -1)}, x, SDLF_ERROR_SHAPE, "at most one -1");
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(0, 60)}, x, SDLF_ERROR_SHAPE, "positive");
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(60, -2)}, x, SDLF_ERROR_ARGUMENT,
                  "shape (a dimension): expected -1 to");
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(1, 1, 1, 1, 1, 1, 1, 60)}, x, SDLF_ERROR_SHAPE,
                  "at most 7 dimensions besides the batch");
    check_refused(build, &(sdlf_reshape_options){.shape = sdlf_shape(16777216, 16777216, 16777216)}, x,
                  SDLF_ERROR_SHAPE, "does not hold");
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "reshape",
         .build = build_and_use,
         .options = &(sdlf_reshape_options){.shape = sdlf_shape(2, -1, 3)},
         .input = {sdlf_shape(2, 3, 6)}},
        {.what = "flatten", .build = build_flatten_and_use, .input = {sdlf_shape(3, 2, 2, 3)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(shapes_follow);
    RUN(the_whole_is_reshaped);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
