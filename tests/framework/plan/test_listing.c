/* SPDX-License-Identifier: MIT */
/* The listing of a plan that spans two memory spaces, and queries about only one part of it. */
#include <stdlib.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

/* The number of copies for `serves` that move `content`. */
static int count_copies(const sdlf_plan *plan, sdlf_phase serves, const char *content)
{
    int count = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COPY) {
            CHECK(step.content == NULL && step.serves == step.phase);
            continue;
        }
        CHECK(step.content != NULL && step.cost.bytes > 0);
        count += step.serves == serves && strcmp(step.content, content) == 0;
    }
    return count;
}

/* Forward on the device, backward on the host. */
static void copies_say_what_they_move(void)
{
    sdlf_calculator *host = test_open("reference"), *device = test_open("guarded");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = device, .backward = host, .no_fusion = true};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_FORWARD, "conv2d.weight"), 1);
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_FORWARD, "fully_connected_2.bias"), 1);
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_BACKWARD, "output of relu"), 1);
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_BACKWARD, "output of max_pool2d"), 1);
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_BACKWARD, "input image"), 1);
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_BACKWARD, "output of conv2d"), 0); /* ReLU's gradient does not need it */
    sdlf_plan_free(plan);

    const sdlf_placement pool = {.layer = "max_pool2d", .forward = host, .backward = device};
    options = (sdlf_plan_options){
        .batch = 2, .mode = SDLF_TRAIN, .forward = host, .placement = &pool, .placement_count = 1, .no_fusion = true};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_BACKWARD, "output gradient of max_pool2d"), 1);
    CHECK_EQUAL(count_copies(plan, SDLF_PHASE_BACKWARD, "output gradient of relu"), 1);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(device);
    sdlf_calculator_close(host);
}

/* Every layer of the model, fused or not, is found in the line that names it. */
static void layers_are_found_in_their_lines(void)
{
    sdlf_calculator *host = test_open("cpu");
    sdlf_model *net = small_cnn();
    for (int fused = 0; fused < 2; fused++) {
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(
            &plan, net,
            &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = host, .no_fusion = fused == 0}));
        for (int i = 0; i < sdlf_model_layer_count(net); i++) {
            const char *name = sdlf_model_layer(net, i)->name;
            int line = sdlf_plan_layer_of(plan, name);
            bool listed = strcmp(name, "image") != 0 && strcmp(name, "softmax") != 0; /* listed as its loss */
            CHECK((line >= 0) == listed);
            if (line >= 0) CHECK(strstr(sdlf_plan_layer_info(plan, line).layer, name) != NULL);
        }
        CHECK_EQUAL(sdlf_plan_layer_of(plan, "loss"), sdlf_plan_layer_count(plan) - 1);
        CHECK_EQUAL(sdlf_plan_layer_of(plan, "conv2d") == sdlf_plan_layer_of(plan, "relu"), fused);
        CHECK_EQUAL(sdlf_plan_layer_of(plan, "nothing"), -1);
        sdlf_plan_free(plan);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(host);
}

/* A backward pass by itself uses the existing activations, whatever wrote them. */
static void backward_takes_what_it_finds(void)
{
    sdlf_calculator *host = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_binding relu, gradient;
    float image[72], before[24], after[24];
    fill_random(image, 72, 1);
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = host, .keep_activations = true, .gradients_only = true};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 1}));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_backward(plan));
    CHECK_OK(sdlf_plan_gradient(plan, "fully_connected_2.weight", &gradient));
    test_download(&gradient, before);
    CHECK_OK(sdlf_plan_activation(plan, "relu_2", false, &relu));
    float *values = calloc((size_t)sdlf_tensor_count(&relu.tensor), sizeof *values);
    test_download(&relu, values);
    for (int64_t i = 0; i < sdlf_tensor_count(&relu.tensor); i++) values[i] *= 2;
    test_upload(&relu, values);
    CHECK_OK(sdlf_plan_backward(plan));
    test_download(&gradient, after);
    double sum = 0;
    for (int i = 0; i < 18; i++) {
        CHECK_CLOSE(after[i], 2 * before[i], 1e-6);
        sum += before[i] * before[i];
    }
    CHECK(sum > 0);
    free(values);
    sdlf_plan_free(plan);
    options.gradients_only = false;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_FAILS(sdlf_plan_backward(plan), SDLF_ERROR_ARGUMENT, "gradients_only");
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(host);
}

