/* SPDX-License-Identifier: MIT */
/* Plans: options, inference, memory that is known in advance, the plan's description, failure without leaks. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

static void options_are_checked(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.forward = reference}), SDLF_ERROR_ARGUMENT,
                "batch must be at least 1");
    CHECK_FAILS(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = -3, .forward = reference}),
                SDLF_ERROR_ARGUMENT, "not -3");
    CHECK_FAILS(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = INT64_MAX, .forward = reference}),
                SDLF_ERROR_ARGUMENT, "at most");
    CHECK_FAILS(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1}), SDLF_ERROR_ARGUMENT, "no calculator");
    CHECK_FAILS(
        sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference, .dtype = SDLF_INT32}),
        SDLF_ERROR_ARGUMENT, "float32 or float64");
    CHECK_FAILS(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference, .clip_norm = NAN}),
                SDLF_ERROR_ARGUMENT, "clip_norm");
    sdlf_placement nowhere = {.layer = "conv9", .forward = reference};
    CHECK_FAILS(sdlf_plan_create(&plan, net,
                                 &(sdlf_plan_options){
                                     .batch = 1, .forward = reference, .placement = &nowhere, .placement_count = 1}),
                SDLF_ERROR_ARGUMENT, "no layer 'conv9'");
    CHECK(plan == NULL);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void impossible_shapes_name_the_layer(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = sdlf_model_create("bad");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 5, 5));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = "c2", .filters = 2, .kernel = {1, 1}});
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {7, 7}});
    sdlf_output(net, "y", x);
    sdlf_plan *plan;
    sdlf_status status = sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference});
    CHECK_FAILS(status, SDLF_ERROR_SHAPE, "layer 2 'max_pool2d'");
    CHECK_FAILS(status, SDLF_ERROR_SHAPE, "window 7x7 is larger than its input 5x5");
    CHECK_FAILS(status, SDLF_ERROR_SHAPE, "from conv2d 'c2'");
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void building_errors_are_kept(void)
{
    sdlf_model *net = sdlf_model_create("bad");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 5, 5));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.name = "c", .filters = -1, .kernel = {1, 1}});
    x = sdlf_relu(net, x);
    CHECK(x.layer < 0);
    CHECK_FAILS(sdlf_model_status(net), SDLF_ERROR_ARGUMENT, "'c'");
    CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_ARGUMENT, "filters");
    sdlf_model_free(net);
    CHECK_FAILS(sdlf_model_status(NULL), SDLF_ERROR_MEMORY, "memory");
}

static void inference_gives_probabilities(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    for (int d = 0; d < 2; d++) {
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = 2, .forward = reference, .dtype = d == 0 ? SDLF_FLOAT32 : SDLF_FLOAT64};
        CHECK_OK(sdlf_plan_create(&plan, net, &options));
        if (plan == NULL) break;
        float image[2 * 36];
        double image64[2 * 36];
        fill_random(image, 72, 5);
        for (int i = 0; i < 72; i++) image64[i] = image[i];
        CHECK_OK(test_plan_write(plan, "image", d == 0 ? (void *)image : (void *)image64));
        CHECK_OK(sdlf_plan_forward(plan));
        double p64[6];
        float p32[6];
        CHECK_OK(test_plan_read(plan, "class", d == 0 ? (void *)p32 : (void *)p64));
        for (int i = 0; d == 0 && i < 6; i++) p64[i] = p32[i];
        CHECK_CLOSE(p64[0] + p64[1] + p64[2], 1, 1e-6);
        CHECK_CLOSE(p64[3] + p64[4] + p64[5], 1, 1e-6);
        CHECK_FAILS(sdlf_plan_step(plan, 0.1f), SDLF_ERROR_ARGUMENT, "inference plan");
        sdlf_binding binding;
        CHECK_FAILS(sdlf_plan_output(plan, "nothing", &binding), SDLF_ERROR_ARGUMENT, "no output 'nothing'");
        CHECK_FAILS(sdlf_plan_input(plan, "nothing", &binding), SDLF_ERROR_ARGUMENT, "no input 'nothing'");
        sdlf_plan_free(plan);
    }
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void memory_is_known_beforehand(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = branching_net(0.25f);
    sdlf_plan_options options = {
        .batch = 5, .mode = SDLF_TRAIN, .forward = reference, .optimizer = sdlf_sgd(.momentum = 0.5f)};
    sdlf_memory_info measured, made;
    CHECK_OK(sdlf_plan_measure(&measured, net, &options));
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan != NULL) {
        made = sdlf_plan_memory(plan);
        CHECK_EQUAL(made.arena, measured.arena);
        CHECK_EQUAL(made.parameters, measured.parameters);
        CHECK_EQUAL(made.states, measured.states);
        CHECK(made.arena > 0 && made.arena < made.unshared);
        int64_t trainable = sdlf_model_trainable_count(net);
        CHECK_EQUAL(made.states, 4 * trainable);
        CHECK_EQUAL(made.parameters, 4 * (trainable + 6)); /* and the running statistics of 3 channels */
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* How often the callback may still return true. */
static bool go_on(void *user)
{
    return --*(int *)user >= 0;
}

