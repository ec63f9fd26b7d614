/* SPDX-License-Identifier: MIT */
/* Layers that only move elements: value, cast, transpose, slice, pad, expand, tile, depth_to_space, space_to_depth.
 * Their values are compared with loops over indices, on every calculator; shapes, rejected inputs, gradients. */
#include "layers/gradients.h"

static sdlf_node build_cast(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_cast(model, x[0], options);
}

static sdlf_node build_transpose(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_transpose(model, x[0], options);
}

static sdlf_node build_slice(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_slice(model, x[0], options);
}

static sdlf_node build_pad(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_pad(model, x[0], options);
}

static sdlf_node build_expand(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_expand(model, x[0], options);
}

static sdlf_node build_tile(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_tile(model, x[0], options);
}

static sdlf_node build_depth_to_space(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_depth_to_space(model, x[0], options);
}

static sdlf_node build_space_to_depth(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_space_to_depth(model, x[0], options);
}

/* ---- values: which input element does output element (i, j, k, l) hold? ---- */

/* The input index of an output index, or -1 for `padding`. x has the shape (2,8,3,4). */
typedef int64_t source_function(const int64_t y[4]);

static int64_t at(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return ((n * 8 + c) * 3 + h) * 4 + w;
}

static int64_t source_transposed(const int64_t y[4])
{
    return at(y[2], y[0], y[3], y[1]); /* order 1, 3, 0, 2 */
}

static int64_t source_reversed(const int64_t y[4])
{
    return at(y[3], y[2], y[1], y[0]);
}

static int64_t source_sliced(const int64_t y[4])
{
    return at(y[0], 1 + 3 * y[1], y[2], 3 - 2 * y[3]); /* 1:7:3 and -1::-2 */
}

static int64_t source_padded(const int64_t y[4])
{
    bool inside = y[1] >= 1 && y[1] < 9 && y[2] >= 2 && y[2] < 5; /* and the last axis loses its first element */
    return inside ? at(y[0], y[1] - 1, y[2] - 2, y[3] + 1) : -1;
}

static int64_t source_tiled(const int64_t y[4])
{
    return at(y[0], y[1] % 8, y[2], y[3] % 4);
}

static int64_t source_dcr(const int64_t y[4])
{
    return at(y[0], (y[2] % 2 * 2 + y[3] % 2) * 2 + y[1], y[2] / 2, y[3] / 2);
}

static int64_t source_crd(const int64_t y[4])
{
    return at(y[0], y[1] * 4 + y[2] % 2 * 2 + y[3] % 2, y[2] / 2, y[3] / 2);
}

static int64_t source_to_depth(const int64_t y[4])
{
    return at(y[0], y[1] % 8, y[2], y[3] * 1); /* block 1: nothing moves */
}

static const struct move_case {
    layer_builder *build;
    const void *options;
    sdlf_shape shape; /* of y, the batch of 2 included */
    source_function *source;
} moves[] = {
    {build_transpose, &(sdlf_transpose_options){.order = {4, {1, 3, 0, 2}}}, {4, {8, 4, 2, 3}}, source_transposed},
    {build_transpose, NULL, {4, {4, 3, 8, 2}}, source_reversed},
    {build_slice,
     &(sdlf_slice_options){.axes = {2, {1, -1}}, .start = {2, {1, -1}}, .end = {2, {7, -99}}, .step = {2, {3, -2}}},
     {4, {2, 2, 3, 2}},
     source_sliced},
    {build_pad,
     &(sdlf_pad_options){.before = {4, {0, 1, 2, -1}}, .after = {4, {0, 2, 0, 0}}, .value = 7.5f},
     {4, {2, 11, 5, 3}},
     source_padded},
    {build_tile, &(sdlf_tile_options){.repeats = {4, {1, 2, 1, 3}}}, {4, {2, 16, 3, 12}}, source_tiled},
    {build_depth_to_space, &(sdlf_depth_to_space_options){.block = 2}, {4, {2, 2, 6, 8}}, source_dcr},
    {build_depth_to_space, &(sdlf_depth_to_space_options){.block = 2, .mode = 1}, {4, {2, 2, 6, 8}}, source_crd},
    {build_space_to_depth, &(sdlf_space_to_depth_options){.block = 1}, {4, {2, 8, 3, 4}}, source_to_depth},
};

