/* SPDX-License-Identifier: MIT */
/* Operations that together form an activation are fused into one, and others are not. */
#include <math.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 5, SIDE = 12 };

/* x sigmoid(x) where x has no other reader, where it has one, and a similar product with the sigmoid of another
 * value. */
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

static sdlf_node with_number(sdlf_model *net, sdlf_node x, sdlf_binary_layer_function function, float number,
                             bool first)
{
    return sdlf_binary(net, &x, 1,
                       &(sdlf_binary_layer_options){.function = function, .scalar = number, .scalar_first = first});
}

static sdlf_node product(sdlf_model *net, sdlf_node a, sdlf_node b)
{
    return sdlf_binary(net, (sdlf_node[]){a, b}, 2, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
}

/* The forms of gelu in files, and similar ones: another constant, another factor, an intermediate value read
 * elsewhere. */
enum { HALF_LAST, HALF_OF_ERF, HALF_OF_X, BY_PRODUCT, GELUS, NOT_HALF = GELUS, NOT_X, READ_TWICE, FORMS };

static sdlf_node gelu(sdlf_model *net, sdlf_node x, sdlf_node other, int form)
{
    sdlf_node y = form == BY_PRODUCT ? with_number(net, x, SDLF_LAYER_MULTIPLY, 0.70710678f, true)
                                     : with_number(net, x, SDLF_LAYER_DIVIDE, 1.41421356f, false);
    y = sdlf_unary(net, y, &(sdlf_unary_options){.function = SDLF_UNARY_ERF});
    y = with_number(net, y, SDLF_LAYER_ADD, 1, form == BY_PRODUCT);
    if (form == HALF_OF_X) return product(net, with_number(net, x, SDLF_LAYER_MULTIPLY, 0.5f, false), y);
    if (form == HALF_OF_ERF) return product(net, x, with_number(net, y, SDLF_LAYER_MULTIPLY, 0.5f, true));
    if (form == READ_TWICE) x = sdlf_add(net, x, y), other = x;
    y = product(net, form >= NOT_X ? other : x, y);
    return with_number(net, y, SDLF_LAYER_MULTIPLY, form == NOT_HALF ? 0.25f : 0.5f, false);
}

static void gelu_in_five_operations_is_one(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        for (int form = 0; form < FORMS; form++) {
            static float image[BATCH * SIDE * SIDE], found[2][BATCH * 6];
            sdlf_model *net = sdlf_model_create("gelu");
            sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
            sdlf_node other = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
            x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 6});
            sdlf_output(net, "y", gelu(net, x, other, form));
            CHECK_OK(sdlf_model_build(net, 1));
            fill_random(image, BATCH * SIDE * SIDE, 3);
            for (int parts = 0; parts < 2; parts++) {
                sdlf_plan *plan = NULL;
                CHECK_OK(sdlf_plan_create(
                    &plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator, .no_fusion = parts != 0}));
                if (plan != NULL) {
                    int unfused = form == NOT_X && !parts ? 3 : 4; /* then the division goes into the weights */
                    CHECK_EQUAL(count_steps(plan, "binary"), form < GELUS && !parts ? 0 : unfused);
                    CHECK_OK(test_plan_write(plan, "image", image));
                    CHECK_OK(sdlf_plan_forward(plan));
                    CHECK_OK(test_plan_read(plan, "y", found[parts]));
                }
                sdlf_plan_free(plan);
            }
            for (int i = 0; i < BATCH * 6; i++)
                CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5 * (1 + fabs((double)found[1][i])));
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(a_gate_in_two_operations_is_one);
    RUN(gelu_in_five_operations_is_one);
    return test_summary();
}
