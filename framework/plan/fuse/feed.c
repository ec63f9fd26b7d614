/* SPDX-License-Identifier: MIT */
/* Gathers a fed plan's labels together with the batch's indices:
 *
 *   next_batch order, rates, first -> index, rate, step;  gather_batch labels, index -> batch_labels
 *
 * becomes next_batch with the labels. */
#include "framework/plan/passes.h"

/* The gather of labels by that index, on the same calculator; -1: none. */
static int find_gather(const sdlf_plan *plan, int next)
{
    const plan_step *step = &plan->steps[next];
    const sdlf_tensor *index = &step->operation.out[1];
    for (int i = plan_next_reader(plan, index->buffer, next); i >= 0; i = plan_next_reader(plan, index->buffer, i)) {
        const sdlf_operation *op = &plan->steps[i].operation;
        if (op->kind != SDLF_GATHER_BATCH || op->in[1].buffer != index->buffer) continue;
        if (op->in[0].dtype == SDLF_INT32 && op->in[0].shape.rank == 1 && plan->steps[i].calculator == step->calculator)
            return i;
    }
    return -1;
}

sdlf_status plan_fuse_feed(sdlf_plan *plan)
{
    for (int i = 0; i < plan->forward_steps; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->operation.kind != SDLF_NEXT_BATCH || sdlf_tensor_present(&step->operation.out[4])) continue;
        int gather = find_gather(plan, i);
        if (gather < 0) continue;
        sdlf_operation fused = step->operation;
        fused.in[3] = plan->steps[gather].operation.in[0];
        fused.out[4] = plan->steps[gather].operation.out[0];
        if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(step->calculator, &fused)) continue;
        plan->steps[gather].dead = true;
        sdlf_status status = plan_replace_operation(plan, i, &fused);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}
