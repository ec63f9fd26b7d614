/* SPDX-License-Identifier: MIT */
/* Placement across memory spaces: every placement computes the same, copies are counted, invalid ones are rejected. */
#include <math.h>

#include "framework/plan/counting_device.h"
#include "framework/plan/networks.h"

/* Train the branching network for four steps with these options. Returns the parameters' hash; stores the last loss. */
static uint32_t train(sdlf_plan_options options, float *loss)
{
    sdlf_model *net = branching_net(0.25f);
    sdlf_plan *plan = NULL;
    options.batch = 3;
    options.mode = SDLF_TRAIN;
    options.optimizer = sdlf_sgd(.momentum = 0.9f);
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    uint32_t hash = 0;
    if (plan != NULL) {
        double sum = 0;
        float a[150], b[75];
        fill_random(a, 150, 11);
        fill_random(b, 75, 12);
        for (int i = 0; i < 4; i++) {
            CHECK_OK(test_plan_write(plan, "a", a));
            CHECK_OK(test_plan_write(plan, "b", b));
            CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){2, 0, 1}));
            CHECK_OK(sdlf_plan_step(plan, 0.1f));
            CHECK_OK(test_plan_read(plan, "loss", loss));
            sum += 3 * (double)*loss;
        }
        sdlf_metrics metrics;
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_CLOSE(metrics.samples, 12, 0);
        CHECK_CLOSE(metrics.loss_sum, sum, 1e-5);
        CHECK(metrics.correct >= 0 && metrics.correct <= 12 && metrics.correct == floor(metrics.correct));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        hash = sdlf_model_hash(net);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

static void every_placement_computes_the_same(void)
{
    sdlf_calculator *host = test_open("reference"), *device = make_device();
    float expected_loss = NAN, loss = NAN;
    uint32_t expected = train((sdlf_plan_options){.forward = host, .no_fusion = true}, &expected_loss);
    CHECK(isfinite(expected_loss));
    sdlf_placement placements[] = {
        {.layer = "conv2d_2", .forward = device},
        {.layer = "concat", .forward = device, .backward = host},
        {.layer = "batch_norm2d", .forward = host, .backward = device},
        {.layer = "fully_connected", .forward = device, .backward = device},
        {.layer = "loss", .forward = device},
    };
    sdlf_plan_options options[] = {
        {.forward = device},
        {.forward = device, .backward = host},
        {.forward = host, .backward = device},
        {.forward = host, .placement = placements, .placement_count = 5},
        {.forward = device, .placement = placements, .placement_count = 5},
        {.forward = device, .backward = host, .keep_activations = true},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        train(options[i], &loss); /* with different calculators, other steps are fused and round differently */
        CHECK_CLOSE(loss, expected_loss, 1e-6);
        options[i].no_fusion = true;
        CHECK_EQUAL(train(options[i], &loss), expected);
        CHECK_CLOSE(loss, expected_loss, 0);
    }
    float clipped = NAN, placed = NAN;
    uint32_t clipped_hash = train((sdlf_plan_options){.forward = host, .clip_norm = 0.5f, .no_fusion = true}, &clipped);
    sdlf_plan_options mixed = {.forward = device,
                               .backward = host,
                               .placement = placements,
                               .placement_count = 5,
                               .clip_norm = 0.5f,
                               .no_fusion = true};
    CHECK_EQUAL(train(mixed, &placed), clipped_hash);
    CHECK(clipped_hash != expected);
    free(device);
    sdlf_calculator_close(host);
}

static const char *calculator_of(const sdlf_plan *plan, const char *layer, bool backward)
{
    sdlf_layer_info info = sdlf_plan_layer_info(plan, sdlf_plan_layer_of(plan, layer));
    return backward ? info.backward : info.forward;
}

