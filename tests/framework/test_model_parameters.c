/* SPDX-License-Identifier: MIT */
/* Adding layers to a built model: existing parameters keep their bits, and only new ones are initialised. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/weights_network.h"
#include "framework/plan/networks.h"

enum { SEED = 11 };

/* A model from a file, with its training state. */
static sdlf_model *opened(void)
{
    sdlf_model *model = make_trained(3);
    CHECK_OK(sdlf_model_save_checkpoint(model, test_path("old.safetensors")));
    sdlf_model_free(model);
    model = NULL;
    CHECK_OK(sdlf_model_open(&model, test_path("old.safetensors")));
    return model;
}

/* Another head: relu and fully_connected "head" after the convolution and its normalisation. */
static void add_head(sdlf_model *model)
{
    sdlf_node x = sdlf_relu(model, (sdlf_node){2, 0});
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "head", .units = 5});
    sdlf_model_clear_outputs(model);
    sdlf_output(model, "class", sdlf_softmax(model, x));
}

/* Check that the parameters that `model` had before, and their states, are those of a newly opened model. */
static void check_old(sdlf_model *model)
{
    sdlf_model *before = opened();
    for (int i = 0; i < sdlf_model_parameter_count(before); i++) {
        const sdlf_parameter *old = sdlf_model_parameter(before, i);
        const sdlf_parameter *now = sdlf_model_find_parameter(model, old->name);
        if (!CHECK(now != NULL && sdlf_shape_equal(now->spec.shape, old->spec.shape))) continue;
        size_t bytes = (size_t)sdlf_tensor_bytes(&old->value);
        CHECK(now->value.data != NULL && memcmp(now->value.data, old->value.data, bytes) == 0);
        for (int s = 0; s < 2; s++) {
            if (!CHECK_EQUAL(now->state[s].data != NULL, old->state[s].data != NULL) || old->state[s].data == NULL)
                continue;
            CHECK(memcmp(now->state[s].data, old->state[s].data, bytes) == 0);
        }
    }
    sdlf_model_free(before);
}

/* He-uniform weights, a bias of zeros: those of a model that has never had other values. */
static void check_drawn(sdlf_model *model, uint64_t seed)
{
    sdlf_model *other = make_network("small", 3);
    add_head(other);
    CHECK_OK(sdlf_model_build(other, seed));
    static const char *const names[] = {"head.weight", "head.bias"};
    for (int i = 0; i < 2; i++) {
        const sdlf_parameter *found = sdlf_model_find_parameter(model, names[i]);
        const sdlf_parameter *expected = sdlf_model_find_parameter(other, names[i]);
        if (!CHECK(found != NULL && expected != NULL && found->value.data != NULL)) continue;
        CHECK(memcmp(found->value.data, expected->value.data, (size_t)sdlf_tensor_bytes(&expected->value)) == 0);
    }
    const sdlf_parameter *weight = sdlf_model_find_parameter(model, "head.weight");
    double most = 0;
    for (int64_t i = 0; weight != NULL && i < sdlf_tensor_count(&weight->value); i++)
        most = fmax(most, fabs((double)((const float *)weight->value.data)[i]));
    CHECK(most > 0.9 * sqrt(6.0 / 72) && most <= sqrt(6.0 / 72));
    sdlf_model_free(other);
}

static void weights_of_a_file_stay(void)
{
    sdlf_model *model = opened();
    int old = sdlf_model_parameter_count(model);
    add_head(model);
    CHECK_OK(sdlf_model_status(model));
    CHECK_EQUAL(sdlf_model_parameter_count(model), old); /* until it is built again */
    CHECK_FAILS(sdlf_model_save(model, test_path("unbuilt.safetensors")), SDLF_ERROR_ARGUMENT, "build it first");
    CHECK_OK(sdlf_model_build(model, SEED));
    CHECK_EQUAL(sdlf_model_parameter_count(model), old + 2);
    check_old(model);
    check_drawn(model, SEED);
    CHECK_OK(sdlf_model_build(model, SEED + 1)); /* of a built model: all new */
    check_drawn(model, SEED + 1);
    sdlf_model *drawn = make_network("small", 3);
    CHECK_OK(sdlf_model_build(drawn, SEED + 1));
    sdlf_parameter *weight = sdlf_model_find_parameter(model, "conv2d.weight");
    CHECK(memcmp(weight->value.data, sdlf_model_find_parameter(drawn, "conv2d.weight")->value.data,
                 (size_t)sdlf_tensor_bytes(&weight->value)) == 0);
    sdlf_model_free(drawn);
    sdlf_model_free(model);
}

