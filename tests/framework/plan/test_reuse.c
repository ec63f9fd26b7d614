/* SPDX-License-Identifier: MIT */
/* Plans that share parameters on a device, or a model, which rejects changes that would invalidate
 * them. */
#include "framework/plan/counting_device.h"
#include "framework/plan/networks.h"

/* An inference plan's parameters are uploaded once, and a plan that shares them has no copies of its own. */
static void inference_uploads_parameters_once(void)
{
    sdlf_calculator *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *first = NULL, *second = NULL;
    CHECK_OK(sdlf_plan_create(&first, net, &(sdlf_plan_options){.batch = 2, .forward = device}));
    uploaded = 0;
    CHECK_OK(sdlf_plan_create(&second, net, &(sdlf_plan_options){.batch = 1, .forward = device, .reuse = first}));
    CHECK(uploaded <= 64);
    if (first != NULL && second != NULL) {
        int64_t values = 4 * sdlf_model_trainable_count(net);
        CHECK(sdlf_plan_memory(first).parameters >= 2 * values); /* the model's and the device's */
        CHECK_EQUAL(sdlf_plan_memory(second).parameters, values);
        float image[72], one[6], two[3];
        fill_random(image, 72, 1);
        CHECK_OK(test_plan_write(first, "image", image));
        CHECK_OK(test_plan_write(second, "image", image + 36));
        uploaded = 0;
        CHECK_OK(sdlf_plan_forward(first));
        CHECK_OK(sdlf_plan_forward(second));
        CHECK_EQUAL(uploaded, 0);
        CHECK_OK(test_plan_read(first, "class", one));
        CHECK_OK(test_plan_read(second, "class", two));
        for (int i = 0; i < 3; i++) CHECK_CLOSE(two[i], one[3 + i], 1e-6);
    }
    sdlf_plan_free(second);
    sdlf_plan_free(first);
    sdlf_model_free(net);
    free(device);
}

/* Forward on the device, backward on the host: the device's parameters are those before the last update. A plan that
 * shares must not see them. */
static void reuse_never_shows_old_parameters(void)
{
    sdlf_calculator *host = test_open("reference"), *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL, *reusing = NULL, *own = NULL;
    float image[36], shown[3], expected[3];
    fill_random(image, 36, 1);
    sdlf_plan_options options = {.batch = 1, .mode = SDLF_TRAIN, .forward = device, .backward = host};
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    options.mode = SDLF_INFER;
    options.reuse = plan;
    CHECK_OK(sdlf_plan_create(&reusing, net, &options));
    if (plan != NULL && reusing != NULL) {
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){1}));
        CHECK_OK(sdlf_plan_step(plan, 0.5f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        CHECK_OK(sdlf_plan_load_parameters(reusing));
        options.reuse = NULL;
        CHECK_OK(sdlf_plan_create(&own, net, &options));
        CHECK_OK(test_plan_write(reusing, "image", image));
        CHECK_OK(sdlf_plan_forward(reusing));
        CHECK_OK(test_plan_read(reusing, "class", shown));
        CHECK_OK(test_plan_write(own, "image", image));
        CHECK_OK(sdlf_plan_forward(own));
        CHECK_OK(test_plan_read(own, "class", expected));
        for (int i = 0; i < 3; i++) CHECK_CLOSE(shown[i], expected[i], 0);
    }
    sdlf_plan_free(own);
    sdlf_plan_free(reusing);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    sdlf_calculator_close(host);
}

/* Three alternating steps of two plans that share their parameters on a device; timed before the last, or not. */
static uint32_t train_in_turns(sdlf_calculator *device, bool timed)
{
    sdlf_model *net = small_cnn();
    sdlf_plan *plans[2] = {NULL, NULL};
    float image[72];
    fill_random(image, 72, 1);
    sdlf_plan_options options = {
        .batch = 2, .mode = SDLF_TRAIN, .forward = device, .optimizer = sdlf_sgd(.momentum = 0.9f)};
    CHECK_OK(sdlf_plan_create(&plans[0], net, &options));
    options.batch = 1;
    options.reuse = plans[0];
    CHECK_OK(sdlf_plan_create(&plans[1], net, &options));
    for (int i = 0; plans[0] != NULL && plans[1] != NULL && i < 3; i++) {
        CHECK_OK(test_plan_write(plans[i % 2], "image", image));
        CHECK_OK(test_plan_write(plans[i % 2], "labels", (int32_t[]){1, 2}));
        CHECK_OK(sdlf_plan_step(plans[i % 2], 0.1f));
        if (i == 1 && timed) CHECK_OK(sdlf_plan_time(plans[1], 2));
    }
    if (plans[0] != NULL) CHECK_OK(sdlf_plan_store_parameters(plans[0]));
    uint32_t hash = sdlf_model_hash(net);
    sdlf_plan_free(plans[1]);
    sdlf_plan_free(plans[0]);
    sdlf_model_free(net);
    return hash;
}

