/* SPDX-License-Identifier: MIT */
/* Layouts around joins, slices and sums that look like those of images, and are none: the same results as row-major
 * ones. */
#include <math.h>
#include <string.h>

#include "framework/plan/layouts/networks.h"
#include "testing.h"

static sdlf_node odd_join(sdlf_model *net, sdlf_node x)
{
    sdlf_node part[3];
    for (int i = 0; i < 3; i++)
        part[i] = sdlf_conv2d(net, x,
                              &(sdlf_conv2d_options){.filters = 1, .kernel = {i < 2 ? 13 : 12, 3}, .padding = {0, 1}});
    return sdlf_tanh(net, sdlf_concat(net, part, 3, &(sdlf_concat_options){.axis = 2}));
}

static sdlf_node odd_part(sdlf_model *net, sdlf_node x)
{
    x = conv(net, conv(net, x, "first", 5, 3, 1), "second", 5, 3, 1);
    x = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(1, 5 * SIDE, SIDE)});
    sdlf_slice_options some = {.axes = sdlf_shape(2), .start = sdlf_shape(9), .end = sdlf_shape(20)};
    return sdlf_tanh(net, sdlf_slice(net, x, &some));
}

/* The residual is the convolution's own input under another shape. */
static sdlf_node odd_sum(sdlf_model *net, sdlf_node x)
{
    sdlf_slice_options some = {.axes = sdlf_shape(1, 2, 3), .start = sdlf_shape(0, 0, 0), .end = sdlf_shape(2, 8, 8)};
    x = sdlf_slice(net, x, &some);
    sdlf_node half = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {2, 2}, .stride = {2, 2}});
    sdlf_node turned = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(8, 4, 4)});
    return conv(net, sdlf_add(net, half, turned), "last", 3, 3, 1);
}

static void compute(sdlf_model *net, const char *name, sdlf_dtype dtype, double *values, int64_t *count)
{
    static float image[IMAGE], narrow[MOST];
    static double wide[IMAGE];
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_binding output;
    bool reference = strcmp(name, "reference") == 0;
    fill_random(image, IMAGE, 6);
    for (int i = 0; i < IMAGE; i++) wide[i] = (double)image[i];
    CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){.batch = BATCH, .dtype = dtype, .forward = calculator, .no_fusion = reference}));
    if (plan != NULL) {
        CHECK_OK(test_plan_write(plan, "image", dtype == SDLF_FLOAT32 ? (void *)image : (void *)wide));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_output(plan, "out", &output));
        *count = sdlf_tensor_count(&output.tensor);
        CHECK_OK(test_plan_read(plan, "out", dtype == SDLF_FLOAT32 ? (void *)narrow : (void *)values));
        for (int64_t e = 0; e < *count && dtype == SDLF_FLOAT32; e++) values[e] = (double)narrow[e];
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
}

static void odd_parts_stay_what_they_are(void)
{
    static sdlf_node (*const networks[])(sdlf_model *, sdlf_node) = {odd_join, odd_part, odd_sum};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        static double found[MOST], expected[MOST];
        int64_t count = 0, same = -1;
        sdlf_model *net = sdlf_model_create("odd");
        sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
        sdlf_output(net, "out", networks[i](net, x));
        CHECK_OK(sdlf_model_build(net, 1));
        fill_parameters(net, 70);
        compute(net, "reference", SDLF_FLOAT64, expected, &count);
        compute(net, "cpu", SDLF_FLOAT32, found, &same);
        CHECK_EQUAL(same, count);
        for (int64_t e = 0; e < count; e++) CHECK_CLOSE(found[e], expected[e], 2e-5 * (1 + fabs(expected[e])));
        sdlf_model_free(net);
    }
}

int main(void)
{
    RUN(odd_parts_stay_what_they_are);
    return test_summary();
}
