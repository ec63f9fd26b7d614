/* SPDX-License-Identifier: MIT */
/* NULL pointers passed to functions for plans and algorithm choices. */
#include "framework/nulls/nulls.h"

#include "framework/plan/networks.h"

static void making(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan_options options = {.batch = 1, .forward = reference};
    sdlf_plan *plan = (sdlf_plan *)net; /* no plan: a failure takes it away */
    sdlf_memory_info memory;
    REFUSED(sdlf_plan_create(NULL, net, &options), "plan");
    NO_MODEL(sdlf_plan_create(&plan, NULL, &options));
    REFUSED(sdlf_plan_create(&plan, net, NULL), "options");
    CHECK(plan == NULL);
    REFUSED(sdlf_plan_outline(NULL, net, &options), "plan");
    NO_MODEL(sdlf_plan_outline(&plan, NULL, &options));
    REFUSED(sdlf_plan_outline(&plan, net, NULL), "options");
    REFUSED(sdlf_plan_measure(NULL, net, &options), "memory");
    NO_MODEL(sdlf_plan_measure(&memory, NULL, &options));
    REFUSED(sdlf_plan_measure(&memory, net, NULL), "options");
    DOES_NOTHING(sdlf_plan_free(NULL));
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* Lists with a length but no elements. */
static void options_without_their_lists(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan;
    sdlf_plan_options options = {.batch = 1};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "no calculator was given");
    options = (sdlf_plan_options){.batch = 1, .forward = reference, .placement_count = 1};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "options->placement is NULL");
    options.placement = &(sdlf_placement){.layer = NULL, .forward = reference};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "options->placement[0].layer is NULL");
    options = (sdlf_plan_options){.batch = 1, .forward = reference, .constant_count = 1};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "options->constants is NULL");
    options.constants = &(sdlf_plan_constant){.input = NULL};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "options->constants[0].input is NULL");
    options = (sdlf_plan_options){.batch = 1, .mode = SDLF_TRAIN, .forward = reference};
    options.feed = &(sdlf_feed){.labels = "labels"};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "options->feed->samples is NULL");
    options.feed = &(sdlf_feed){.samples = "image"};
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT, "options->feed->labels is NULL");
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void plans_for_many_sizes(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_plan_cache *plans = NULL;
    sdlf_plan *plan;
    const sdlf_plan_cache_options options = {.calculator = reference};
    const sdlf_stateful_options stateful_options = {.calculator = reference};
    sdlf_stateful *stateful = NULL;
    REFUSED(sdlf_stateful_create(NULL, "net.onnx", &stateful_options), "stateful");
    REFUSED(sdlf_stateful_create(&stateful, NULL, &stateful_options), "path");
    REFUSED(sdlf_stateful_create(&stateful, "net.onnx", NULL), "options");
    REFUSED(sdlf_stateful_create(&stateful, "net.onnx", &(sdlf_stateful_options){.capacity = 1}),
            "options->calculator");
    REFUSED(sdlf_stateful_create_with(&stateful, NULL, NULL, &stateful_options), "maker");
    REFUSED(sdlf_stateful_prepare(NULL, &plan), "stateful");
    REFUSED(sdlf_stateful_run(NULL), "stateful");
    REFUSED(sdlf_stateful_rewind(NULL, 0), "stateful");
    CHECK_EQUAL(sdlf_stateful_length(NULL), 0);
    CHECK_EQUAL(sdlf_stateful_step(NULL), 0);
    sdlf_stateful_free(NULL);
    REFUSED(sdlf_plan_cache_create(NULL, "net.onnx", &options), "plans");
    REFUSED(sdlf_plan_cache_create(&plans, NULL, &options), "path");
    REFUSED(sdlf_plan_cache_create(&plans, "net.onnx", NULL), "options");
    REFUSED(sdlf_plan_cache_create(&plans, "net.onnx", &(sdlf_plan_cache_options){.most = 1}), "options->calculator");
    CHECK_OK(sdlf_plan_cache_create(&plans, "net.onnx", &options)); /* which is read when a plan is created */
    REFUSED(sdlf_plan_cache_get(NULL, NULL, 0, &plan), "plans");
    REFUSED(sdlf_plan_cache_get(plans, NULL, 1, &plan), "shapes");
    REFUSED(sdlf_plan_cache_get(plans, NULL, 0, NULL), "plan");
    CHECK_EQUAL(sdlf_plan_cache_made(NULL), 0);
    sdlf_plan_cache_free(plans);
    DOES_NOTHING(sdlf_plan_cache_free(NULL));
    sdlf_calculator_close(reference);
}

