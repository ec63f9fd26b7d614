/* SPDX-License-Identifier: MIT */
/* Inference on cpu: inverted residual blocks that are large enough are fused into one operation each, with the same
 * results, and with the model's current weights. */
#include <math.h>

#include "framework/plan/layouts/networks.h"
#include "testing.h"

enum { EDGE = 96, WIDTH = 16, HIDDEN = 32 }; /* 1.2 MB in between: cpu fuses it */
enum { PICTURE = 3 * EDGE * EDGE, RESULT = WIDTH * EDGE * EDGE };

/* A first layer, a residual block, and a block without expansion; all normalised. */
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

/* On cpu, with 1 and with 5 threads, unfused and fused; then with other weights, all of which are prepacked
 * again. */
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
            CHECK_OK(test_plan_write(plan[i], "image", image));
            CHECK_OK(sdlf_plan_forward(plan[i]));
            CHECK_OK(test_plan_read(plan[i], "y", found[i]));
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

/* ---- a block whose depthwise filters are data, not parameters ---- */

static const sdlf_window2d filter_window = {
    .size = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .padding_before = {1, 1}, .padding_after = {1, 1}};

static sdlf_status infer_filtered(const sdlf_layer *layer, sdlf_signature *signature)
{
    (void)layer;
    return sdlf_signature_add_output(signature, signature->dtype, signature->input_shape[0]);
}

static sdlf_status filter(const sdlf_layer *layer, sdlf_layer_context *context)
{
    (void)layer;
    const sdlf_operation operation = {.kind = SDLF_CONV2D_FORWARD,
                                      .in = {context->input[0], context->input[1]},
                                      .out = {context->output[0]},
                                      .conv2d = {.window = filter_window, .groups = HIDDEN}};
    return sdlf_emit(context, &operation);
}

static const sdlf_layer_class filter_class = {
    .name = "filter",
    .options_size = sizeof(const char *), /* its name */
    .minimum_inputs = 2,
    .maximum_inputs = 2,
    .infer = infer_filtered,
    .forward = filter,
};

/* The filters have the batch's size, which is the number of channels. */
static sdlf_model *filter_network(uint64_t seed)
{
    sdlf_model *net = sdlf_model_create("filter");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(WIDTH, EDGE, EDGE));
    sdlf_node filters = sdlf_input(net, "filters", SDLF_FLOAT32, sdlf_shape(1, 3, 3));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = HIDDEN, .kernel = {1, 1}});
    x = sdlf_model_add(net, &filter_class, NULL, (const sdlf_node[]){x, filters}, 2);
    sdlf_output(net, "y", sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = WIDTH, .kernel = {1, 1}}));
    CHECK_OK(sdlf_model_build(net, seed));
    return net;
}

/* Its other weights are the model's, prepacked: they are stale once the model's weights change. */
static void other_weights_of_a_block_become_old(void)
{
    static float values[HIDDEN * 9];
    const sdlf_plan_constant filters = {.input = "filters",
                                        .tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(HIDDEN, 1, 3, 3), values)};
    const char *path = test_path("other.safetensors");
    sdlf_model *net = filter_network(1), *other = filter_network(2);
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_model_save(other, path));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    const sdlf_plan_options options = {.batch = HIDDEN, .forward = cpu, .constants = &filters, .constant_count = 1};
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        CHECK_EQUAL(count_steps(plan, "conv2d_inverted_residual_forward"), 1);
        CHECK(sdlf_plan_is_current(plan));
        CHECK_OK(sdlf_model_load(net, path));
        CHECK_FAILS(sdlf_plan_forward(plan), SDLF_ERROR_ARGUMENT, "changed since this plan took them");
        CHECK_OK(sdlf_plan_load_parameters(plan));
        CHECK(sdlf_plan_is_current(plan));
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(cpu);
    sdlf_model_free(other);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(large_blocks_are_those_of_parts);
    RUN(other_weights_of_a_block_become_old);
    return test_summary();
}
