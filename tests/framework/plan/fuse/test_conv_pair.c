/* SPDX-License-Identifier: MIT */
/* Inference: a 1x1 convolution and the depthwise one behind it become one operation, with the same results, where they
 * are that and nowhere else. */
#include "framework/plan/fuse/convolutions.h"

static const char *const pair = "conv2d_pointwise_depthwise_forward";

typedef enum variant { PLAIN, STRIDED, NORMED, BARE, TWO_READERS, WIDE, TWICE, DENSE, SEEN, VARIANTS } variant;

/* PLAIN: both with bias and ReLU6; STRIDED: 5x5 with stride 2; NORMED: normalised, so that biases come of folding;
 * BARE: no biases, no activations. These become one. What follows stays two: what lies between is read twice
 * (TWO_READERS), is an output (SEEN); the first is no 1x1 convolution (WIDE); the second has two filters a channel
 * (TWICE), or sees all channels (DENSE). */
static sdlf_model *inverted(variant kind)
{
    sdlf_model *net = sdlf_model_create("inverted");
    int side = kind == WIDE ? 3 : 1, window = kind == STRIDED ? 5 : 3;
    bool bare = kind == BARE || kind == NORMED;
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    sdlf_node h =
        sdlf_conv2d(net, x,
                    &(sdlf_conv2d_options){
                        .filters = HIDDEN, .kernel = {side, side}, .padding = {side / 2, side / 2}, .no_bias = bare});
    if (kind == NORMED) h = sdlf_batch_norm2d(net, h, NULL);
    if (kind != BARE) h = sdlf_relu6(net, h);
    sdlf_node y = sdlf_conv2d(net, h,
                              &(sdlf_conv2d_options){.filters = kind == TWICE ? 2 * HIDDEN : HIDDEN,
                                                     .kernel = {window, window},
                                                     .stride = {kind == STRIDED ? 2 : 1, kind == STRIDED ? 2 : 1},
                                                     .padding = {window / 2, window / 2},
                                                     .groups = kind == DENSE ? 1 : HIDDEN,
                                                     .no_bias = bare});
    if (kind == NORMED) y = sdlf_batch_norm2d(net, y, NULL);
    if (kind != BARE) y = sdlf_relu6(net, y);
    if (kind == TWO_READERS) y = sdlf_add(net, y, h);
    sdlf_output(net, "y", y);
    if (kind == SEEN) sdlf_output(net, "between", h);
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void look(const sdlf_plan *plan, const sdlf_calculator *calculator, int kind, bool in_parts)
{
    bool knows = calculator->type->kernel[SDLF_CONV2D_POINTWISE_DEPTHWISE_FORWARD].run != NULL;
    CHECK_EQUAL(count_steps(plan, pair), knows && !in_parts && kind <= BARE);
}

static void results_are_those_of_two(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        for (int kind = 0; kind < VARIANTS; kind++) {
            sdlf_model *net = inverted((variant)kind);
            results_are_those_of_parts(net, calculator, kind, look);
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

static void two_stay_where_both_are_wanted(void)
{
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {1, 1}});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {3, 3}, .groups = HIDDEN});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    check_in_inference_alone(net, pair);
    sdlf_model_free(net);
}

/* The depthwise bias shows where neither end of ReLU6 is near. */
static void new_weights_are_taken(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float growth[MOST];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = inverted(PLAIN);
        int64_t count = growth_with_last_bias(net, calculator, growth);
        double most = 0;
        for (int64_t i = 0; i < count; i++) most = fmax(most, (double)growth[i]);
        CHECK_CLOSE(most, 1, 1e-5);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(results_are_those_of_two);
    RUN(two_stay_where_both_are_wanted);
    RUN(new_weights_are_taken);
    return test_summary();
}
