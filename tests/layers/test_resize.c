/* SPDX-License-Identifier: MIT */
/* resize: axes, scales and sizes, with values computed by hand. (All modes are covered by ONNX's own tests of
 * Resize.) */
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static sdlf_calculator *reference;

/* Resize two samples x (C,H,W) = (1,2,3), the second 100 more than the first; returns the output shape and
 * values. */
static sdlf_shape run(const sdlf_resize_options *options, float *y)
{
    enum { COUNT = 6 };
    sdlf_model *net = sdlf_model_create("resize");
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    sdlf_shape shape = SDLF_SCALAR;
    float x[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++) x[i] = (float)(i % COUNT) + (i >= COUNT ? 100 : 0);
    sdlf_output(net, "y", sdlf_resize(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(1, 2, 3)), options));
    if (sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 2, .forward = reference}) == SDLF_OK &&
        CHECK_OK(sdlf_plan_output(plan, "y", &binding))) {
        shape = binding.tensor.shape;
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return shape;
}

/* Check that the first sample has these values, and the second 100 more. */
static void expect(const sdlf_resize_options *options, sdlf_shape shape, const float *values)
{
    float y[200];
    sdlf_shape found = run(options, y);
    if (!CHECK(sdlf_shape_equal(found, shape))) return;
    int64_t count = sdlf_shape_count(shape) / 2;
    for (int64_t i = 0; i < 2 * count; i++) CHECK_CLOSE(y[i], values[i % count] + (i < count ? 0 : 100), 1e-5);
}

#define VALUES(...) ((const float[]){__VA_ARGS__})

static void scales(void)
{
    const int asymmetric = SDLF_COORDINATES_ASYMMETRIC;
    expect(&(sdlf_resize_options){.scale = 2, .coordinates = asymmetric, .rounding = SDLF_ROUND_DOWN},
           sdlf_shape(2, 1, 4, 6), VALUES(0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 3, 3, 4, 4, 5, 5));
    expect(&(sdlf_resize_options){.scale = 1.5f, .coordinates = asymmetric, .rounding = SDLF_ROUND_DOWN},
           sdlf_shape(2, 1, 3, 4), VALUES(0, 0, 1, 2, 0, 0, 1, 2, 3, 3, 4, 5)); /* floor(1.5 x 3) columns */
    expect(&(sdlf_resize_options){.scale = 1}, sdlf_shape(2, 1, 2, 3), VALUES(0, 1, 2, 3, 4, 5));
}