static void no_plan(void)
{
    float number[8] = {0};
    sdlf_binding binding;
    sdlf_metrics metrics;
    bool passed;
    REFUSED(sdlf_plan_input(NULL, "image", &binding), "plan");
    REFUSED(sdlf_plan_output(NULL, "class", &binding), "plan");
    REFUSED(sdlf_plan_write(NULL, "image", number, SDLF_FLOAT32, 4), "plan");
    REFUSED(sdlf_plan_write_converted(NULL, "image", number, SDLF_FLOAT32, 1), "plan");
    REFUSED(sdlf_plan_write_device(NULL, "image", number, SDLF_FLOAT32, 4), "plan");
    REFUSED(sdlf_plan_read(NULL, "class", number, SDLF_FLOAT32, 4), "plan");
    REFUSED(sdlf_plan_trim(NULL, "class", &(sdlf_tensor){.data = number}), "plan");
    REFUSED(sdlf_plan_forward(NULL), "plan");
    REFUSED(sdlf_plan_backward(NULL), "plan");
    REFUSED(sdlf_plan_step(NULL, 0.1f), "plan");
    REFUSED(sdlf_plan_accumulate(NULL), "plan");
    REFUSED(sdlf_plan_begin_epoch(NULL, &(sdlf_epoch){0}), "plan");
    REFUSED(sdlf_plan_run(NULL, 1), "plan");
    GIVES(sdlf_plan_step_number(NULL), 0);
    REFUSED(sdlf_plan_set_step_number(NULL, 1), "plan");
    REFUSED(sdlf_plan_metrics(NULL, &metrics), "plan");
    REFUSED(sdlf_plan_clear_metrics(NULL), "plan");
    REFUSED(sdlf_plan_loss_scale(NULL, &(sdlf_loss_scale){.scale = 0}), "plan");
    REFUSED(sdlf_plan_set_loss_scale(NULL, &(sdlf_loss_scale){.scale = 1}), "plan");
    REFUSED(sdlf_plan_mark(NULL), "plan");
    REFUSED(sdlf_plan_mark_passed(NULL, &passed), "plan");
    REFUSED(sdlf_plan_wait_mark(NULL, &metrics), "plan");
    REFUSED(sdlf_plan_synchronize(NULL), "plan");
    REFUSED(sdlf_plan_store_parameters(NULL), "plan");
    REFUSED(sdlf_plan_load_parameters(NULL), "plan");
    GIVES(sdlf_plan_is_current(NULL), false);
    REFUSED(sdlf_plan_activation(NULL, "relu", false, &binding), "plan");
    REFUSED(sdlf_plan_gradient(NULL, "conv2d.weight", &binding), "plan");
    GIVES(sdlf_plan_step_count(NULL), 0);
    GIVES(sdlf_plan_step_info(NULL, 0).layer, NULL);
    GIVES(sdlf_plan_step_info(NULL, 0).offset, -1);
    GIVES(sdlf_plan_layer_count(NULL), 0);
    GIVES(sdlf_plan_layer_info(NULL, 0).layer, NULL);
    GIVES(sdlf_plan_layer_of(NULL, "relu"), -1);
    GIVES(sdlf_plan_memory(NULL).arena, 0);
    REFUSED(sdlf_plan_time(NULL, 1), "plan");
    REFUSED(sdlf_plan_time_together(NULL, 1, 1), "plan");
    REFUSED(sdlf_plan_time_with(NULL, &(sdlf_timing){.repeats = 1}), "plan");
}

