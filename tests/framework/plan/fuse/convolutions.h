/* SPDX-License-Identifier: MIT */
/* Shared by the tests of convolutions that a plan may fuse into one operation. The network's input is "image", its
 * output "y". */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_FUSE_CONVOLUTIONS_H
#define SDLF_TESTS_FRAMEWORK_PLAN_FUSE_CONVOLUTIONS_H

#include <math.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { BATCH = 2, CHANNELS = 3, SIDE = 9, HIDDEN = 10, IMAGE = BATCH * CHANNELS * SIDE * SIDE };
enum { MOST = BATCH * 2 * HIDDEN * SIDE * SIDE }; /* elements of y */

/* Run the plan on `image`, the last time from a recording; returns the number of elements. */
static inline int64_t run_thrice(sdlf_plan *plan, const float image[IMAGE], float found[MOST])
{
    sdlf_binding y;
    CHECK_OK(test_plan_write(plan, "image", image));
    for (int run = 0; run < 3; run++) CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_output(plan, "y", &y));
    int64_t count = sdlf_tensor_count(&y.tensor);
    if (CHECK(count <= MOST)) CHECK_OK(test_plan_read(plan, "y", found));
    return count;
}

/* Check that the plan with fusion computes the same as the plan without. `look` is called with each, and told which it
 * is. */
static inline void results_are_those_of_parts(sdlf_model *net, sdlf_calculator *calculator, int kind,
                                              void (*look)(const sdlf_plan *plan, const sdlf_calculator *calculator,
                                                           int kind, bool in_parts))
{
    static float image[IMAGE], found[2][MOST];
    int64_t count = 0;
    fill_random(image, IMAGE, 3);
    for (int parts = 0; parts < 2; parts++) {
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = BATCH, .forward = calculator, .no_fusion = parts != 0};
        if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) continue;
        look(plan, calculator, kind, parts != 0);
        count = run_thrice(plan, image, found[parts]);
        sdlf_plan_free(plan);
    }
    CHECK(count > 0 && isfinite(found[1][0]));
    for (int64_t i = 0; i < count; i++)
        CHECK_CLOSE((double)found[0][i], (double)found[1][i], 2e-6 * (1 + fabs((double)found[1][i])));
}

/* Check that `operation` is used in inference, but not in training, whose backward pass reads the intermediate results,
 * nor if all activations are kept. */
static inline void check_in_inference_alone(sdlf_model *net, const char *operation)
{
    sdlf_calculator *reference = test_open("reference");
    const sdlf_plan_options options[] = {{.batch = BATCH, .forward = reference},
                                         {.batch = BATCH, .forward = reference, .mode = SDLF_TRAIN},
                                         {.batch = BATCH, .forward = reference, .keep_activations = true}};
    for (int i = 0; i < 3; i++) {
        sdlf_plan *plan = NULL;
        CHECK_OK(sdlf_plan_create(&plan, net, &options[i]));
        if (plan != NULL) CHECK_EQUAL(count_steps(plan, operation), i == 0);
        sdlf_plan_free(plan);
    }
    sdlf_calculator_close(reference);
}

/* The growth of each element of y when the last bias changes from 2 to 3: the prepacked weights must be repacked.
 * Returns the number of elements. */
static inline int64_t growth_with_last_bias(sdlf_model *net, sdlf_calculator *calculator, float growth[MOST])
{
    static float image[IMAGE], before[MOST];
    int64_t count = 0;
    sdlf_plan *plan = NULL;
    fill_random(image, IMAGE, 3);
    CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}));
    sdlf_parameter *last = sdlf_model_parameter(net, sdlf_model_parameter_count(net) - 1);
    for (int after = 0; after < 2 && plan != NULL; after++) {
        float *value = last->value.data;
        for (int64_t e = 0; e < sdlf_tensor_count(&last->value); e++) value[e] = after ? 3 : 2;
        CHECK_OK(sdlf_plan_load_parameters(plan));
        count = run_thrice(plan, image, after ? growth : before);
    }
    for (int64_t i = 0; i < count; i++) growth[i] -= before[i];
    sdlf_plan_free(plan);
    return count;
}

#endif
