/* SPDX-License-Identifier: MIT */
/* x sigmoid(x) in two operations becomes one, where it is that. */
#include <math.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 5, SIDE = 12 };

/* x sigmoid(x) where x has no other reader, where it has, and where what looks like it is the product with another's sigmoid. */
static sdlf_model *gated(void)
{
    sdlf_model *net = sdlf_model_create("gated");
    const sdlf_binary_layer_options multiply = {.function = SDLF_LAYER_MULTIPLY};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 3}});
    x = sdlf_binary(net, (sdlf_node[]){x, sdlf_sigmoid(net, x)}, 2, &multiply);
    sdlf_node y = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
    sdlf_node z = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
    sdlf_node own = sdlf_binary(net, (sdlf_node[]){sdlf_sigmoid(net, y), y}, 2, &multiply);
    sdlf_node others = sdlf_binary(net, (sdlf_node[]){y, sdlf_sigmoid(net, z)}, 2, &multiply);
    sdlf_output(net, "y", sdlf_add(net, own, others));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void a_gate_in_two_operations_is_one(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float image[BATCH * SIDE * SIDE], found[2][BATCH * 6];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = gated();
        fill_random(image, BATCH * SIDE * SIDE, 3);
        for (int parts = 0; parts < 2; parts++) {
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(
                &plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .no_fusion = parts != 0}));
            if (plan != NULL) {
                CHECK_EQUAL(count_steps(plan, "binary"), parts ? 3 : 1);
                CHECK_OK(test_plan_write(plan, "image", image));
                CHECK_OK(sdlf_plan_forward(plan));
                CHECK_OK(test_plan_read(plan, "y", found[parts]));
            }
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < BATCH * 6; i++)
            CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5 * (1 + fabs((double)found[1][i])));
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(a_gate_in_two_operations_is_one);
    return test_summary();
}
