/* SPDX-License-Identifier: MIT */
/* Fused training against training in parts: the same weights, and fused where it should be and nowhere else. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 5, STEPS = 3, SIDE = 12, MAX_OPERATIONS = 32 };

/* ---- networks ---- */

/* Two fused convolutions, the second of which passes a gradient on; a hidden layer; everything has a bias. */
static sdlf_model *deep(void)
{
    sdlf_model *net = sdlf_model_create("deep");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    for (int i = 0; i < 2; i++) {
        x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3 + i, .kernel = {3, 3}, .padding = {1, 1}});
        x = sdlf_relu(net, x);
        x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    }
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 7}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* The same, and nothing has a bias. */
static sdlf_model *unbiased(void)
{
    sdlf_model *net = sdlf_model_create("unbiased");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 3}, .no_bias = true});
    x = sdlf_max_pool2d(net, sdlf_relu(net, x), &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 7, .no_bias = true}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3, .no_bias = true});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* Every activation between fully connected layers. SiLU's gradient wants its input, and stays a step of its own. */
static sdlf_model *activated(void)
{
    sdlf_model *net = sdlf_model_create("activated");
    sdlf_fully_connected_options hidden = {.units = 6};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_relu6(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_leaky_relu(net, sdlf_fully_connected(net, x, &hidden), NULL);
    x = sdlf_sigmoid(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_tanh(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_unary(net, sdlf_fully_connected(net, x, &hidden), &(sdlf_unary_options){.function = SDLF_UNARY_ELU});
    x = sdlf_unary(net, sdlf_fully_connected(net, x, &hidden), &(sdlf_unary_options){.function = SDLF_UNARY_SILU});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* An activation that two layers read: its gradient is a sum, and no layer's own. */
static sdlf_model *forked(void)
{
    sdlf_model *net = sdlf_model_create("forked");
    sdlf_fully_connected_options hidden = {.units = 6};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &hidden));
    x = sdlf_add(net, sdlf_fully_connected(net, x, &hidden), sdlf_fully_connected(net, x, &hidden));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* A loss of its own, with weights. */
static sdlf_model *weighted(void)
{
    sdlf_model *net = sdlf_model_create("weighted");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    sdlf_node labels = sdlf_input(net, "labels", SDLF_INT32, SDLF_SCALAR);
    sdlf_node weights = sdlf_input(net, "weights", SDLF_FLOAT32, SDLF_SCALAR);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_softmax_cross_entropy_options loss = {.name = "loss"};
    sdlf_output(net, "loss", sdlf_softmax_cross_entropy_weighted(net, x, labels, weights, &loss));
    return net;
}

static sdlf_model *(*const networks[])(void) = {deep, unbiased, activated, forked, weighted};
enum { NETWORKS = sizeof networks / sizeof networks[0] };

/* ---- the same weights ---- */

/* A few steps; the model's parameters afterwards, and the loss of each step. */
static void train(sdlf_model *net, const sdlf_plan_options *options, double loss[STEPS])
{
    sdlf_plan *plan = NULL;
    if (!CHECK_OK(sdlf_plan_create(&plan, net, options))) return;
    bool wide = options->dtype == SDLF_FLOAT64;
    float image[BATCH * SIDE * SIDE], loss32;
    double image64[BATCH * SIDE * SIDE];
    fill_random(image, BATCH * SIDE * SIDE, 31);
    for (int i = 0; i < BATCH * SIDE * SIDE; i++) image64[i] = (double)image[i];
    CHECK_OK(test_plan_write(plan, "image", wide ? (void *)image64 : (void *)image));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[BATCH]){0, 1, 2, 1, 0}));
    if (strcmp(sdlf_model_name(net), "weighted") == 0) {
        float weights[BATCH] = {0.25f, 0, 0.5f, 0.125f, 1};
        double weights64[BATCH] = {0.25, 0, 0.5, 0.125, 1};
        CHECK_OK(test_plan_write(plan, "weights", wide ? (void *)weights64 : (void *)weights));
    }
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(sdlf_plan_step(plan, 0.05f));
        CHECK_OK(test_plan_read(plan, "loss", wide ? (void *)&loss[i] : (void *)&loss32));
        if (!wide) loss[i] = (double)loss32;
    }
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
}

