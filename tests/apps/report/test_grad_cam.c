/* SPDX-License-Identifier: MIT */
/* Grad-CAM: its formula, and the choice of the layer. */
#include "testing.h"

#include <math.h>

#include <sdlf/sdlf.h>

#include "apps/report/grad_cam.h"

/* The convolution is followed by a mean over H,W and a matrix, so that the gradient is known: the map is max(0, sum
 * over k of w[c,k] / (H W) A[k]). */
static void grad_cam_is_what_its_formula_says(void)
{
    enum { SIDE = 5, FILTERS = 3, CLASSES = 4, AREA = SIDE * SIDE };
    sdlf_calculator *calculator = test_open("cpu");
    sdlf_model *net = sdlf_model_create("meant");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_conv2d(net, x,
                    &(sdlf_conv2d_options){.name = "c", .filters = FILTERS, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_global_avg_pool2d(net, x);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = "f", .units = CLASSES});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 2));
    grad_cam cam;
    CHECK_OK(grad_cam_open(&cam, net, calculator, NULL));
    CHECK_TEXT(cam.layer, "c");
    CHECK_EQUAL(cam.class_count, CLASSES);
    float sample[AREA], map[AREA];
    bool any = false;
    for (int i = 0; i < AREA; i++) sample[i] = (float)sin(i * 1.7);
    const float *w = sdlf_model_find_parameter(net, "f.weight")->value.data;
    for (int class = 0; class < CLASSES; class ++) {
        sdlf_binding a;
        CHECK_OK(grad_cam_make(&cam, sample, class, map));
        CHECK_OK(sdlf_plan_activation(cam.plan, "c", false, &a));
        for (int i = 0; i < AREA; i++) {
            double sum = 0;
            for (int k = 0; k < FILTERS; k++)
                sum += (double)w[class * FILTERS + k] / AREA * (double)((const float *)a.tensor.data)[k * AREA + i];
            CHECK_CLOSE((double)map[i], sum > 0 ? sum : 0, 1e-6);
            any = any || map[i] > 0;
        }
    }
    CHECK(any);
    grad_cam_release(&cam);
    CHECK_FAILS(grad_cam_open(&cam, net, calculator, "none"), SDLF_ERROR_ARGUMENT, "no layer 'none'");
    grad_cam_release(&cam);
    CHECK_FAILS(grad_cam_open(&cam, net, calculator, "f"), SDLF_ERROR_SHAPE, "expected (C,H,W) larger than 1x1");
    grad_cam_release(&cam);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* A residual from the input has no parameters before it; the search does not continue through transposes. */
static void grad_cam_is_of_a_residual_from_the_input(void)
{
    sdlf_calculator *calculator = test_open("cpu");
    sdlf_model *net = sdlf_model_create("residual");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(4, 4, 4));
    sdlf_node y =
        sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = "c", .filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    y = sdlf_relu(net, sdlf_add(net, x, y));
    const char *relu = sdlf_model_layer(net, y.layer)->name;
    y = sdlf_transpose(net, y, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 3, 1)});
    sdlf_output(net, "class", sdlf_fully_connected(net, y, &(sdlf_fully_connected_options){.units = 3}));
    CHECK_OK(sdlf_model_build(net, 2));
    for (int named = 0; named < 2; named++) {
        grad_cam cam;
        float sample[64], map[16];
        for (int i = 0; i < 64; i++) sample[i] = (float)sin(i * 1.3);
        CHECK_OK(grad_cam_open(&cam, net, calculator, named ? relu : NULL));
        CHECK_TEXT(cam.layer, relu);
        CHECK_OK(grad_cam_make(&cam, sample, 1, map));
        grad_cam_release(&cam);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* If no layer is named: the last one with the last convolution's shape, before a second reader or a change of shape. */
static void grad_cam_is_of_what_an_activation_leaves(void)
{
    sdlf_calculator *calculator = test_open("cpu");
    for (int reads = 1; reads <= 2; reads++) {
        sdlf_model *net = sdlf_model_create("residual");
        const sdlf_conv2d_options same = {.filters = 2, .kernel = {3, 3}, .padding = {1, 1}};
        sdlf_node x = sdlf_conv2d(net, sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6)), &same);
        sdlf_node y = sdlf_batch_norm2d(net, sdlf_conv2d(net, x, &same), NULL);
        y = sdlf_relu(net, sdlf_add(net, x, y));
        sdlf_node pooled = sdlf_max_pool2d(net, y, &(sdlf_pool2d_options){.window = {2, 2}});
        if (reads == 2)
            pooled = sdlf_add(net, pooled, sdlf_avg_pool2d(net, y, &(sdlf_pool2d_options){.window = {2, 2}}));
        sdlf_output(net, "class",
                    sdlf_fully_connected(net, sdlf_flatten(net, pooled), &(sdlf_fully_connected_options){.units = 3}));
        CHECK_OK(sdlf_model_build(net, 2));
        grad_cam cam;
        CHECK_OK(grad_cam_open(&cam, net, calculator, NULL));
        CHECK_TEXT(cam.layer, "relu");
        grad_cam_release(&cam);
        sdlf_model_free(net);
    }
    sdlf_calculator_close(calculator);
}

int main(void)
{
    RUN(grad_cam_is_what_its_formula_says);
    RUN(grad_cam_is_of_what_an_activation_leaves);
    RUN(grad_cam_is_of_a_residual_from_the_input);
    return test_summary();
}
