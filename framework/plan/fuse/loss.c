/* SPDX-License-Identifier: MIT */
/* Fuses the loss forward and backward into one operation, if a training plan computes both on one calculator:
 *
 *   softmax_cross_entropy_forward logits, labels -> p, loss;  softmax_cross_entropy_backward p, labels, dloss ->
 *                                                             dlogits
 *
 * (with weights or without) becomes the forward operation with dlogits, in its place. dloss must be known there: it is
 * if the loss is what the plan minimises, and dloss the constant 1 or the loss scale. */
#include "framework/plan/passes.h"

/* The backward step of the loss at step `forward`; -1: none that could be computed there. */
static int find_backward(const sdlf_plan *plan, int forward)
{
    const sdlf_operation *loss = &plan->steps[forward].operation;
    const int p = loss->out[0].buffer;
    for (int i = plan_next_reader(plan, p, plan->forward_steps - 1); i >= 0; i = plan_next_reader(plan, p, i)) {
        const plan_step *step = &plan->steps[i];
        const sdlf_operation *op = &step->operation;
        if (op->kind != SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD) continue;
        if (op->in[0].buffer != p || op->in[1].buffer != loss->in[1].buffer) continue;
        const plan_buffer *dloss = &plan->buffers[op->in[2].buffer];
        bool known = dloss->constant || dloss->kind == BUFFER_SCALE;
        bool same = op->cross_entropy.smoothing == loss->cross_entropy.smoothing &&
                    op->in[3].buffer == loss->in[3].buffer && op->in[3].offset == loss->in[3].offset; /* weights */
        return known && same && step->calculator == plan->steps[forward].calculator ? i : -1;
    }
    return -1;
}

sdlf_status plan_fuse_loss(sdlf_plan *plan)
{
    for (int i = 0; i < plan->forward_steps; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->operation.kind != SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD) continue;
        int backward = find_backward(plan, i);
        if (backward < 0) continue;
        sdlf_operation fused = step->operation;
        fused.in[2] = plan->steps[backward].operation.in[2];
        fused.out[3] = plan->steps[backward].operation.out[0];
        if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(step->calculator, &fused)) continue;
        plan->steps[backward].dead = true;
        sdlf_status status = plan_replace_operation(plan, i, &fused);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}
