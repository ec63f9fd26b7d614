/* Inference on cpu: inverted residual blocks that are large enough become one operation each, with the same results. */
#include <math.h>

#include "framework/plan/layouts/networks.h"
#include "testing.h"

enum { EDGE = 96, WIDTH = 16, HIDDEN = 32 }; /* 1.2 MB between: cpu takes it as one */
enum { PICTURE = 3 * EDGE * EDGE, RESULT = WIDTH * EDGE * EDGE };

/* A first layer, a block that its own input is added to, and one without expansion; all normalised. */
static sdlf_model *large_network(void)
{
    const sdlf_conv2d_options wide = {.filters = HIDDEN, .kernel = {1, 1}, .no_bias = true},
                              narrow = {.filters = WIDTH, .kernel = {1, 1}, .no_bias = true},
                              depthwise = {.filters = HIDDEN,
                                           .kernel = {3, 3},
                                           .padding = {1, 1},
                                           .groups = HIDDEN,
                                           .no_bias = true};
    sdlf_model *net = sdlf_model_create("large");
    sdlf_node image = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(3, EDGE, EDGE));
    sdlf_node x = sdlf_conv2d(
        net, image, &(sdlf_conv2d_options){.filters = WIDTH, .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true});
    x = sdlf_relu(net, sdlf_batch_norm2d(net, x, NULL));
    sdlf_node y = sdlf_relu6(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, x, &wide), NULL));
    y = sdlf_relu6(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, y, &depthwise), NULL));
    y = sdlf_add(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, y, &narrow), NULL), x);
    y = sdlf_relu(net,
                  sdlf_conv2d(net, y, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {3, 3}, .padding = {1, 1}}));
    y = sdlf_relu6(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, y, &depthwise), NULL));
    sdlf_output(net, "y", sdlf_batch_norm2d(net, sdlf_conv2d(net, y, &narrow), NULL));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

/* On cpu, with 1 and with 5 threads, as steps of their own and joined; then with other weights, which all are made ready anew. */
static void large_blocks_are_those_of_parts(void)
{
    static float image[PICTURE], found[4][RESULT];
    sdlf_model *net = large_network();
    sdlf_calculator *cpu[2] = {NULL};
    sdlf_plan *plan[4] = {NULL};
    fill_random(image, PICTURE, 3);
    for (int i = 0; i < 4; i++) {
        if (i < 2) CHECK_OK(sdlf_calculator_open(&cpu[i], "cpu", &(sdlf_calculator_options){.threads = 1 + 4 * i}));
        CHECK_OK(sdlf_plan_create(&plan[i], net,
                                  &(sdlf_plan_options){.batch = 1, .forward = cpu[i % 2], .no_fusion = i >= 2}));
        CHECK_EQUAL(count_steps(plan[i], "conv2d_inverted_residual_forward"), i < 2 ? 2 : 0);
    }
    for (unsigned seed = 40; seed < 42; seed++) {
        fill_parameters(net, seed);
        for (int i = 0; i < 4; i++) {
            CHECK_OK(sdlf_plan_load_parameters(plan[i]));
            CHECK_OK(sdlf_plan_write(plan[i], "image", image));
            CHECK_OK(sdlf_plan_forward(plan[i]));
            CHECK_OK(sdlf_plan_read(plan[i], "y", found[i]));
        }
        CHECK(memcmp(found[0], found[1], sizeof found[0]) == 0);
        float largest = 0, difference = 0;
        for (int i = 0; i < RESULT; i++) {
            largest = fmaxf(largest, fabsf(found[2][i]));
            difference = fmaxf(difference, fabsf(found[0][i] - found[2][i]));
        }
        CHECK(largest > 0 && difference <= 1e-5f * largest);
    }
    for (int i = 0; i < 4; i++) sdlf_plan_free(plan[i]);
    for (int i = 0; i < 2; i++) sdlf_calculator_close(cpu[i]);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(large_blocks_are_those_of_parts);
    return test_summary();
}
