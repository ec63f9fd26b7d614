/* Inference: a 1x1 convolution and the depthwise one behind it become one operation, with the same results, where they are that and
 * nowhere else. */
#include <math.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 2, CHANNELS = 3, SIDE = 9, HIDDEN = 10, MOST = BATCH * 2 * HIDDEN * SIDE * SIDE };

static const char *const pair = "conv2d_pointwise_depthwise_forward";

typedef enum variant { PLAIN, STRIDED, NORMED, BARE, TWO_READERS, WIDE, TWICE, DENSE, SEEN, VARIANTS } variant;

/* PLAIN: both with bias and ReLU6; STRIDED: 5x5 with stride 2; NORMED: normalised, so that biases come of folding; BARE: no biases,
 * no activations. These become one. What follows stays two: what lies between is read twice (TWO_READERS), is an output (SEEN); the
 * first is no 1x1 convolution (WIDE); the second has two filters a channel (TWICE), or sees all channels (DENSE). */
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

static void results_are_those_of_two(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool knows = calculator->type->kernel[SDLF_CONV2D_POINTWISE_DEPTHWISE_FORWARD].run != NULL;
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
                CHECK_EQUAL(count_steps(plan, pair), knows && !parts && kind <= BARE);
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
static void two_stay_where_both_are_wanted(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = sdlf_model_create("trained");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(CHANNELS, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {1, 1}});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {3, 3}, .groups = HIDDEN});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    const sdlf_plan_options options[] = {{.batch = BATCH, .forward = reference},
                                         {.batch = BATCH, .forward = reference, .mode = SDLF_TRAIN},
                                         {.batch = BATCH, .forward = reference, .keep_activations = true}};
    for (int i = 0; i < 3; i++) {
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(&plan, net, &options[i]));
        if (plan != NULL) CHECK_EQUAL(count_steps(plan, pair), i == 0);
        sdlf_plan_free(plan);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* Weights that were made ready are made ready again when parameters are loaded. */
static void new_weights_are_taken(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float image[BATCH * CHANNELS * SIDE * SIDE], found[2][MOST];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = inverted(PLAIN);
        fill_random(image, BATCH * CHANNELS * SIDE * SIDE, 3);
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}));
        sdlf_parameter *last = sdlf_model_parameter(net, sdlf_model_parameter_count(net) - 1); /* the depthwise bias */
        for (int after = 0; after < 2 && plan != NULL; after++) {
            float *value = last->value.data;
            for (int64_t e = 0; e < sdlf_tensor_count(&last->value); e++) value[e] = after ? 3 : 2;
            CHECK_OK(sdlf_plan_load_parameters(plan));
            CHECK_OK(sdlf_plan_write(plan, "image", image));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(sdlf_plan_read(plan, "y", found[after]));
        }
        double most = 0;
        for (int64_t i = 0; i < BATCH * HIDDEN * SIDE * SIDE; i++)
            most = fmax(most, (double)found[1][i] - (double)found[0][i]);
        CHECK_CLOSE(most, 1, 1e-5); /* where neither end of ReLU6 is near */
        sdlf_plan_free(plan);
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