static void check_move(const struct move_case *c, sdlf_calculator *calculator)
{
    enum { COUNT = 2 * 8 * 3 * 4, MOST = 4 * COUNT * 2 };
    sdlf_plan *plan = NULL;
    float x[COUNT], y[MOST];
    sdlf_model *model = sdlf_model_create("moves");
    sdlf_node in = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(8, 3, 4));
    sdlf_output(model, "y", c->build(model, &in, c->options));
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .forward = calculator}));
    for (int e = 0; e < COUNT; e++) x[e] = (float)e;
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "y", y));
    int wrong = 0;
    for (int64_t e = 0; e < sdlf_shape_count(c->shape); e++) {
        int64_t index[4], rest = e;
        for (int axis = 3; axis >= 0; axis--) {
            index[axis] = rest % c->shape.dim[axis];
            rest /= c->shape.dim[axis];
        }
        int64_t source = c->source(index);
        if (y[e] != (source < 0 ? 7.5f : x[source])) wrong++;
    }
    CHECK_EQUAL(wrong, 0);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

static void values_match(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) check_move(&moves[i], calculator);
        sdlf_calculator_close(calculator);
    }
}

/* A value of the network's own, truncated and stretched. */
static void values_are_cast_and_expanded(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        sdlf_plan *plan = NULL;
        int64_t y[2 * 3 * 2];
        bool truth[3];
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        sdlf_model *model = sdlf_model_create("value");
        sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(1)); /* a network has an input */
        sdlf_node value = sdlf_value(model, &(sdlf_value_options){.name = "v", .shape = sdlf_shape(3, 1)});
        sdlf_node whole = sdlf_cast(model, value, &(sdlf_cast_options){.dtype = 2});
        sdlf_output(model, "y", sdlf_expand(model, whole, &(sdlf_expand_options){.shape = sdlf_shape(2, 1, 2)}));
        sdlf_output(model, "truth", sdlf_cast(model, value, &(sdlf_cast_options){.dtype = 5}));
        CHECK_OK(sdlf_model_build(model, 1));
        float *stored = sdlf_model_find_parameter(model, "v.value")->value.data;
        stored[0] = 2.9f, stored[1] = -1.5f, stored[2] = 0;
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        CHECK_OK(test_plan_read(plan, "truth", truth));
        static const int64_t expected[] = {2, 2, -1, -1, 0, 0, 2, 2, -1, -1, 0, 0};
        for (int e = 0; e < 12; e++) CHECK_EQUAL(y[e], expected[e]);
        CHECK(truth[0] && truth[1] && !truth[2]);
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

static void nonsense_is_refused(void)
{
    check_refused(build_transpose, &(sdlf_transpose_options){.order = {3, {0, 1, 1}}}, sdlf_shape(2, 3),
                  SDLF_ERROR_SHAPE, "names each axis of its input 1x2x3 once");
    check_refused(build_slice, &(sdlf_slice_options){.axes = {1, {3}}, .start = {1, {0}}, .end = {1, {1}}},
                  sdlf_shape(2, 3), SDLF_ERROR_SHAPE, "axis 3 is not one of its input 1x2x3");
    check_refused(build_slice, &(sdlf_slice_options){.axes = {2, {1, -2}}, .start = {2, {0}}, .end = {2, {1, 1}}},
                  sdlf_shape(2, 3), SDLF_ERROR_SHAPE, "axis 1 is named twice");
    check_refused(build_slice, &(sdlf_slice_options){.axes = {1, {1}}, .start = {1, {0}}}, sdlf_shape(2, 3),
                  SDLF_ERROR_SHAPE, "a start, an end and a step for each of 1 axes");
    check_refused(build_slice, &(sdlf_slice_options){.axes = {1, {1}}, .start = {1, {2}}, .end = {1, {2}}},
                  sdlf_shape(2, 3), SDLF_ERROR_SHAPE, "with no elements");
    check_refused(build_slice,
                  &(sdlf_slice_options){.axes = {1, {1}}, .start = {1, {0}}, .end = {1, {2}}, .step = {1, {0}}},
                  sdlf_shape(2, 3), SDLF_ERROR_SHAPE, "a step is 0");
    check_refused(build_pad, &(sdlf_pad_options){.before = {2, {0}}, .after = {2, {0}}}, sdlf_shape(2, 3),
                  SDLF_ERROR_SHAPE, "expected 3 sizes before and after");
    check_refused(build_pad, &(sdlf_pad_options){.before = {2, {0, -2}}, .after = {2, {0, -1}}}, sdlf_shape(3),
                  SDLF_ERROR_SHAPE, "leaves nothing of axis 1");
    check_refused(build_expand, &(sdlf_expand_options){.shape = {8, {1, 1, 1, 1, 1, 1, 1, 3}}, .samples = true},
                  sdlf_shape(3), SDLF_ERROR_SHAPE, "at most 7 dimensions besides the batch");
    check_refused(build_expand, &(sdlf_expand_options){.shape = sdlf_shape(4, 2)}, sdlf_shape(3), SDLF_ERROR_SHAPE,
                  "1x3 cannot be broadcast with 4x2");
    check_refused(build_tile, &(sdlf_tile_options){.repeats = sdlf_shape(2)}, sdlf_shape(3), SDLF_ERROR_SHAPE,
                  "expected 2 repeats");
    check_refused(build_tile, &(sdlf_tile_options){.repeats = sdlf_shape(1, 0)}, sdlf_shape(3), SDLF_ERROR_ARGUMENT,
                  "repeats");
    check_refused(build_depth_to_space, &(sdlf_depth_to_space_options){.block = 2}, sdlf_shape(6, 2, 2),
                  SDLF_ERROR_SHAPE, "needs a multiple of 4 channels");
    check_refused(build_space_to_depth, &(sdlf_space_to_depth_options){.block = 2}, sdlf_shape(1, 3, 2),
                  SDLF_ERROR_SHAPE, "cannot be cut into blocks of 2x2");
    check_output(build_space_to_depth, &(sdlf_space_to_depth_options){.block = 2}, sdlf_shape(3, 4, 6),
                 sdlf_shape(12, 2, 3));
    check_output(build_cast, NULL, sdlf_shape(3, 4), sdlf_shape(3, 4));
}

