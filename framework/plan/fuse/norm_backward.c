/* SPDX-License-Identifier: MIT */
/* Fuses the gradient of an activation into the backward pass of the batch normalisation before it, which computes it
 * while reading dy:
 *
 *   activation_backward y,dy -> g;  batch_norm2d_backward x,..,g -> dx,..
 *
 * becomes batch_norm2d_backward x,..,dy,y -> dx,..,g, without g if nothing else reads it (a residual connection does);
 * and without y if the normalisation computed it only from x and the calculator recomputes it instead of reading it.
 * This applies where the slope follows from the activation's input, which the normalisation computed: the activation's
 * forward pass, the only remaining reader, then fuses into the normalisation's (epilogues.c). */
#include "framework/plan/passes.h"

/* The batch normalisation that reads step i's output, on the same calculator; -1: none. */
static int norm_behind(const sdlf_plan *plan, int i)
{
    const sdlf_tensor *g = &plan->steps[i].operation.out[0];
    if (plan->buffers[g->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, g)) return -1;
    if (plan_count_writers(plan, g->buffer) != 1) return -1;
    for (int reader = plan_next_reader(plan, g->buffer, i); reader >= 0;
         reader = plan_next_reader(plan, g->buffer, reader)) {
        const sdlf_operation *op = &plan->steps[reader].operation;
        if (op->kind == SDLF_BATCH_NORM2D_BACKWARD && op->in[4].buffer == g->buffer &&
            !sdlf_batch_norm2d_is_fused(op) && plan->steps[reader].calculator == plan->steps[i].calculator)
            return reader;
    }
    return -1;
}

/* The shift with which a forward normalisation computed y, or the activation's input, from x only; absent: something
 * else computed it. */
static sdlf_tensor shift_behind(const sdlf_plan *plan, const sdlf_operation *fused)
{
    const bool reads_input = sdlf_activation_reads_input(fused->batch_norm.activation.function);
    const sdlf_activation_function ends = reads_input ? SDLF_IDENTITY : fused->batch_norm.activation.function;
    const sdlf_tensor *y = &fused->in[5], none = {.dtype = SDLF_NONE};
    int norm = plan_first_writer(plan, y->buffer);
    if (norm < 0 || plan_count_writers(plan, y->buffer) != 1) return none;
    const sdlf_operation *op = &plan->steps[norm].operation;
    bool same = op->kind == SDLF_BATCH_NORM2D_FORWARD && !sdlf_tensor_present(&op->in[3]) &&
                op->out[1].buffer == fused->in[2].buffer && op->batch_norm.activation.function == ends;
    return same ? op->in[2] : none;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    const sdlf_operation *slope = &plan->steps[i].operation;
    if (slope->kind != SDLF_ACTIVATION_BACKWARD) return SDLF_OK;
    int norm = norm_behind(plan, i);
    if (norm < 0) return SDLF_OK;
    sdlf_operation fused = plan->steps[norm].operation;
    const sdlf_shape shape = fused.in[0].shape;
    if (plan_count_readers(plan, slope->out[0].buffer) > 1) fused.out[3] = fused.in[4];
    fused.in[4] = sdlf_tensor_reshape(slope->in[1], shape);
    fused.in[5] = sdlf_tensor_reshape(slope->in[0], shape);
    fused.batch_norm.activation = slope->activation;
    sdlf_operation without_y = fused;
    without_y.in[6] = shift_behind(plan, &fused);
    without_y.in[5] = (sdlf_tensor){.dtype = SDLF_NONE};
    if (sdlf_tensor_present(&without_y.in[6]) && sdlf_operation_check(&without_y) == SDLF_OK &&
        sdlf_calculator_supports(plan->steps[i].calculator, &without_y))
        fused = without_y;
    if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[i].calculator, &fused))
        return SDLF_OK;
    /* in the normalisation's place, unless another step reads g earlier */
    bool early = plan_next_reader(plan, slope->out[0].buffer, i) != norm;
    if (early && plan_writes_between(plan, &plan->steps[norm].operation, i, norm)) return SDLF_OK;
    int kept = early ? i : norm, gone = early ? norm : i, node = plan->steps[norm].node;
    plan_join_groups(plan, node, plan->steps[i].node);
    plan->steps[gone].dead = true;
    plan->steps[kept].node = node;
    return plan_replace_operation(plan, kept, &fused);
}

sdlf_status plan_fuse_norm_backward(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = plan->forward_steps; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse(plan, i);
    }
    return status;
}