static void axes_and_sizes(void)
{
    const int asymmetric = SDLF_COORDINATES_ASYMMETRIC, down = SDLF_ROUND_DOWN;
    for (int back = 0; back < 2; back++)
        expect(
            &(sdlf_resize_options){
                .axes = {1, {back ? -1 : 3}}, .sizes = {1, {6}}, .coordinates = asymmetric, .rounding = down},
            sdlf_shape(2, 1, 2, 6), VALUES(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
    expect(&(sdlf_resize_options){.sizes = {2, {4, 3}}, .coordinates = asymmetric, .rounding = down},
           sdlf_shape(2, 1, 4, 3), VALUES(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
    expect(
        &(sdlf_resize_options){.axes = {2, {3, 2}}, .sizes = {2, {1, 4}}, .coordinates = asymmetric, .rounding = down},
        sdlf_shape(2, 1, 4, 1), VALUES(0, 0, 3, 3));
    /* sizes with a separate scale: sampling positions follow the scale */
    expect(
        &(sdlf_resize_options){
            .axes = {1, {3}}, .sizes = {1, {2}}, .scale = 0.5f, .coordinates = asymmetric, .rounding = down},
        sdlf_shape(2, 1, 2, 2), VALUES(0, 2, 3, 5));
    expect(&(sdlf_resize_options){.axes = {1, {2}}, .sizes = {1, {4}}, .mode = SDLF_RESAMPLE_LINEAR},
           sdlf_shape(2, 1, 4, 3), VALUES(0, 1, 2, 0.75f, 1.75f, 2.75f, 2.25f, 3.25f, 4.25f, 3, 4, 5));
}

/* Of 20 elements 0, 1, 2, ..: the size, and the element at `at`. PyTorch and onnxruntime multiply and divide in float32, where
 * 20 x 1.3 is 26 and 11 / 1.1 is 10; in float64 the scale's float is a little less or more. */
static void row(const sdlf_resize_options *options, int64_t size, int at, float value)
{
    sdlf_model *net = sdlf_model_create("resize");
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    float x[20], y[64] = {0};
    for (int i = 0; i < 20; i++) x[i] = (float)i;
    sdlf_output(net, "y", sdlf_resize(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(1, 1, 20)), options));
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference})) &&
        CHECK_OK(sdlf_plan_output(plan, "y", &binding)) && CHECK_EQUAL(binding.tensor.shape.dim[3], size)) {
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        CHECK_CLOSE(y[at], value, 1e-5);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

static void sizes_and_nearest_are_of_float32(void)
{
    const sdlf_shape axes = {1, {3}};
    const int asymmetric = SDLF_COORDINATES_ASYMMETRIC, down = SDLF_ROUND_DOWN;
    row(&(sdlf_resize_options){.axes = axes, .scale = 1.3f, .coordinates = asymmetric, .rounding = down}, 26, 13, 10);
    row(&(sdlf_resize_options){.axes = axes, .scale = 1.1f, .coordinates = asymmetric, .rounding = down}, 22, 11, 10);
}

/* Corners are those of the output, even if scale x length, 20.8 here, is not an integer. */
static void corners_are_the_outputs(void)
{
    sdlf_resize_options options = {
        .axes = {1, {3}}, .scale = 1.04f, .mode = SDLF_RESAMPLE_LINEAR, .coordinates = SDLF_COORDINATES_ALIGN_CORNERS};
    row(&options, 20, 19, 19);
    options.scale = 0.46f;
    row(&options, 9, 8, 19);
    row(&options, 9, 4, 9.5f);
}

static void refuse(const sdlf_resize_options *options, sdlf_dtype dtype, const char *message)
{
    sdlf_model *net = sdlf_model_create("resize");
    sdlf_resize(net, sdlf_input(net, "x", dtype, sdlf_shape(1, 2, 3)), options);
    CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_SHAPE, message);
    sdlf_model_free(net);
}

static void what_cannot_be_is_refused(void)
{
    refuse(&(sdlf_resize_options){.mode = 0}, SDLF_FLOAT32, "expected a scale, or a size for each of its 2 axes");
    refuse(&(sdlf_resize_options){.sizes = {1, {4}}}, SDLF_FLOAT32, "for each of its 2 axes, found 1");
    refuse(&(sdlf_resize_options){.axes = {1, {3}}, .sizes = {2, {4, 4}}}, SDLF_FLOAT32, "its 1 axes, found 2");
    refuse(&(sdlf_resize_options){.axes = {2, {3, -1}}, .scale = 2}, SDLF_FLOAT32, "axis 3 is named twice");
    refuse(&(sdlf_resize_options){.axes = {1, {4}}, .scale = 2}, SDLF_FLOAT32, "axis");
    refuse(&(sdlf_resize_options){.sizes = {2, {1, 1}}, .scale = 0.1f}, SDLF_FLOAT32, "leaves nothing of axis 2");
    refuse(&(sdlf_resize_options){.scale = 2, .mode = SDLF_RESAMPLE_LINEAR}, SDLF_INT32, "");
}

/* Integers can be picked by nearest neighbour, and stay unchanged. */
static void integers_are_picked(void)
{
    sdlf_model *net = sdlf_model_create("resize");
    sdlf_node x = sdlf_input(net, "x", SDLF_INT32, sdlf_shape(1, 1, 2));
    sdlf_output(net, "y", sdlf_resize(net, x, &(sdlf_resize_options){.scale = 2}));
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan *plan = NULL;
    int32_t y[8] = {0};
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}))) {
        CHECK_OK(test_plan_write(plan, "x", (int32_t[]){7, -9}));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        for (int i = 0; i < 8; i++) CHECK_EQUAL(y[i], i % 4 < 2 ? 7 : -9);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

int main(void)
{
    reference = test_open("reference");
    RUN(scales);
    RUN(axes_and_sizes);
    RUN(sizes_and_nearest_are_of_float32);
    RUN(corners_are_the_outputs);
    RUN(what_cannot_be_is_refused);
    RUN(integers_are_picked);
    sdlf_calculator_close(reference);
    return test_summary();
}
