/* SPDX-License-Identifier: MIT */
/* Layouts around concatenations, slices and sums that resemble those of images but are not: the same results as with
 * row-major tensors. */
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

static sdlf_node two_convs(sdlf_model *net, sdlf_node x, int filters)
{
    return conv(net, conv(net, x, "first", filters, 3, 1), "second", filters, 3, 1);
}

static sdlf_node in_one_row(sdlf_model *net, sdlf_node x, int channels)
{
    return sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(channels, SIDE * SIDE)});
}

static sdlf_node largest_of(sdlf_model *net, sdlf_node x, int axis)
{
    return sdlf_reduce(
        net, x, &(sdlf_reduce_options){.function = SDLF_REDUCE_LAYER_MAX, .axes = sdlf_shape(axis), .keep = axis == 2});
}

/* Sequences (N,C,L) between convolutions, multiplied, added, concatenated, and scaled by their maxima. */
static sdlf_node sequences(sdlf_model *net, sdlf_node x)
{
    sdlf_binary_layer_options multiply = {.function = SDLF_LAYER_MULTIPLY};
    x = sdlf_tanh(net, conv(net, x, "stem", 24, 3, 1));
    sdlf_node a = sdlf_tanh(net, in_one_row(net, conv(net, x, "a", 24, 3, 1), 24));
    sdlf_node b = sdlf_tanh(net, in_one_row(net, conv(net, x, "b", 24, 3, 1), 24));
    sdlf_node gated = sdlf_binary(net, (sdlf_node[]){a, b}, 2, &multiply);
    sdlf_node scaled = sdlf_binary(net, (sdlf_node[]){gated, largest_of(net, gated, 2)}, 2, &multiply);
    sdlf_node joined = sdlf_concat(net, (sdlf_node[]){sdlf_add(net, scaled, a), b}, 2, NULL);
    sdlf_reshape_options square = {.shape = sdlf_shape(48, SIDE, SIDE)};
    return conv(net, sdlf_reshape(net, joined, &square), "last", 3, 3, 1);
}

static sdlf_node largest_pixels(sdlf_model *net, sdlf_node x)
{
    return largest_of(net, in_one_row(net, two_convs(net, x, 24), 24), 2);
}

static sdlf_node largest_channels(sdlf_model *net, sdlf_node x)
{
    return largest_of(net, two_convs(net, x, 24), 1);
}

/* Rows of channels, as in transformers. */
static sdlf_node tokens(sdlf_model *net, sdlf_node x)
{
    sdlf_transpose_options order = {.order = sdlf_shape(0, 2, 1)};
    return sdlf_transpose(net, in_one_row(net, two_convs(net, x, 12), 12), &order);
}

static int copies; /* of cpu's last plan */

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
        copies = count_kind(plan, SDLF_COPY, false);
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
}

static void check_network(sdlf_node (*network)(sdlf_model *, sdlf_node))
{
    static double found[MOST], expected[MOST];
    int64_t count = 0, same = -1;
    sdlf_model *net = sdlf_model_create("parts");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    sdlf_output(net, "out", network(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    fill_parameters(net, 70);
    compute(net, "reference", SDLF_FLOAT64, expected, &count);
    compute(net, "cpu", SDLF_FLOAT32, found, &same);
    CHECK_EQUAL(same, count);
    for (int64_t e = 0; e < count; e++) CHECK_CLOSE(found[e], expected[e], 2e-5 * (1 + fabs(expected[e])));
    sdlf_model_free(net);
}

static void odd_parts_stay_what_they_are(void)
{
    static sdlf_node (*const networks[])(sdlf_model *, sdlf_node) = {odd_join, odd_part, odd_sum};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) check_network(networks[i]);
}

/* `copies`: those that the network itself has, or that its output needs, and no other conversions. */
static void other_ranks_follow(void)
{
    static const struct {
        sdlf_node (*network)(sdlf_model *, sdlf_node);
        int copies;
    } networks[] = {{sequences, 2 + 1}, {largest_pixels, 0}, {largest_channels, 0}, {tokens, 1}};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        check_network(networks[i].network);
        CHECK_EQUAL(copies, networks[i].copies);
    }
}

int main(void)
{
    RUN(odd_parts_stay_what_they_are);
    RUN(other_ranks_follow);
    return test_summary();
}