static void compare(sdlf_model *found, sdlf_model *expected, double tolerance)
{
    for (int p = 0; p < sdlf_model_parameter_count(expected); p++) {
        const sdlf_tensor *a = &sdlf_model_parameter(expected, p)->value, *b = &sdlf_model_parameter(found, p)->value;
        const float *x = a->data, *y = b->data;
        for (int64_t e = 0; e < sdlf_tensor_count(a); e++) {
            if (!CHECK_CLOSE((double)y[e], (double)x[e], tolerance)) return;
        }
    }
}

static void check_pair(sdlf_model *(*make)(void), sdlf_plan_options options, double tolerance)
{
    sdlf_model *nets[2] = {make(), make()};
    double loss[2][STEPS] = {{0}};
    for (int fused = 0; fused < 2; fused++) {
        options.no_fusion = fused == 0;
        train(nets[fused], &options, loss[fused]);
    }
    for (int s = 0; s < STEPS; s++) CHECK_CLOSE(loss[1][s], loss[0][s], tolerance);
    compare(nets[1], nets[0], tolerance);
    sdlf_model_free(nets[0]);
    sdlf_model_free(nets[1]);
}

/* In float64 on reference the same bits: the sums have one order, and no gradient is rounded where it is stored. In
 * float32 gradients that are stored are rounded, and other calculators add in another order: a few roundings of numbers
 * around 1, over three steps. */
static void fused_equals_unfused(void)
{
    const sdlf_optimizer optimizers[] = {
        sdlf_sgd(.momentum = 0),
        sdlf_sgd(.momentum = 0.9f, .weight_decay = 0.01f),
        sdlf_sgd(.momentum = 0.9f, .nesterov = true),
        sdlf_adam(.beta1 = 0.9f),
    };
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
        for (int n = 0; n < NETWORKS; n++) {
            for (int o = 0; o < 4; o++) {
                sdlf_plan_options options = {
                    .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .optimizer = optimizers[o]};
                check_pair(networks[n], options, 1e-5);
                options.label_smoothing = 0.1f;
                check_pair(networks[n], options, 1e-5);
                if (strcmp(name, "reference") != 0) continue;
                options.dtype = SDLF_FLOAT64;
                check_pair(networks[n], options, 0);
            }
        }
        sdlf_calculator_close(calculator);
    }
}

/* ---- what becomes what ---- */

/* The plan's operations, forward steps first, are these, and no others. */
static void check_operations(sdlf_model *net, const sdlf_plan_options *options, const char *const *expected)
{
    sdlf_plan *plan = NULL;
    if (!CHECK_OK(sdlf_plan_create(&plan, net, options))) return;
    int count = 0;
    for (; expected[count] != NULL; count++) {
        if (!CHECK(count < sdlf_plan_step_count(plan))) break;
        CHECK_TEXT(sdlf_plan_step_info(plan, count).operation, expected[count]);
    }
    CHECK_EQUAL(sdlf_plan_step_count(plan), count);
    sdlf_plan_free(plan);
}

static int count_operations(sdlf_model *net, const sdlf_plan_options *options, const char *name)
{
    sdlf_plan *plan = NULL;
    if (!CHECK_OK(sdlf_plan_create(&plan, net, options))) return -1;
    int count = count_steps(plan, name);
    sdlf_plan_free(plan);
    return count;
}

