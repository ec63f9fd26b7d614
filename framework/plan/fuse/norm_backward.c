/* The gradient of an activation goes into the backward pass of the batch normalisation before it, which works it out as it reads dy:
 *
 *   activation_backward y,dy -> g;  batch_norm2d_backward x,..,g -> dx,..
 *
 * becomes batch_norm2d_backward x,..,dy,y -> dx,..,g, without g where nothing else reads it (a residual connection does). */
#include "framework/plan/passes.h"

/* The batch normalisation that reads what step `i` writes, on the same calculator; -1: none. */
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

/* Is one of the step's inputs made behind step `i`? (Between the two there is little.) */
static bool waits_for_others(const sdlf_plan *plan, int i, int step)
{
    const sdlf_operation *op = &plan->steps[step].operation;
    for (int between = i + 1; between < step; between++) {
        for (int in = 0; in < SDLF_MAX_INPUTS && !plan->steps[between].dead; in++) {
            if (sdlf_tensor_present(&op->in[in]) && plan_step_writes(&plan->steps[between], op->in[in].buffer))
                return true;
        }
    }
    return false;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    const sdlf_operation *slope = &plan->steps[i].operation;
    if (slope->kind != SDLF_ACTIVATION_BACKWARD || sdlf_activation_reads_input(slope->activation.function))
        return SDLF_OK;
    int norm = norm_behind(plan, i);
    if (norm < 0) return SDLF_OK;
    sdlf_operation fused = plan->steps[norm].operation;
    const sdlf_shape shape = fused.in[0].shape;
    if (plan_count_readers(plan, slope->out[0].buffer) > 1) fused.out[3] = fused.in[4];
    fused.in[4] = sdlf_tensor_reshape(slope->in[1], shape);
    fused.in[5] = sdlf_tensor_reshape(slope->in[0], shape);
    fused.batch_norm.activation = slope->activation;
    if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[i].calculator, &fused))
        return SDLF_OK;
    /* where the normalisation stood, unless somebody reads g before */
    bool early = plan_next_reader(plan, slope->out[0].buffer, i) != norm;
    if (early && waits_for_others(plan, i, norm)) return SDLF_OK;
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