/* A convolution or a readout after each distinguishes its elements. */
static sdlf_node build_turned(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_transpose(model, sdlf_transpose(model, x[0], options),
                          &(sdlf_transpose_options){.order = {3, {1, 0, 2}}});
}

/* The batch is doubled, and half of it is removed again. */
static sdlf_node build_stretched(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node y = sdlf_expand(model, sdlf_reshape(model, x[0], &(sdlf_reshape_options){.shape = sdlf_shape(3, 1)}),
                              &(sdlf_expand_options){.shape = sdlf_shape(2, 3, 4)});
    (void)options;
    return y;
}

/* A trained value, repeated for each sample and combined with the sample's own. */
static sdlf_node build_for_samples(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node value =
        sdlf_value(model, &(sdlf_value_options){.name = "value", .shape = sdlf_shape(1, 3), .trainable = true});
    sdlf_node parts[] = {x[0], sdlf_expand(model, value, options)};
    return sdlf_concat(model, parts, 2, NULL);
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "transpose",
         .build = build_turned,
         .options = &(sdlf_transpose_options){.order = {3, {2, 0, 1}}},
         .input = {sdlf_shape(2, 3, 2)}},
        {.what = "slice",
         .build = build_slice,
         .options = &(
             sdlf_slice_options){.axes = {2, {1, 2}}, .start = {2, {-1, 1}}, .end = {2, {-9, 4}}, .step = {2, {-2, 1}}},
         .input = {sdlf_shape(2, 4, 5)}},
        {.what = "pad",
         .build = build_pad,
         .options = &(sdlf_pad_options){.before = {3, {0, 1, 0}}, .after = {3, {0, 2, 1}}, .value = 0.5f},
         .input = {sdlf_shape(2, 3, 4)}},
        {.what = "expand", .build = build_stretched, .input = {sdlf_shape(2, 3)}},
        {.what = "expand to samples",
         .build = build_for_samples,
         .options = &(sdlf_expand_options){.shape = {1, {3}}, .samples = true},
         .input = {sdlf_shape(3, 2)}},
        {.what = "tile",
         .build = build_tile,
         .options = &(sdlf_tile_options){.repeats = {4, {1, 2, 1, 3}}},
         .input = {sdlf_shape(2, 2, 3, 2)}},
        {.what = "depth_to_space",
         .build = build_depth_to_space,
         .options = &(sdlf_depth_to_space_options){.block = 2, .mode = 1},
         .input = {sdlf_shape(2, 4, 2, 3)}},
        {.what = "space_to_depth",
         .build = build_space_to_depth,
         .options = &(sdlf_space_to_depth_options){.block = 2},
         .input = {sdlf_shape(2, 1, 2, 4)}},
        {.what = "cast", .build = build_cast, .input = {sdlf_shape(2, 5)}},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    RUN(values_match);
    RUN(values_are_cast_and_expanded);
    RUN(nonsense_is_refused);
    RUN(gradients_match);
    return test_summary();
}
