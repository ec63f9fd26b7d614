/* SPDX-License-Identifier: MIT */
/* Inference: an inverted residual block is fused into one operation, with the same results; similar patterns are
 * not. */
#include <string.h>

#include "framework/plan/fuse/convolutions.h"

static const char *const block = "conv2d_inverted_residual_forward";

typedef enum variant {
    PLAIN,
    ADDED,
    STRIDED,
    NORMED,
    BARE,
    SEPARABLE,
    SEEN,
    READ_TWICE,
    DENSE,
    WIDE,
    ADDED_INSIDE,
    VARIANTS
} variant;

/* PLAIN: biases, ReLU6 after the first two; ADDED: with the block's input as residual; STRIDED: 5x5 with stride 2;
 * NORMED: normalised, so that folding creates biases; BARE: no biases, no activations; SEPARABLE: only the last two.
 * These are fused. The others are not: an intermediate tensor is an output (SEEN), or read twice (READ_TWICE); the
 * middle convolution reads all channels (DENSE), the last is not 1x1 (WIDE), or something is added in the middle
 * (ADDED_INSIDE). */
static sdlf_model *inverted(variant kind)
{
    sdlf_model *net = sdlf_model_create("inverted");
    int window = kind == STRIDED ? 5 : 3, stride = kind == STRIDED ? 2 : 1, last = kind == WIDE ? 3 : 1;
    bool bare = kind == BARE || kind == NORMED;
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    sdlf_node h = x;
    int middle = kind == SEPARABLE ? CHANNELS : HIDDEN;
    if (kind != SEPARABLE)
        h = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = middle, .kernel = {1, 1}, .no_bias = bare});
    if (kind == NORMED) h = sdlf_batch_norm2d(net, h, NULL);
    if (kind != BARE && kind != SEPARABLE) h = sdlf_relu6(net, h);
    sdlf_node z = sdlf_conv2d(net, h,
                              &(sdlf_conv2d_options){.filters = middle,
                                                     .kernel = {window, window},
                                                     .stride = {stride, stride},
                                                     .padding = {window / 2, window / 2},
                                                     .groups = kind == DENSE ? 1 : middle,
                                                     .no_bias = bare});
    if (kind == ADDED_INSIDE)
        z = sdlf_add(net, z, sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {1, 1}}));
    if (kind == NORMED) z = sdlf_batch_norm2d(net, z, NULL);
    if (kind != BARE) z = sdlf_relu6(net, z);
    sdlf_node y = sdlf_conv2d(net, z,
                              &(sdlf_conv2d_options){.filters = kind == READ_TWICE ? HIDDEN : CHANNELS,
                                                     .kernel = {last, last},
                                                     .padding = {last / 2, last / 2},
                                                     .no_bias = bare});
    if (kind == NORMED) y = sdlf_batch_norm2d(net, y, NULL);
    if (kind == ADDED) y = sdlf_add(net, y, x);
    if (kind == READ_TWICE) y = sdlf_add(net, y, z);
    sdlf_output(net, "y", y);
    if (kind == SEEN) sdlf_output(net, "between", z);
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void look(const sdlf_plan *plan, const sdlf_calculator *calculator, int kind, bool in_parts)
{
    bool always = strcmp(calculator->type->name, "reference") == 0; /* others may refuse it */
    int blocks = count_steps(plan, block);
    CHECK(blocks == 0 || (!in_parts && kind <= SEPARABLE));
    if (!always) return;
    CHECK_EQUAL(blocks, !in_parts && kind <= SEPARABLE);
}

static void results_are_those_of_three(void)
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

static void three_stay_where_all_are_wanted(void)
{
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {1, 1}});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {3, 3}, .groups = HIDDEN});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = CHANNELS, .kernel = {1, 1}});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    check_in_inference_alone(net, block);
    sdlf_model_free(net);
}

/* The last bias affects every element. */
static void new_weights_are_taken(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float growth[MOST];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = inverted(PLAIN);
        int64_t count = growth_with_last_bias(net, calculator, growth);
        CHECK_EQUAL(count, IMAGE);
        for (int64_t i = 0; i < count; i++) CHECK_CLOSE((double)growth[i], 1, 1e-5);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(results_are_those_of_three);
    RUN(three_stay_where_all_are_wanted);
    RUN(new_weights_are_taken);
    return test_summary();
}
