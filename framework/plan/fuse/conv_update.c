/* SPDX-License-Identifier: MIT */
/* A fused convolution's backward pass and the SGD updates of its weights and biases in one:
 *
 *   conv2d_relu_max_pool_backward x, w, dy, mask -> dw, db, dx;  sgd_update dw -> w, v;  sgd_update db -> b, bv
 *
 * becomes conv2d_relu_max_pool_backward_sgd. A small batch's step has two kernels less; the gradients, which are small,
 * would cost no more. Another convolution's backward pass is fused in the same way once there is an operation for it: a
 * kind, and where that has the operands. */
#include "framework/plan/passes.h"

/* The sgd_update that is the only reader of `gradient`, which only step `producer` writes, on the same calculator; -1:
 * there is none, or the gradient is wanted otherwise: kept for the caller, or clipped by the norm of all of them. */
static int find_sgd(const sdlf_plan *plan, int producer, const sdlf_tensor *gradient)
{
    int buffer = gradient->buffer;
    if (plan->options.communicator != NULL) return -1; /* the ranks' gradients are added first */
    if (!sdlf_tensor_present(gradient) || plan->buffers[buffer].kind != BUFFER_ARENA) return -1;
    if (plan_count_readers(plan, buffer) != 1 || plan_count_writers(plan, buffer) != 1) return -1;
    int update = plan_next_reader(plan, buffer, producer);
    if (update < 0 || plan->steps[update].calculator != plan->steps[producer].calculator) return -1;
    const sdlf_operation *sgd = &plan->steps[update].operation;
    return sgd->kind == SDLF_SGD_UPDATE && !sdlf_tensor_present(&sgd->in[2]) ? update : -1;
}

/* Do a bias and its weights follow one rule (but for decay) with one rate, both with a velocity or both without? */
static bool is_one_rule(const sdlf_operation *weights, const sdlf_operation *bias)
{
    return weights->sgd.momentum == bias->sgd.momentum && weights->sgd.nesterov == bias->sgd.nesterov &&
           weights->in[1].buffer == bias->in[1].buffer && weights->in[1].offset == bias->in[1].offset &&
           sdlf_tensor_present(&weights->out[1]) == sdlf_tensor_present(&bias->out[1]);
}

/* May the parameter that step `update` changes be changed at step `to` already? Not where a step in between still wants
 * its old value. */
static bool may_update_at(const sdlf_plan *plan, int update, int to)
{
    int reader = plan_next_reader(plan, plan->steps[update].operation.out[0].buffer, to);
    return reader < 0 || reader >= update;
}

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

static sdlf_status fuse(sdlf_plan *plan, int step)
{
    const sdlf_operation *backward = &plan->steps[step].operation;
    if (backward->kind != SDLF_CONV2D_RELU_MAX_POOL_BACKWARD) return SDLF_OK;
    int weights = find_sgd(plan, step, &backward->out[0]), bias = -1;
    if (weights < 0 || !may_update_at(plan, weights, step)) return SDLF_OK;
    const sdlf_operation *update = &plan->steps[weights].operation;
    if (update->out[0].buffer != backward->in[1].buffer) return SDLF_OK;
    if (sdlf_tensor_present(&backward->out[1])) {
        bias = find_sgd(plan, step, &backward->out[1]);
        if (bias < 0 || !may_update_at(plan, bias, step)) return SDLF_OK;
        if (!is_one_rule(update, &plan->steps[bias].operation)) return SDLF_OK;
    }
    sdlf_operation fused = make_fused(backward, update, bias >= 0 ? &plan->steps[bias].operation : NULL);
    if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[step].calculator, &fused))
        return SDLF_OK;
    plan->steps[weights].dead = true;
    if (bias >= 0) plan->steps[bias].dead = true;
    return plan_replace_operation(plan, step, &fused);
}

sdlf_status plan_fuse_updates(sdlf_plan *plan)
{
    if (plan->options.mode != SDLF_TRAIN) return SDLF_OK;
    sdlf_status status = SDLF_OK;
    for (int i = plan->forward_steps; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse(plan, i);
    }
    return status;
}