static void a_plan_without_the_rest(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    float image[36] = {0}, class[3];
    sdlf_binding binding;
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = reference}));
    if (plan == NULL) return;
    REFUSED(sdlf_plan_input(plan, NULL, &binding), "name");
    REFUSED(sdlf_plan_input(plan, "image", NULL), "binding");
    REFUSED(sdlf_plan_output(plan, NULL, &binding), "name");
    REFUSED(sdlf_plan_output(plan, "class", NULL), "binding");
    REFUSED(sdlf_plan_write(plan, NULL, image, SDLF_FLOAT32, 4), "input");
    REFUSED(sdlf_plan_write(plan, "image", NULL, SDLF_FLOAT32, 4), "host");
    REFUSED(sdlf_plan_write_device(plan, NULL, image, SDLF_FLOAT32, 4), "input");
    REFUSED(sdlf_plan_write_device(plan, "image", NULL, SDLF_FLOAT32, 4), "memory");
    REFUSED(sdlf_plan_write_converted(plan, NULL, image, SDLF_FLOAT32, 1), "input");
    REFUSED(sdlf_plan_write_converted(plan, "image", NULL, SDLF_FLOAT32, 1), "host");
    REFUSED(sdlf_plan_read(plan, NULL, class, SDLF_FLOAT32, 4), "output");
    REFUSED(sdlf_plan_read(plan, "class", NULL, SDLF_FLOAT32, 4), "host");
    REFUSED(sdlf_plan_trim(plan, NULL, &(sdlf_tensor){.data = class}), "output");
    REFUSED(sdlf_plan_trim(plan, "class", NULL), "host");
    REFUSED(sdlf_plan_begin_epoch(plan, NULL), "epoch");
    REFUSED(sdlf_plan_metrics(plan, NULL), "metrics");
    REFUSED(sdlf_plan_loss_scale(plan, NULL), "scale");
    REFUSED(sdlf_plan_set_loss_scale(plan, NULL), "scale");
    REFUSED(sdlf_plan_mark_passed(plan, NULL), "passed");
    REFUSED(sdlf_plan_wait_mark(plan, NULL), "metrics");
    REFUSED(sdlf_plan_activation(plan, NULL, false, &binding), "layer");
    REFUSED(sdlf_plan_activation(plan, "relu", false, NULL), "binding");
    REFUSED(sdlf_plan_gradient(plan, NULL, &binding), "parameter");
    REFUSED(sdlf_plan_gradient(plan, "conv2d.weight", NULL), "binding");
    GIVES(sdlf_plan_layer_of(plan, NULL), -1);
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(sdlf_plan_forward(plan));
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

/* An epoch with a number of rates but no rates. */
static void an_epoch_without_rates(void)
{
    enum { COUNT = 8 };
    static uint8_t samples[COUNT * 36];
    static int32_t labels[COUNT], order[COUNT];
    sdlf_calculator *reference = test_open("reference");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    fill_samples(samples, labels, order, COUNT);
    sdlf_feed feed = feed_of(samples, labels, COUNT);
    CHECK_OK(sdlf_plan_create(
        &plan, net, &(sdlf_plan_options){.batch = 4, .mode = SDLF_TRAIN, .forward = reference, .feed = &feed}));
    CHECK_FAILS(sdlf_plan_begin_epoch(plan, &(sdlf_epoch){.order = order, .order_count = COUNT}), SDLF_ERROR_ARGUMENT,
                "epoch->rates is NULL");
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
}

static void choices(void)
{
    sdlf_choices *choices = sdlf_choices_create();
    GIVES(sdlf_choices_count(NULL), 0);
    GIVES(sdlf_choices_changed(NULL), false);
    REFUSED(sdlf_choices_read(NULL, test_path("choices")), "choices");
    REFUSED(sdlf_choices_read(choices, NULL), "path");
    REFUSED(sdlf_choices_parse(NULL, "", 0, "test"), "choices");
    REFUSED(sdlf_choices_parse(choices, NULL, 1, "test"), "text");
    CHECK_FAILS(sdlf_choices_parse(choices, "?", 1, NULL), SDLF_ERROR_FORMAT, "plan file:1: "); /* it may be omitted */
    REFUSED(sdlf_choices_write(NULL, test_path("choices")), "choices");
    REFUSED(sdlf_choices_write(choices, NULL), "path");
    DOES_NOTHING(sdlf_choices_free(NULL));
    sdlf_choices_free(choices);
}

int main(void)
{
    RUN(making);
    RUN(options_without_their_lists);
    RUN(plans_for_many_sizes);
    RUN(no_plan);
    RUN(a_plan_without_the_rest);
    RUN(an_epoch_without_rates);
    RUN(choices);
    return test_summary();
}
