/* SPDX-License-Identifier: MIT */
/* Inference: a 1x1 convolution and its only reader, a depthwise one, as one operation, where the calculator takes it.
 * What lies between them, several times as large as input and output in networks for small devices, is never stored.
 *
 *   conv2d_forward x, w, bias -> h, 1x1;  conv2d_forward h, depthwise, depthwise_bias -> y, a group a channel
 *
 * Weights and biases must be constant: a calculator may make them ready once. Where an algorithm was asked for, the two
 * stay apart. */
#include "framework/plan/fuse/conv_chain.h"

static bool is_without_residual(const sdlf_operation *conv)
{
    return !sdlf_tensor_present(&conv->in[3]);
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    const sdlf_operation *first = &step->operation;
    if (!conv_chain_is_plain(plan, first) || !conv_chain_is_pointwise(first) || !is_without_residual(first))
        return SDLF_OK;
    int reader = conv_chain_next(plan, i);
    const sdlf_operation *second = reader < 0 ? NULL : &plan->steps[reader].operation;
    if (second == NULL || !conv_chain_is_depthwise(second) || !is_without_residual(second)) return SDLF_OK;
    sdlf_operation pair = {.kind = SDLF_CONV2D_POINTWISE_DEPTHWISE_FORWARD,
                           .in = {first->in[0], first->in[1], second->in[1], first->in[2], second->in[2]},
                           .out = {second->out[0]},
                           .conv2d_pair = {.window = second->conv2d.window,
                                           .between = first->conv2d.activation,
                                           .activation = second->conv2d.activation}};
    if (sdlf_operation_check(&pair) != SDLF_OK || !sdlf_calculator_supports(step->calculator, &pair)) return SDLF_OK;
    plan->steps[i].dead = true;
    plan_join_groups(plan, step->node, plan->steps[reader].node);
    return plan_replace_operation(plan, reader, &pair);
}

sdlf_status plan_fuse_conv_pair(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.conv_algorithm != NULL) return SDLF_OK;
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse(plan, i);
    }
    return status;
}