/* Run the model on one input. */
static void predict(sdlf_model *model, sdlf_calculator *calculator, float out[5])
{
    sdlf_plan *plan = NULL;
    float image[64];
    fill_random(image, 64, 4);
    CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}));
    if (plan == NULL) return;
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "class", out));
    sdlf_plan_free(plan);
}

/* The first plan builds the model and trains both old and new parameters; the result is saved and loaded. */
static void the_first_plan_builds(const char *name)
{
    sdlf_calculator *calculator = test_open(name);
    sdlf_model *model = opened(), *again = NULL;
    sdlf_plan *plan = NULL;
    float image[4 * 64], before[5], after[5] = {0}, found[5] = {0};
    add_head(model);
    sdlf_plan_options options = {.batch = 4, .forward = calculator, .mode = SDLF_TRAIN, .seed = SEED};
    CHECK_OK(sdlf_plan_create(&plan, model, &options));
    check_old(model);
    check_drawn(model, SEED);
    predict(model, calculator, before);
    uint32_t hash = sdlf_model_hash(model);
    fill_random(image, 4 * 64, 5);
    CHECK_OK(test_plan_write(plan, "image", image));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 1, 2, 4}));
    CHECK_OK(sdlf_plan_step(plan, 0.1f));
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
    CHECK(sdlf_model_hash(model) != hash);
    predict(model, calculator, after);
    CHECK(memcmp(before, after, sizeof before) != 0);
    CHECK_OK(sdlf_model_save(model, test_path("new.safetensors")));
    CHECK_OK(sdlf_model_open(&again, test_path("new.safetensors")));
    CHECK_EQUAL(sdlf_model_hash(again), sdlf_model_hash(model));
    predict(again, calculator, found);
    CHECK(memcmp(found, after, sizeof found) == 0);
    sdlf_model_free(again);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void the_first_plan_builds_everywhere(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) the_first_plan_builds(test_calculator_class_at(i)->name);
}

/* Any failure leaves the existing parameters unchanged. */
static void failures_lose_nothing(void)
{
    sdlf_calculator *calculator = test_open("reference");
    sdlf_model *model = opened();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 1, .forward = calculator};
    add_head(model);
    options.placement = &(sdlf_placement){.layer = "nowhere"};
    options.placement_count = 1;
    CHECK_FAILS(sdlf_plan_create(&plan, model, &options), SDLF_ERROR_ARGUMENT, "nowhere");
    check_old(model);
    CHECK(sdlf_model_find_parameter(model, "head.weight") == NULL);
    CHECK_FAILS(sdlf_model_load(model, test_path("old.safetensors")), SDLF_ERROR_FORMAT, "head");
    check_old(model);
    CHECK(sdlf_model_find_parameter(model, "head.weight") == NULL);
    sdlf_memory_info memory;
    options.placement_count = 0;
    CHECK_OK(sdlf_plan_measure(&memory, model, &options)); /* lists them without values */
    CHECK_OK(sdlf_model_build(model, SEED));
    check_old(model);
    check_drawn(model, SEED);
    CHECK_OK(sdlf_model_save(model, test_path("whole.safetensors")));
    sdlf_model_free(model);

    model = opened(); /* a file that has all of them fills old and new */
    add_head(model);
    CHECK_OK(sdlf_model_load(model, test_path("whole.safetensors")));
    check_drawn(model, SEED);
    CHECK_OK(sdlf_plan_create(&plan, model, &options));
    sdlf_relu(model, (sdlf_node){2, 0});
    CHECK_FAILS(sdlf_model_status(model), SDLF_ERROR_ARGUMENT, "in use by a plan");
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static sdlf_status extend(void *argument)
{
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_model_open(&model, test_path("all.safetensors"));
    if (status != SDLF_OK) return status;
    sdlf_node x = sdlf_fully_connected(model, (sdlf_node){2, 0}, &(sdlf_fully_connected_options){.units = 5});
    sdlf_output(model, "more", x);
    sdlf_plan_options options = {.batch = 1, .forward = argument, .mode = SDLF_TRAIN};
    status = sdlf_plan_create(&plan, model, &options);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    sdlf_calculator *calculator = test_open("reference");
    sdlf_model *model = make_built(2);
    CHECK_OK(sdlf_model_save(model, test_path("all.safetensors")));
    sdlf_model_free(model);
    test_every_allocation("a model that grows", extend, calculator);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    RUN(weights_of_a_file_stay);
    RUN(the_first_plan_builds_everywhere);
    RUN(failures_lose_nothing);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