static void timing_a_reusing_plan_changes_nothing(void)
{
    sdlf_calculator *device = make_device();
    uint32_t expected = train_in_turns(device, false);
    CHECK_EQUAL(train_in_turns(device, true), expected);
    free(device);
}

/* Two queues of one device would not wait for each other. */
static void reuse_wants_the_same_calculator(void)
{
    sdlf_calculator *one = NULL, *other = NULL;
    CHECK_OK(sdlf_calculator_open(&one, "guarded", NULL));
    CHECK_OK(sdlf_calculator_open(&other, "guarded", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *first = NULL, *second = NULL;
    CHECK_OK(sdlf_plan_create(&first, net, &(sdlf_plan_options){.batch = 1, .forward = one}));
    sdlf_plan_options options = {.batch = 2, .forward = other, .reuse = first};
    CHECK_FAILS(sdlf_plan_create(&second, net, &options), SDLF_ERROR_ARGUMENT, "another calculator in guarded:0");
    CHECK_FAILS(sdlf_plan_outline(&second, net, &options), SDLF_ERROR_ARGUMENT, "another calculator in guarded:0");
    options.forward = one;
    CHECK_OK(sdlf_plan_create(&second, net, &options));
    sdlf_plan_free(second);
    sdlf_model *twin = small_cnn();
    CHECK_FAILS(sdlf_plan_create(&second, twin, &options), SDLF_ERROR_ARGUMENT, "of another model");
    sdlf_model_free(twin);
    sdlf_plan_free(first);
    sdlf_model_free(net);
    sdlf_calculator_close(other);
    sdlf_calculator_close(one);
}

/* ---- one model ---- */

/* A second training plan with fewer optimizer states does not change those of the first. */
static void plans_of_one_model_keep_their_states(void)
{
    sdlf_calculator *host = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *adam = NULL, *plain = NULL;
    float image[36];
    fill_random(image, 36, 1);
    sdlf_plan_options options = {
        .batch = 1, .mode = SDLF_TRAIN, .forward = host, .optimizer = sdlf_adam(.beta1 = 0.8f)};
    CHECK_OK(sdlf_plan_create(&adam, net, &options));
    options.optimizer = sdlf_sgd(.momentum = 0);
    CHECK_OK(sdlf_plan_create(&plain, net, &options));
    if (adam != NULL) {
        CHECK_OK(test_plan_write(adam, "image", image));
        CHECK_OK(test_plan_write(adam, "labels", (int32_t[]){1}));
        CHECK_OK(sdlf_plan_step(adam, 0.01f));
        for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
            const sdlf_parameter *parameter = sdlf_model_parameter(net, i);
            if (parameter->spec.trainable) CHECK(sdlf_tensor_present(&parameter->state[1]));
        }
    }
    sdlf_plan_free(plain);
    sdlf_plan_free(adam);
    sdlf_model_free(net);
    sdlf_calculator_close(host);
}

static void a_model_in_use_keeps_its_parameters(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_model *net = small_cnn();
    sdlf_plan *training = NULL, *inference = NULL;
    CHECK_OK(sdlf_plan_create(&inference, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    CHECK_OK(sdlf_model_require_states(net, 2));
    CHECK_OK(sdlf_model_require_states(net, 0)); /* no plan trains it */
    CHECK_OK(sdlf_plan_create(
        &training, net,
        &(sdlf_plan_options){
            .batch = 1, .mode = SDLF_TRAIN, .forward = reference, .optimizer = sdlf_adam(.beta1 = 0.9f)}));
    uint32_t hash = sdlf_model_hash(net);
    CHECK_FAILS(sdlf_model_require_states(net, 1), SDLF_ERROR_ARGUMENT, "is being trained");
    CHECK_OK(sdlf_model_require_states(net, 3));
    CHECK_FAILS(sdlf_model_build(net, 7), SDLF_ERROR_ARGUMENT, "in use by 2 plans");
    CHECK_EQUAL(sdlf_model_hash(net), hash);
    sdlf_plan_free(training);
    CHECK_OK(sdlf_model_require_states(net, 0));
    CHECK_FAILS(sdlf_model_build(net, 7), SDLF_ERROR_ARGUMENT, "in use by 1 plan");
    sdlf_plan_free(inference);
    CHECK_OK(sdlf_model_build(net, 7));
    CHECK(sdlf_model_hash(net) != hash);
    CHECK_OK(sdlf_plan_create(&inference, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    sdlf_relu(net, (sdlf_node){.layer = 0});
    CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, "no layer can be added");
    CHECK_OK(sdlf_plan_forward(inference));
    sdlf_plan_free(inference);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(inference_uploads_parameters_once);
    RUN(reuse_never_shows_old_parameters);
    RUN(timing_a_reusing_plan_changes_nothing);
    RUN(plans_of_one_model_keep_their_states);
    RUN(reuse_wants_the_same_calculator);
    RUN(a_model_in_use_keeps_its_parameters);
    return test_summary();
}
