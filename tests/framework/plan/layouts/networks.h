/* SPDX-License-Identifier: MIT */
/* Shared by the tests of layouts: image sizes, convolutions, parameters, and counts of steps. */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_LAYOUTS_NETWORKS_H
#define SDLF_TESTS_FRAMEWORK_PLAN_LAYOUTS_NETWORKS_H

#include <string.h>

#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"

/* IMAGE: elements of the input; MOST: at most this many elements of any output. */
enum { BATCH = 2, CHANNELS = 3, SIDE = 13, IMAGE = BATCH * CHANNELS * SIDE * SIDE, MOST = BATCH * 45 * 7 * 7 };

/* A convolution with a square kernel that preserves the image size. */
static inline sdlf_node conv(sdlf_model *net, sdlf_node x, const char *name, int filters, int kernel, int groups)
{
    return sdlf_conv2d(net, x,
                       &(sdlf_conv2d_options){.name = name,
                                              .filters = filters,
                                              .kernel = {kernel, kernel},
                                              .padding = {kernel / 2, kernel / 2},
                                              .groups = groups});
}

/* Fill every parameter with different values; variances are positive. */
static inline void fill_parameters(sdlf_model *net, uint64_t seed)
{
    for (int i = 0; i < sdlf_model_parameter_count(net); i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        float *value = parameter->value.data;
        int64_t count = sdlf_tensor_count(&parameter->value);
        fill_random(value, count, seed + (uint64_t)i);
        bool variance = strstr(parameter->name, "running_var") != NULL;
        for (int64_t e = 0; e < count; e++) value[e] = variance ? 1.5f + value[e] : 0.5f * value[e];
    }
}

/* The number of steps of a kind; `last`: only those with channels-last operands. */
static inline int count_kind(const sdlf_plan *plan, sdlf_operation_kind kind, bool last)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        count += op->kind == kind && (!last || sdlf_operation_is_channels_last(op));
    }
    return count;
}

/* The number of steps of that fusion that are channels last. */
static inline int count_fused(const sdlf_plan *plan, const sdlf_fusion *fusion)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        count += op->kind == SDLF_FUSED && op->fused.fusion == fusion && sdlf_operation_is_channels_last(op);
    }
    return count;
}

#endif
