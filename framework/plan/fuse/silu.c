/* SPDX-License-Identifier: MIT */
/* Inference: x sigmoid(x), in two operations as other programs' files have it, is one activation, silu; which the operation that
 * makes x may then take in. While training the two stay apart: silu's gradient reads x, theirs reads the sigmoid. */
#include "framework/plan/passes.h"

/* Do both tensors stand for the same elements in the same order? */
static bool is_same(const sdlf_tensor *a, const sdlf_tensor *b)
{
    if (a->buffer != b->buffer || a->offset != b->offset || !sdlf_shape_equal(a->shape, b->shape)) return false;
    for (int axis = 0; axis < a->shape.rank; axis++) {
        if (a->shape.dim[axis] > 1 && a->stride[axis] != b->stride[axis]) return false;
    }
    return true;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    plan_step *step = &plan->steps[i];
    const sdlf_operation *sigmoid = &step->operation;
    if (sigmoid->kind != SDLF_ACTIVATION_FORWARD || sigmoid->activation.function != SDLF_SIGMOID) return SDLF_OK;
    const sdlf_tensor *gate = &sigmoid->out[0];
    if (plan->buffers[gate->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, gate) ||
        plan_count_readers(plan, gate->buffer) != 1 || plan_count_writers(plan, gate->buffer) != 1)
        return SDLF_OK;
    int reader = plan_next_reader(plan, gate->buffer, i);
    if (reader < 0 || plan->steps[reader].calculator != step->calculator) return SDLF_OK;
    const sdlf_operation *product = &plan->steps[reader].operation;
    if (product->kind != SDLF_BINARY || product->binary.function != SDLF_BINARY_MULTIPLY) return SDLF_OK;
    if (!sdlf_tensor_present(&product->in[0]) || !sdlf_tensor_present(&product->in[1])) return SDLF_OK;
    int other = product->in[0].buffer == gate->buffer ? 1 : 0;
    if (!is_same(&product->in[1 - other], gate) || !is_same(&product->in[other], &sigmoid->in[0])) return SDLF_OK;
    sdlf_operation silu = {.kind = SDLF_ACTIVATION_FORWARD,
                           .in = {sigmoid->in[0]},
                           .out = {product->out[0]},
                           .activation = {.function = SDLF_SILU}};
    if (sdlf_operation_check(&silu) != SDLF_OK || !sdlf_calculator_supports(step->calculator, &silu)) return SDLF_OK;
    step->dead = true;
    plan_join_groups(plan, step->node, plan->steps[reader].node);
    return plan_replace_operation(plan, reader, &silu);
}

sdlf_status plan_fuse_silu(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; plan->options.mode == SDLF_INFER && i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse(plan, i);
    }
    return status;
}
