/* A fully connected layer's backward pass and its SGD update as one sweep over the weights:
 *   gemm dy^T x -> dw;  gemm dy w -> dx (if wanted);  sgd_update dw -> w, v     becomes    gemm_backward_sgd.
 * The gradient of the weights is never stored, and w is read once for dx and its update together. */
#include "framework/plan/plan_internal.h"

static bool is_plain_product(const sdlf_operation *op, bool transpose_a, bool transpose_b)
{
    return op->kind == SDLF_GEMM && op->gemm.transpose_a == transpose_a && op->gemm.transpose_b == transpose_b &&
           op->gemm.alpha == 1 && op->gemm.activation.function == SDLF_IDENTITY && !sdlf_tensor_present(&op->in[2]) &&
           !sdlf_tensor_present(&op->in[3]);
}

/* The step that computes dy w with the same dy, on the same calculator, before `update`; -1: none. */
static int find_input_product(const sdlf_plan *plan, int weights, int update)
{
    const plan_step *product = &plan->steps[weights];
    int w = plan->steps[update].operation.out[0].buffer;
    for (int i = plan->forward_steps; i < update; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->dead || step->calculator != product->calculator) continue;
        if (is_plain_product(&step->operation, false, false) && step->operation.in[1].buffer == w &&
            step->operation.in[0].buffer == product->operation.in[0].buffer)
            return i;
    }
    return -1;
}

static void fuse_update(sdlf_plan *plan, int weights)
{
    plan_step *product = &plan->steps[weights];
    const sdlf_tensor *dw = &product->operation.out[0];
    if (!is_plain_product(&product->operation, true, false) || plan->buffers[dw->buffer].kind != BUFFER_ARENA) return;
    if (plan_count_readers(plan, dw->buffer) != 1 || plan_count_writers(plan, dw->buffer) != 1) return;
    int update = plan_next_reader(plan, dw->buffer, weights);
    if (update < 0 || plan->steps[update].operation.kind != SDLF_SGD_UPDATE ||
        plan->steps[update].calculator != product->calculator)
        return;
    const sdlf_operation *sgd = &plan->steps[update].operation;
    if (sdlf_tensor_present(&sgd->in[2])) return; /* clipped: the norm of all gradients must be known first */
    int input = find_input_product(plan, weights, update);
    int first = input >= 0 && input < weights ? input : weights;
    for (int i = first + 1; i < update; i++) { /* nobody else may want the old weights after them */
        if (i != input && !plan->steps[i].dead && plan_step_reads(&plan->steps[i], sgd->out[0].buffer)) return;
    }
    sdlf_operation fused = {
        .kind = SDLF_GEMM_BACKWARD_SGD,
        .in = {product->operation.in[1], product->operation.in[0], sgd->in[1]},
        .out = {sgd->out[0], sgd->out[1]},
        .gemm_backward = {.sgd = sgd->sgd},
    };
    if (input >= 0) fused.out[2] = plan->steps[input].operation.out[0];
    if (sdlf_operation_check(&fused) != SDLF_OK || !sdlf_calculator_supports(product->calculator, &fused)) return;
    if (input >= 0) plan->steps[input].dead = true;
    product->dead = true;
    plan->steps[update].dead = true;
    plan_step *step = &plan->steps[first];
    step->dead = false;
    step->operation = fused;
}

sdlf_status plan_fuse_updates(sdlf_plan *plan)
{
    if (plan->options.mode != SDLF_TRAIN) return SDLF_OK;
    for (int i = plan->forward_steps; i < plan->step_count; i++) {
        if (!plan->steps[i].dead) fuse_update(plan, i);
    }
    return SDLF_OK;
}
