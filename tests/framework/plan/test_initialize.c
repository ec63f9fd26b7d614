/* SPDX-License-Identifier: MIT */
/* The first plan of a model that has not been built initialises the parameters in its own memory, with the same bits as
 * sdlf_model_build. */
#include "framework/plan/counting_device.h"
#include "framework/plan/networks.h"

enum { SEED = 9 };

/* Every kind of initializer, and statistics that are not trained. */
static sdlf_model *net_of_all_kinds(void)
{
    sdlf_model *net = sdlf_model_create("kinds");
    sdlf_node x = sdlf_input(net, "a", SDLF_FLOAT32, sdlf_shape(2, 5, 5));
    const int kinds[] = {SDLF_INIT_HE_NORMAL, SDLF_INIT_XAVIER_NORMAL, SDLF_INIT_LECUN_UNIFORM, SDLF_INIT_ONE};
    for (int i = 0; i < 4; i++)
        x = sdlf_conv2d(
            net, x, &(sdlf_conv2d_options){.filters = 3, .kernel = {3, 3}, .padding = {1, 1}, .initializer = kinds[i]});
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* The output (or, of a training plan, the loss) for one input, of a model that is built beforehand or by its plan;
 * *hash of its parameters. */
static void run(sdlf_plan_options options, bool built, uint32_t *hash, double out[3])
{
    sdlf_model *net = net_of_all_kinds();
    sdlf_plan *plan = NULL;
    options.batch = 1;
    options.seed = SEED;
    memset(out, 0, 3 * sizeof *out);
    if (built) CHECK_OK(sdlf_model_build(net, SEED));
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    *hash = sdlf_model_hash(net);
    if (plan != NULL) {
        float a[50], narrow[3] = {0};
        double wide[50];
        fill_random(a, 50, 3);
        for (int i = 0; i < 50; i++) wide[i] = (double)a[i];
        bool is_wide = options.dtype == SDLF_FLOAT64;
        CHECK_OK(test_plan_write(plan, "a", is_wide ? (const void *)wide : a));
        if (options.mode == SDLF_TRAIN) CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){1}));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, options.mode == SDLF_TRAIN ? "loss" : "class", is_wide ? (void *)out : narrow));
        for (int i = 0; i < 3 && !is_wide; i++) out[i] = (double)narrow[i];
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
}

static void compare(sdlf_plan_options options)
{
    uint32_t expected_hash, hash;
    double expected[3], found[3];
    run(options, true, &expected_hash, expected);
    run(options, false, &hash, found);
    CHECK_EQUAL(hash, expected_hash);
    for (int i = 0; i < 3; i++) CHECK_CLOSE(found[i], expected[i], 0);
}

static void every_calculator_draws_what_building_draws(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = NULL;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        compare((sdlf_plan_options){.forward = calculator});
        compare((sdlf_plan_options){.forward = calculator, .dtype = SDLF_FLOAT64});
        sdlf_calculator_close(calculator);
    }
}

/* Inference, with folded parameters; training on one device and on two. */
static void every_place_has_them(void)
{
    sdlf_calculator *host = test_open("reference"), *device = make_device();
    sdlf_calculator *places[2] = {host, device};
    for (int forward = 0; forward < 2; forward++) {
        for (int backward = 0; backward < 2; backward++) {
            compare((sdlf_plan_options){.mode = SDLF_TRAIN,
                                        .forward = places[forward],
                                        .backward = places[backward],
                                        .optimizer = sdlf_sgd(.momentum = 0.9f)});
        }
    }
    free(device);
    sdlf_calculator_close(host);
}

static void nothing_goes_up(void)
{
    sdlf_calculator *device = make_device();
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    uploaded = 0;
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){
            .batch = 2, .mode = SDLF_TRAIN, .forward = device, .optimizer = sdlf_sgd(.momentum = 0.9f)}));
    CHECK(uploaded <= 64); /* controls */
    uint32_t first = sdlf_model_hash(net);
    CHECK_OK(sdlf_plan_store_parameters(plan)); /* the device has the model's values */
    CHECK_EQUAL(sdlf_model_hash(net), first);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    free(device);
}

static void a_plan_that_fails_leaves_the_model_unbuilt(void)
{
    sdlf_calculator *host = test_open("reference");
    sdlf_model *net = small_cnn(), *other = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK(sdlf_plan_create(
              &plan, net, &(sdlf_plan_options){.batch = 1, .forward = host, .conv_algorithm = "none such"}) != SDLF_OK);
    CHECK(plan == NULL);
    CHECK_EQUAL(sdlf_model_parameter_count(net), 0);
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = host}));
    CHECK_OK(sdlf_model_build(other, 1)); /* the default seed */
    CHECK_EQUAL(sdlf_model_hash(net), sdlf_model_hash(other));
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_model_free(other);
    sdlf_calculator_close(host);
}

int main(void)
{
    RUN(every_calculator_draws_what_building_draws);
    RUN(every_place_has_them);
    RUN(nothing_goes_up);
    RUN(a_plan_that_fails_leaves_the_model_unbuilt);
    return test_summary();
}
