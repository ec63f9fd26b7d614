/* SPDX-License-Identifier: MIT */
/* Data sets by name: known and unknown ones. (Their contents: tests/datasets.) */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

static void lists_classes(void)
{
    bool mnist = false;
    const sdlf_dataset_class *type;
    for (int i = 0; (type = sdlf_dataset_class_at(i)) != NULL; i++) {
        CHECK(type->name != NULL && type->summary != NULL && type->load != NULL);
        CHECK(strchr(type->name, ':') == NULL);
        mnist = mnist || strcmp(type->name, "mnist") == 0;
    }
    CHECK(mnist);
    CHECK(sdlf_dataset_class_at(-1) == NULL);
}

static void refuses_unknown_names(void)
{
    sdlf_dataset *dataset = NULL;
    CHECK_FAILS(sdlf_dataset_open(&dataset, "cats:big", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                "data set 'cats' is unknown; known are: ");
    CHECK(strstr(sdlf_error_message(), "mnist") != NULL);
    CHECK(dataset == NULL);
    CHECK_FAILS(sdlf_dataset_open(&dataset, "mnis", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "'mnis' is unknown");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "digitz:10", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                "'digitz' is unknown (did you mean 'digits'?)");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "mnisx", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "'mnisx' is unknown");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "'' is unknown");
    CHECK_FAILS(sdlf_dataset_open(&dataset, "mnist", (sdlf_split)2), SDLF_ERROR_ARGUMENT, "found 2");
}

/* The check draws nothing, and reports the same errors as opening. */
static void checks_without_opening(void)
{
    static const char *const bad[] = {"cats",        "digits:0",      "digits:many", "digits:2000000000",
                                      "mnist:/none", "mnist:/none/x", "digits:10,x", ""};
    sdlf_dataset *dataset = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char said[512];
        sdlf_status status = sdlf_dataset_check(bad[i], SDLF_SPLIT_TRAIN);
        CHECK(status != SDLF_OK);
        snprintf(said, sizeof said, "%s", sdlf_error_message());
        CHECK(sdlf_dataset_open(&dataset, bad[i], SDLF_SPLIT_TRAIN) == status);
        CHECK_TEXT(sdlf_error_message(), said);
    }
    CHECK_FAILS(sdlf_dataset_check("digits", (sdlf_split)2), SDLF_ERROR_ARGUMENT, "found 2");
    int64_t live = test_live_allocations();
    CHECK_OK(sdlf_dataset_check("digits", SDLF_SPLIT_TRAIN));
    CHECK_OK(sdlf_dataset_check("digits:100,7", SDLF_SPLIT_TEST));
    CHECK_EQUAL(test_live_allocations(), live);
}

static void frees_nothing(void)
{
    int64_t live = test_live_allocations();
    sdlf_dataset_free(NULL);
    CHECK_EQUAL(test_live_allocations(), live);
}

/* A data set in the program's own memory: points as float32, with their quadrants as classes. */
static void a_programs_own_arrays_are_learnt(void)
{
    enum { POINTS = 256 };
    float points[POINTS][2];
    int32_t labels[POINTS];
    for (int i = 0; i < POINTS; i++) {
        points[i][0] = (float)(i % 16) / 8 - 0.9375f;
        points[i][1] = (float)(i / 16) / 8 - 0.9375f;
        labels[i] = points[i][0] * points[i][1] > 0;
    }
    const sdlf_dataset train = {
        .name = "points",
        .samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(POINTS, 2), points),
        .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(POINTS), labels),
        .class_count = 2,
        .scale = 1,
    };
    sdlf_model *net = sdlf_model_create("quadrants");
    sdlf_node x = sdlf_input(net, "point", SDLF_FLOAT32, sdlf_shape(2));
    x = sdlf_relu(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 32}));
    sdlf_output(net, "score", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 2}));
    sdlf_trainer_options options = {.batch = 32,
                                    .epochs = 40,
                                    .forward = "reference",
                                    .optimizer = sdlf_adam(.beta1 = 0.9f),
                                    .schedule = sdlf_constant(.peak = 0.01f)};
    sdlf_trainer *trainer = NULL;
    sdlf_calculator *reference = NULL;
    sdlf_evaluation found = {.samples = 0};
    if (CHECK_OK(sdlf_trainer_create(&trainer, net, &train, NULL, &options)) && CHECK_OK(sdlf_trainer_run(trainer)) &&
        CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL)) &&
        CHECK_OK(sdlf_evaluate(&found, net, &train, reference, 0)))
        CHECK(found.correct > POINTS * 9 / 10);
    sdlf_evaluation_release(&found);
    sdlf_calculator_close(reference);
    sdlf_trainer_free(trainer);
    options.augment = (sdlf_augmentation){.shift = 1};
    CHECK(sdlf_trainer_create(&trainer, net, &train, NULL, &options) != SDLF_OK);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(lists_classes);
    RUN(refuses_unknown_names);
    RUN(checks_without_opening);
    RUN(frees_nothing);
    RUN(a_programs_own_arrays_are_learnt);
    return test_summary();
}