static void a_step_is_short(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_plan_options options = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = reference};
    static const char *const fused[MAX_OPERATIONS] = {"conv2d_relu_max_pool_forward",
                                                      "conv2d_relu_max_pool_forward",
                                                      "gemm",
                                                      "gemm",
                                                      "softmax_cross_entropy_forward",
                                                      "gemm_backward_sgd",
                                                      "gemm_backward_sgd",
                                                      "conv2d_relu_max_pool_backward_sgd",
                                                      "conv2d_relu_max_pool_backward_sgd"};
    sdlf_model *nets[2] = {deep(), unbiased()};
    check_operations(nets[0], &options, fused);
    static const char *const fused_unbiased[MAX_OPERATIONS] = {"conv2d_relu_max_pool_forward",
                                                               "gemm",
                                                               "gemm",
                                                               "softmax_cross_entropy_forward",
                                                               "gemm_backward_sgd",
                                                               "gemm_backward_sgd",
                                                               "conv2d_relu_max_pool_backward_sgd"};
    check_operations(nets[1], &options, fused_unbiased);

    sdlf_plan *plan = NULL; /* the work of a step is told where it is done */
    CHECK_OK(sdlf_plan_create(&plan, nets[0], &options));
    int layers = plan != NULL ? sdlf_plan_layer_count(plan) : 0;
    CHECK_EQUAL(layers, 5);
    for (int i = 0; i < layers; i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        CHECK(info.forward_cost.flops > 0);
        CHECK((info.backward_cost.flops > 0) == (i < 4)); /* the loss's gradient comes with the loss */
    }
    sdlf_plan_free(plan);
    sdlf_model_free(nets[0]);
    sdlf_model_free(nets[1]);
    sdlf_calculator_close(reference);
}

static void what_is_wanted_stays(void)
{
    sdlf_calculator *reference = NULL, *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    sdlf_model *net = deep(), *mixed = activated(), *fork = forked(), *loss = weighted();
    sdlf_plan_options plain = {.batch = BATCH, .mode = SDLF_TRAIN, .forward = reference}, options = plain;

    CHECK_EQUAL(count_operations(mixed, &plain, "gemm_backward_sgd"), 8);
    CHECK_EQUAL(count_operations(mixed, &plain, "activation_backward"), 1); /* of silu */
    CHECK_EQUAL(count_operations(mixed, &plain, "sgd_update"), 0);
    CHECK_EQUAL(count_operations(fork, &plain, "activation_backward"), 1);
    CHECK_EQUAL(count_operations(loss, &plain, "softmax_cross_entropy_backward"), 0);
    CHECK_EQUAL(count_operations(fork, &plain, "sgd_update"), 0);

    options.clip_norm = 1; /* updates wait for all gradients; the loss need not */
    CHECK_EQUAL(count_operations(net, &options, "sgd_update"), 8);
    CHECK_EQUAL(count_operations(net, &options, "softmax_cross_entropy_backward"), 0);

    options = plain, options.gradients_only = true;
    CHECK_EQUAL(count_operations(net, &options, "gemm_backward_sgd"), 0);
    CHECK_EQUAL(count_operations(net, &options, "conv2d_relu_max_pool_backward_sgd"), 0);
    CHECK_EQUAL(count_operations(net, &options, "conv2d_relu_max_pool_backward"), 2);

    options = plain, options.keep_activations = true;
    CHECK_EQUAL(count_operations(net, &options, "softmax_cross_entropy_backward"), 1);
    CHECK_EQUAL(count_operations(net, &options, "sgd_update"), 8);

    options = plain, options.backward = cpu; /* the loss is computed on one, its gradient on the other */
    CHECK_EQUAL(count_operations(net, &options, "softmax_cross_entropy_backward"), 1);

    options = plain; /* an activation whose gradient is computed elsewhere */
    options.placement = &(sdlf_placement){.layer = "relu_3", .backward = cpu};
    options.placement_count = 1;
    CHECK_EQUAL(count_operations(net, &options, "activation_backward"), 1);
    CHECK_EQUAL(count_operations(net, &options, "sgd_update"), 0);

    sdlf_model_free(net);
    sdlf_model_free(mixed);
    sdlf_model_free(fork);
    sdlf_model_free(loss);
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(fused_equals_unfused);
    RUN(a_step_is_short);
    RUN(what_is_wanted_stays);
    return test_summary();
}
