/* SPDX-License-Identifier: MIT */
/* Epilogue fusion: an activation or a residual addition moves into the operation that produces its input, so the value
 * in between is never stored. Also in training, if the backward pass of the activation needs only its output, or
 * recomputes its input (norm_backward.c). */
#include "framework/plan/passes.h"

#include <string.h>

/* The operand `content` of an elementwise operation, viewed as the result `like` that the operation also reads: in its
 * shape and layout. */
static sdlf_tensor in_the_form_of(const sdlf_tensor *like, const sdlf_tensor *content)
{
    sdlf_tensor made = sdlf_tensor_reshape(*content, like->shape);
    if (sdlf_tensor_is_channels_last(like) && sdlf_tensor_is_contiguous(content))
        for (int axis = 0; axis < like->shape.rank; axis++) made.stride[axis] = like->stride[axis];
    return made;
}

/* True if `operand`, of as many elements, reads `result` in storage order. False if a permuting copy in between was
 * removed (copies.c). */
static bool reads_in_order(const sdlf_tensor *operand, const sdlf_tensor *result)
{
    return sdlf_tensor_is_contiguous(operand) || plan_same_strides(operand, result);
}

/* Redirects the output of `made` to that of `result`, keeping its own shape. */
static void write_to(sdlf_operation *made, const sdlf_operation *result)
{
    made->out[0] = in_the_form_of(&made->out[0], &result->out[0]);
}

/* Step `kept` also does the work of step `gone`. */
static sdlf_status merge(sdlf_plan *plan, int kept, int gone, const sdlf_operation *fused)
{
    int first = kept < gone ? kept : gone, last = kept < gone ? gone : kept;
    plan->steps[gone].dead = true;
    plan_join_groups(plan, plan->steps[first].node, plan->steps[last].node);
    return plan_replace_operation(plan, kept, fused);
}

static sdlf_status fuse_activation(sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    sdlf_operation fused = step->operation;
    sdlf_activation *activation = sdlf_operation_epilogue(&fused);
    if (activation == NULL || activation->function != SDLF_IDENTITY) return SDLF_OK;
    int reader = plan_sole_reader(plan, i);
    if (reader < 0 || plan->steps[reader].operation.kind != SDLF_ACTIVATION_FORWARD) return SDLF_OK;
    if (!reads_in_order(&plan->steps[reader].operation.in[0], &fused.out[0])) return SDLF_OK;
    *activation = plan->steps[reader].operation.activation;
    write_to(&fused, &plan->steps[reader].operation);
    if (sdlf_operation_check(&fused) != SDLF_OK) return SDLF_OK; /* log_softmax was fused before this */
    return sdlf_calculator_supports(step->calculator, &fused) ? merge(plan, i, reader, &fused) : SDLF_OK;
}

/* y = log_softmax(a x + bias): the sparse product has the complete row when it ends. */
static sdlf_status fuse_log_softmax(sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    sdlf_operation fused = step->operation;
    if (fused.kind != SDLF_SPMM_CSR || fused.spmm.log_softmax || fused.spmm.activation.function != SDLF_IDENTITY)
        return SDLF_OK;
    int reader = plan_sole_reader(plan, i);
    if (reader < 0 || plan->steps[reader].operation.kind != SDLF_LOG_SOFTMAX_FORWARD) return SDLF_OK;
    const sdlf_operation *softmax = &plan->steps[reader].operation;
    if (softmax->in[0].shape.rank != 2 || softmax->softmax.axis != 1) return SDLF_OK;
    if (!reads_in_order(&softmax->in[0], &fused.out[0])) return SDLF_OK;
    if (!sdlf_shape_equal(softmax->in[0].shape, fused.out[0].shape)) return SDLF_OK; /* different rows */
    fused.spmm.log_softmax = true;
    write_to(&fused, softmax);
    return sdlf_calculator_supports(step->calculator, &fused) ? merge(plan, i, reader, &fused) : SDLF_OK;
}

int plan_residual_of(const sdlf_operation *op)
{
    const sdlf_operation_class *type = sdlf_operation_type(op);
    for (int i = 0; type->in[i].name != NULL; i++) {
        if (strcmp(type->in[i].name, "residual") == 0) return i;
    }
    return -1;
}

/* y = conv(x) + r, and likewise for gradients. The fused operation runs in the place of the addition, where r is
 * certain to exist; not if one of its inputs is written in between, as weights are by their updates. */
static sdlf_status fuse_residual(sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    sdlf_operation fused = step->operation;
    sdlf_activation *activation = sdlf_operation_epilogue(&fused);
    const int residual = plan_residual_of(&fused);
    if (residual < 0 || sdlf_tensor_present(&fused.in[residual])) return SDLF_OK;
    if (activation != NULL && activation->function != SDLF_IDENTITY) return SDLF_OK;
    int reader = plan_sole_reader(plan, i);
    if (reader < 0 || plan->steps[reader].operation.kind != SDLF_ADD) return SDLF_OK;
    if (plan_writes_between(plan, &step->operation, i, reader)) return SDLF_OK;
    const sdlf_operation *add = &plan->steps[reader].operation;
    if (activation == NULL && add->add.activation.function != SDLF_IDENTITY) return SDLF_OK;
    bool first = add->in[0].buffer == step->operation.out[0].buffer;
    if (add->in[0].buffer == add->in[1].buffer || !reads_in_order(&add->in[first ? 0 : 1], &fused.out[0]))
        return SDLF_OK;
    fused.in[residual] = in_the_form_of(&fused.out[0], &add->in[first ? 1 : 0]);
    if (activation != NULL) *activation = add->add.activation;
    write_to(&fused, add);
    return sdlf_calculator_supports(step->calculator, &fused) ? merge(plan, reader, i, &fused) : SDLF_OK;
}

sdlf_status plan_fuse_gradient_sums(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = plan->forward_steps; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse_residual(plan, i);
    }
    return status;
}

sdlf_status plan_fuse_epilogues(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse_residual(plan, i);
    }
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        if (plan->steps[i].dead) continue;
        status = fuse_log_softmax(plan, i);
        if (status == SDLF_OK) status = fuse_activation(plan, i); /* not after a fused log_softmax */
    }
    return status;
}