/* Timing that is ended early has medians of the completed runs, or none; either way it has no side effects. */
static void timing_ends_early(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    for (int mode = SDLF_INFER; mode <= SDLF_TRAIN; mode++) {
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = 2, .mode = (sdlf_mode)mode, .forward = reference};
        if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) continue;
        int steps = sdlf_plan_step_count(plan), left = 2 * steps + 1;
        const uint32_t hash = sdlf_model_hash(net);
        const sdlf_timing timing = {.repeats = 1000, .go_on = go_on, .user = &left};
        CHECK_OK(sdlf_plan_time_with(plan, &timing)); /* to warm up, and once; the next ends after a step */
        CHECK(left < 0);
        for (int i = 0; i < steps; i++) CHECK(sdlf_plan_step_info(plan, i).seconds > 0);
        left = steps + 1;
        CHECK_FAILS(sdlf_plan_time_with(plan, &timing), SDLF_ERROR_INTERRUPTED, "before all steps had run");
        CHECK_EQUAL(sdlf_model_hash(net), hash);
        CHECK_FAILS(sdlf_plan_time_with(plan, NULL), SDLF_ERROR_ARGUMENT, "timing is NULL");
        CHECK_FAILS(sdlf_plan_time_with(plan, &(sdlf_timing){.repeats = 0}), SDLF_ERROR_ARGUMENT, "at least 1");
        CHECK_FAILS(sdlf_plan_time_with(plan, &(sdlf_timing){.repeats = 1, .together = -1}), SDLF_ERROR_ARGUMENT, "-1");
        sdlf_plan_free(plan);
    }
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 2, .forward = reference}));
    int left = 3 * sdlf_plan_step_count(plan);
    const sdlf_timing rows = {.repeats = 3, .together = 2, .go_on = go_on, .user = &left};
    CHECK_OK(sdlf_plan_time_with(plan, &rows)); /* called three times per step, except for the first run */
    CHECK_EQUAL(left, 0);
    left = 1;
    CHECK_FAILS(sdlf_plan_time_with(plan, &rows), SDLF_ERROR_INTERRUPTED, "before all steps had run");
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* Two plans of one model at different batch sizes see one set of parameters. */
static void plans_share_the_model(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *train = NULL, *infer = NULL;
    CHECK_OK(sdlf_plan_create(&train, net, &(sdlf_plan_options){.batch = 3, .mode = SDLF_TRAIN, .forward = reference}));
    CHECK_OK(sdlf_plan_create(&infer, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    if (train != NULL && infer != NULL) {
        float image[108], before[3], after[3];
        int32_t labels[3] = {0, 1, 2};
        fill_random(image, 108, 3);
        CHECK_OK(test_plan_write(infer, "image", image));
        CHECK_OK(sdlf_plan_forward(infer));
        CHECK_OK(test_plan_read(infer, "class", before));
        CHECK_OK(test_plan_write(train, "image", image));
        CHECK_OK(test_plan_write(train, "labels", labels));
        uint32_t hash = sdlf_model_hash(net);
        CHECK_OK(sdlf_plan_step(train, 0.5f));
        CHECK(sdlf_model_hash(net) != hash);
        CHECK_OK(sdlf_plan_forward(infer));
        CHECK_OK(test_plan_read(infer, "class", after));
        CHECK(memcmp(before, after, sizeof before) != 0);
        hash = sdlf_model_hash(net);
        CHECK_OK(sdlf_plan_time(train, 3)); /* timing leaves no trace */
        CHECK_EQUAL(sdlf_model_hash(net), hash);
        double seconds = 0;
        for (int i = 0; i < sdlf_plan_step_count(train); i++) seconds += sdlf_plan_step_info(train, i).seconds;
        CHECK(seconds > 0);
        CHECK_OK(sdlf_plan_time_together(infer, 2, 3));
        CHECK_OK(test_plan_read(infer, "class", before));
        CHECK(memcmp(before, after, sizeof before) == 0);
        for (int i = 0; i < sdlf_plan_step_count(infer); i++) CHECK(sdlf_plan_step_info(infer, i).seconds > 0);
        CHECK_FAILS(sdlf_plan_time_together(infer, 2, 0), SDLF_ERROR_ARGUMENT, "at least 1");
        CHECK_FAILS(sdlf_plan_time_together(train, 2, 3), SDLF_ERROR_ARGUMENT, "only inference plans");
    }
    sdlf_plan_free(train);
    sdlf_plan_free(infer);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void a_plan_describes_itself(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = reference, .no_fusion = true}));
    if (plan != NULL) {
        CHECK_EQUAL(sdlf_plan_layer_count(plan), 7); /* six layers without the softmax, and the loss */
        sdlf_layer_info conv = sdlf_plan_layer_info(plan, 0);
        CHECK_TEXT(conv.layer, "conv2d");
        CHECK_TEXT(conv.forward, "reference");
        CHECK_EQUAL(conv.parameters, 4 * 9 + 4);
        CHECK_EQUAL(conv.forward_cost.flops, 2LL * 2 * 4 * 36 * 9);
        CHECK(sdlf_shape_equal(conv.shape, sdlf_shape(2, 4, 6, 6)));
        CHECK_TEXT(sdlf_plan_layer_info(plan, 6).layer, "loss");
        bool found = false;
        for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
            sdlf_step_info step = sdlf_plan_step_info(plan, i);
            found = found || strcmp(step.operation, "conv2d_backward_weights") == 0;
            CHECK(strcmp(step.operation, "conv2d_backward_input") != 0); /* the image's gradient is not needed */
        }
        CHECK(found);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static sdlf_status make_and_free(void *calculator)
{
    sdlf_model *net = branching_net(0.25f);
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_model_status(net);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&plan, net,
                                  &(sdlf_plan_options){.batch = 2,
                                                       .mode = SDLF_TRAIN,
                                                       .forward = calculator,
                                                       .clip_norm = 1,
                                                       .optimizer = sdlf_adam(.beta1 = 0.8f)});
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return status;
}

static void every_allocation_may_fail(void)
{
    sdlf_calculator *reference = test_open("reference");
    test_every_allocation("making a plan", make_and_free, reference);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(options_are_checked);
    RUN(impossible_shapes_name_the_layer);
    RUN(building_errors_are_kept);
    RUN(inference_gives_probabilities);
    RUN(memory_is_known_beforehand);
    RUN(plans_share_the_model);
    RUN(timing_ends_early);
    RUN(a_plan_describes_itself);
    RUN(every_allocation_may_fail);
    return test_summary();
}
