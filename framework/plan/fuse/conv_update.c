/* SPDX-License-Identifier: MIT */
/* A fused convolution's backward pass and the SGD updates of its weights and biases in one:
 *
 *   conv2d_relu_max_pool_backward x, w, dy, mask -> dw, db, dx;  sgd_update dw -> w, v;  sgd_update db -> b, bv
 *
 * becomes conv2d_relu_max_pool_backward_sgd. A small batch's step has two kernels less; the gradients, which are small,
 * would cost no more. Another convolution's backward pass is fused in the same way once there is an operation for it: a
 * kind, and where that has the operands. */
#include "framework/plan/fuse/updates.h"

/* The operation with its updates; w's is there, b's if the fused operation has a bias. */
static sdlf_operation make_fused(const sdlf_operation *backward, const sdlf_operation *weights,
                                 const sdlf_operation *bias)
{
    sdlf_operation fused = {
        .kind = SDLF_CONV2D_RELU_MAX_POOL_BACKWARD_SGD,
        .in = {backward->in[0], backward->in[2], backward->in[3], weights->in[1]},
        .out = {weights->out[0], weights->out[1]},
        .conv2d_pool = backward->conv2d_pool,
    };
    fused.out[4] = backward->out[2];
    fused.conv2d_pool.sgd = weights->sgd;
    if (bias != NULL) {
        fused.out[2] = bias->out[0];
        fused.out[3] = bias->out[1];
        fused.conv2d_pool.sgd.bias_decay = bias->sgd.decay;
    }
    return fused;
}

sdlf_status plan_fuse_conv_update(sdlf_plan *plan, int step)
{
    const sdlf_operation *backward = &plan->steps[step].operation;
    if (backward->kind != SDLF_CONV2D_RELU_MAX_POOL_BACKWARD) return SDLF_OK;
    int weights = plan_find_sgd(plan, step, &backward->out[0]), bias = -1;
    if (weights < 0 || !plan_may_update_at(plan, weights, step, -1)) return SDLF_OK;
    const sdlf_operation *update = &plan->steps[weights].operation;
    if (update->out[0].buffer != backward->in[1].buffer) return SDLF_OK;
    if (sdlf_tensor_present(&backward->out[1])) {
        bias = plan_find_sgd(plan, step, &backward->out[1]);
        if (bias < 0 || !plan_may_update_at(plan, bias, step, -1)) return SDLF_OK;
        if (!plan_is_one_rule(update, &plan->steps[bias].operation)) return SDLF_OK;
    }
    sdlf_operation fused = make_fused(backward, update, bias >= 0 ? &plan->steps[bias].operation : NULL);
    if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[step].calculator, &fused))
        return SDLF_OK;
    plan->steps[weights].dead = true;
    if (bias >= 0) plan->steps[bias].dead = true;
    return plan_replace_operation(plan, step, &fused);
}