/* Every named layer, from the first placement to the last, and no other. */
static void layers_are_where_they_were_put(void)
{
    sdlf_calculator *host = test_open("reference"), *device = make_device();
    sdlf_model *net = branching_net(0);
    sdlf_plan *plan = NULL;
    const char *here = host->type->name, *there = device->type->name;
    const sdlf_placement placements[] = {
        {.layer = "tanh", .forward = device},
        {.layer = "fully_connected", .backward = device},
        {.layer = "loss", .forward = device, .backward = device},
    };
    CHECK_OK(sdlf_plan_create(&plan, net,
                              &(sdlf_plan_options){.batch = 3,
                                                   .mode = SDLF_TRAIN,
                                                   .forward = host,
                                                   .placement = placements,
                                                   .placement_count = 3,
                                                   .no_fusion = true}));
    if (plan != NULL) {
        CHECK_TEXT(calculator_of(plan, "tanh", false), there);
        CHECK_TEXT(calculator_of(plan, "tanh", true), here);
        CHECK_TEXT(calculator_of(plan, "fully_connected", false), here);
        CHECK_TEXT(calculator_of(plan, "fully_connected", true), there);
        CHECK_TEXT(calculator_of(plan, "loss", false), there);
        CHECK_TEXT(calculator_of(plan, "conv2d", false), here);
        CHECK_TEXT(calculator_of(plan, "conv2d_2", true), here);
    }
    sdlf_plan_free(plan);
    /* names that exist only in training are accepted in a plan for inference; other unknown names are not */
    sdlf_plan_options infer = {.batch = 3, .forward = host, .placement = placements + 2, .placement_count = 1};
    CHECK_OK(sdlf_plan_create(&plan, net, &infer));
    sdlf_plan_free(plan);
    infer.placement = &(sdlf_placement){.layer = "los", .forward = device};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &infer), SDLF_ERROR_ARGUMENT, "has no layer 'los'");
    sdlf_model_free(net);
    free(device);
    sdlf_calculator_close(host);
}

/* Forward on the device, backward on the host: per step the new parameters go up, what backward reads comes down. */
static void copies_are_counted(void)
{
    sdlf_calculator *host = test_open("reference"), *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = device, .backward = host}));
    if (plan != NULL) {
        float image[72];
        fill_random(image, 72, 1);
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 1}));
        uploads = downloads = 0;
        uploaded = downloaded = 0;
        CHECK_OK(sdlf_plan_step(plan, 0.1f));
        int64_t up = 0, down = 0;
        for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
            sdlf_step_info step = sdlf_plan_step_info(plan, i);
            if (step.phase != SDLF_PHASE_COPY) continue;
            bool to_device = strcmp(step.operation, "copy host to device") == 0;
            *(to_device ? &up : &down) += step.cost.bytes;
            CHECK_TEXT(step.calculator, "device");
        }
        CHECK_EQUAL(up, 4 * sdlf_model_trainable_count(net));
        CHECK_EQUAL(downloaded, down);
        CHECK(uploaded >= up && uploaded <= up + 64); /* and the scalars of the step */
        CHECK(down > 0 && down < 4 * 2 * (36 + 4 * 9 * 2 + 4 * 9 + 36 + 6 + 6 + 3 + 3 + 8));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
    sdlf_calculator_close(host);
}

/* Each would queue its work separately, and neither would wait for the other. */
static void one_calculator_a_device(void)
{
    sdlf_calculator *device = make_device(), *other = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 1, .mode = SDLF_TRAIN, .forward = device, .backward = other};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "two calculators in the memory of device");
    CHECK(plan == NULL);
    sdlf_model_free(net);
    free(other);
    free(device);
}

static void a_missing_kernel_is_named(void)
{
    sdlf_calculator *device = make_device();
    device_class.kernel[SDLF_MAX_POOL2D_FORWARD] = (sdlf_kernel_slot){.run = NULL};
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = device});
    CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, "max_pool2d_forward");
    CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, "'max_pool2d'");
    CHECK_FAILS(status, SDLF_ERROR_UNSUPPORTED, "calculator 'device'");
    CHECK(plan == NULL);
    sdlf_model_free(net);
    free(device);
}

int main(void)
{
    RUN(every_placement_computes_the_same);
    RUN(layers_are_where_they_were_put);
    RUN(copies_are_counted);
    RUN(one_calculator_a_device);
    RUN(a_missing_kernel_is_named);
    return test_summary();
}