/* An algorithm may be specified for one calculator's convolutions; the other's are not affected. */
static void algorithms_of_one_calculator(void)
{
    sdlf_calculator *cpu = test_open("cpu"), *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = reference, .backward = cpu, .no_fusion = true};
    options.conv_algorithm = "im2col";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'reference' has no convolution algorithm 'im2col'");
    options.conv_algorithm = "cpu:im2col";
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    sdlf_plan_free(plan);
    options.conv_algorithm = "reference:im2col";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'reference' has no convolution algorithm 'im2col'");
    options.conv_algorithm = "abacus:im2col";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'abacus:im2col': no layer of this plan runs on calculator 'abacus'");
    options.no_fusion =
        false; /* a fused convolution has no choice of algorithm; an unknown name is nevertheless an error */
    options.forward = cpu;
    options.conv_algorithm = "im2lco";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'cpu' has no convolution algorithm 'im2lco'");
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* The number of dense products on that calculator that use the algorithm; none there uses another. */
static int count_products(const sdlf_plan *plan, const char *calculator, const char *algorithm)
{
    int count = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (strcmp(step.operation, "gemm") != 0 || strcmp(step.calculator, calculator) != 0) continue;
        CHECK_TEXT(step.algorithm, algorithm);
        count++;
    }
    return count;
}

/* The same for dense products, which must have the algorithm. */
static void product_algorithms_of_one_calculator(void)
{
    sdlf_calculator *cpu = test_open("cpu"), *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = reference, .backward = cpu, .no_fusion = true};
    options.gemm_algorithm = "built-in";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'reference' has no gemm algorithm 'built-in'");
    options.gemm_algorithm = "cpu:built-in";
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK(count_products(plan, "cpu", "built-in") > 0);
    sdlf_plan_free(plan);
    options.gemm_algorithm = "reference:built-in";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'reference' has no gemm algorithm 'built-in'");
    options.gemm_algorithm = "abacus:built-in";
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "gemm algorithm 'abacus:built-in': no layer of this plan runs on calculator 'abacus'");
    sdlf_model_free(net);
    net = sdlf_model_create("no product");
    sdlf_relu(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(3)));
    options = (sdlf_plan_options){.batch = 2, .forward = cpu, .gemm_algorithm = "biult-in"};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "'cpu' has no gemm algorithm 'biult-in' (did you mean 'built-in'?); it has: auto, built-in");
    options.gemm_algorithm = "cpu:built-in";
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_EQUAL(count_products(plan, "cpu", ""), 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* The loss that a training plan adds may be placed, although the test plan of the same training has none. */
static void the_loss_has_a_place(void)
{
    sdlf_calculator *host = test_open("reference"), *device = test_open("guarded");
    sdlf_model *net = small_cnn();
    const sdlf_placement loss = {.layer = "loss", .forward = device, .backward = host};
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = host, .placement = &loss, .placement_count = 1};
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    sdlf_layer_info info = sdlf_plan_layer_info(plan, sdlf_plan_layer_of(plan, "loss"));
    CHECK_TEXT(info.forward, "guarded");
    CHECK_TEXT(info.backward, "reference");
    sdlf_plan_free(plan);
    options.mode = SDLF_INFER;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(device);
    sdlf_calculator_close(host);
}

static void steps_beyond_are_nothing(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}))) {
        int count = sdlf_plan_step_count(plan);
        CHECK(sdlf_plan_step_info(plan, count - 1).layer != NULL);
        CHECK(sdlf_plan_step_info(plan, count).layer == NULL && sdlf_plan_step_info(plan, count).offset == -1);
        CHECK(sdlf_plan_step_info(plan, -1).layer == NULL);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(copies_say_what_they_move);
    RUN(layers_are_found_in_their_lines);
    RUN(backward_takes_what_it_finds);
    RUN(algorithms_of_one_calculator);
    RUN(product_algorithms_of_one_calculator);
    RUN(the_loss_has_a_place);
    RUN(steps_beyond_are_nothing);
    return test_summary();
}
