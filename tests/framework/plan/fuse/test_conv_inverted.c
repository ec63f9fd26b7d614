/* Inference: an inverted residual block becomes one operation, with the same results, where it is that and nowhere else. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 2, CHANNELS = 3, SIDE = 9, MIDDLE = 10, MOST = BATCH * MIDDLE * SIDE * SIDE };

static const char *const block = "conv2d_inverted_residual_forward", *const pair = "conv2d_pointwise_depthwise_forward";

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

/* PLAIN: biases, ReLU6 behind the first two; ADDED: with the block's input as its residual; STRIDED: 5x5 with stride 2; NORMED:
 * normalised, so that biases come of folding; BARE: no biases, no activations; SEPARABLE: the last two alone. These become one. What
 * follows does not: what lies between is an output (SEEN), or read twice (READ_TWICE); the one in the middle sees all channels (DENSE),
 * the last is no 1x1 convolution (WIDE), or something is added in the middle (ADDED_INSIDE). */
static sdlf_model *inverted(variant kind)
{
    sdlf_model *net = sdlf_model_create("inverted");
    int window = kind == STRIDED ? 5 : 3, stride = kind == STRIDED ? 2 : 1, last = kind == WIDE ? 3 : 1;
    bool bare = kind == BARE || kind == NORMED;
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    sdlf_node h = x;
    int middle = kind == SEPARABLE ? CHANNELS : MIDDLE;
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
        z = sdlf_add(net, z, sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = MIDDLE, .kernel = {1, 1}}));
    if (kind == NORMED) z = sdlf_batch_norm2d(net, z, NULL);
    if (kind != BARE) z = sdlf_relu6(net, z);
    sdlf_node y = sdlf_conv2d(net, z,
                              &(sdlf_conv2d_options){.filters = kind == READ_TWICE ? MIDDLE : CHANNELS,
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

static void results_are_those_of_three(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool always = strcmp(calculator->type->name, "reference") == 0; /* others may refuse it */
        for (int kind = 0; kind < VARIANTS; kind++) {
            static float image[BATCH * CHANNELS * SIDE * SIDE], found[2][MOST];
            sdlf_model *net = inverted((variant)kind);
            int64_t count = 0;
            fill_random(image, BATCH * CHANNELS * SIDE * SIDE, 3);
            for (int parts = 0; parts < 2; parts++) {
                sdlf_plan *plan = NULL;
                sdlf_binding y;
                CHECK_OK(sdlf_plan_create(
                    &plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .no_fusion = parts != 0}));
                if (plan == NULL) continue;
                int blocks = count_steps(plan, block);
                CHECK(blocks == 0 || (!parts && kind <= SEPARABLE));
                if (always) {
                    CHECK_EQUAL(blocks, !parts && kind <= SEPARABLE);
                    CHECK_EQUAL(count_steps(plan, pair),
                                !parts && kind > SEPARABLE && kind != DENSE && kind != ADDED_INSIDE);
                }
                CHECK_OK(sdlf_plan_write(plan, "image", image));
                for (int run = 0; run < 3; run++) CHECK_OK(sdlf_plan_forward(plan)); /* the last from a recording */
                CHECK_OK(sdlf_plan_output(plan, "y", &y));
                count = sdlf_tensor_count(&y.tensor);
                CHECK(count <= MOST);
                CHECK_OK(sdlf_plan_read(plan, "y", found[parts]));
                sdlf_plan_free(plan);
            }
            CHECK(isfinite(found[1][0]));
            for (int64_t i = 0; i < count; i++)
                CHECK_CLOSE((double)found[0][i], (double)found[1][i], 2e-6 * (1 + fabs((double)found[1][i])));
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

/* Not while training, whose backward pass reads what lies between, nor where all activations are kept. */
static void three_stay_where_all_are_wanted(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = MIDDLE, .kernel = {1, 1}});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = MIDDLE, .kernel = {3, 3}, .groups = MIDDLE});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = CHANNELS, .kernel = {1, 1}});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    const sdlf_plan_options options[] = {{.batch = BATCH, .forward = reference},
                                         {.batch = BATCH, .forward = reference, .mode = SDLF_TRAIN},
                                         {.batch = BATCH, .forward = reference, .keep_activations = true}};
    for (int i = 0; i < 3; i++) {
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(&plan, net, &options[i]));
        if (plan != NULL) CHECK_EQUAL(count_steps(plan, block), i == 0);
        sdlf_plan_free(plan);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* Whatever was made ready is made ready again when parameters are loaded: the last bias shows in every number. */
static void new_weights_are_taken(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        enum { COUNT = BATCH * CHANNELS * SIDE * SIDE };
        static float image[COUNT], found[2][COUNT];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = inverted(PLAIN);
        fill_random(image, COUNT, 3);
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}));
        sdlf_parameter *last = sdlf_model_parameter(net, sdlf_model_parameter_count(net) - 1); /* the last bias */
        for (int after = 0; after < 2 && plan != NULL; after++) {
            float *value = last->value.data;
            for (int64_t e = 0; e < sdlf_tensor_count(&last->value); e++) value[e] = after ? 3 : 2;
            CHECK_OK(sdlf_plan_load_parameters(plan));
            CHECK_OK(sdlf_plan_write(plan, "image", image));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(sdlf_plan_read(plan, "y", found[after]));
        }
        for (int64_t i = 0; i < COUNT; i++) CHECK_CLOSE((double)found[1][i] - (double)found[0][i], 1, 1e-5);
        sdlf_plan_free(plan);
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
