/* SPDX-License-Identifier: MIT */
/* Lowering of loss scaling (https://arxiv.org/abs/1710.03740): the gradient of each loss is multiplied by a scale,
 * which keeps small gradients within float16's range. After the backward pass the gradients of all parameters are
 * checked; the updates multiply them by 1 / scale, or skip the step if one is infinite or NaN. All state is in
 * calculator memory, so that a step can be recorded. */
#include "framework/plan/lower/lower.h"

enum { STATE_SCALE, STATE_NUMBERS = 3 }; /* (scale, good, skipped), see loss_scale_update */

static bool scales(const sdlf_plan *plan)
{
    return plan->options.loss_scale > 0;
}

/* Allocates the scale. With several ranks, the loss gradient is the scale times this rank's share of the batch. */
sdlf_status plan_lower_loss_gradient(sdlf_plan *plan)
{
    sdlf_tensor one = plan_control_tensor(plan, CONTROL_ONE), *gradient = &plan->loss_gradient;
    *gradient = one;
    if (!sdlf_tensor_present(&one)) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    if (!scales(plan)) return SDLF_OK;
    sdlf_dtype dtype = plan->options.dtype;
    sdlf_status status = plan_new_tensor(plan, BUFFER_SCALE, dtype, sdlf_shape(STATE_NUMBERS), &plan->loss_scale);
    if (status != SDLF_OK) return status;
    const sdlf_tensor scale = sdlf_tensor_narrow(plan->loss_scale, 0, STATE_SCALE, 1);
    *gradient = scale;
    if (plan->options.communicator == NULL) return SDLF_OK;
    status = plan_new_tensor(plan, BUFFER_ARENA, dtype, sdlf_shape(1), gradient);
    const sdlf_operation multiply = {
        .kind = SDLF_BINARY, .in = {scale, one}, .out = {*gradient}, .binary = {.function = SDLF_BINARY_MULTIPLY}};
    if (status != SDLF_OK) return status;
    return plan_emit(plan, plan->node_count - 1, SDLF_PHASE_BACKWARD, plan->options.backward, &multiply);
}

static sdlf_status emit_check(sdlf_plan *plan, int index, sdlf_tensor of, sdlf_calculator *calculator,
                              sdlf_tensor found)
{
    const sdlf_operation check = {
        .kind = SDLF_CHECK_FINITE, .in = {sdlf_tensor_reshape(of, sdlf_shape(sdlf_tensor_count(&of)))}, .out = {found}};
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, calculator, &check);
}

/* found = any gradient is infinite or NaN. With clipping, checks their squares instead, which also catches overflow. */
static sdlf_status emit_checks(sdlf_plan *plan, sdlf_tensor found)
{
    const int last = plan->node_count - 1;
    const sdlf_operation clear = {.kind = SDLF_FILL, .out = {found}};
    sdlf_status status = plan_emit(plan, last, SDLF_PHASE_UPDATE, plan->options.backward, &clear);
    if (status == SDLF_OK && sdlf_tensor_present(&plan->squares))
        return emit_check(plan, last, plan->squares, plan->options.backward, found);
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        for (int j = 0; j < node->parameter_count && status == SDLF_OK; j++) {
            const sdlf_tensor *gradient = &plan->gradients[node->first_parameter + j];
            if (sdlf_tensor_present(gradient)) status = emit_check(plan, i, *gradient, node->backward, found);
        }
    }
    return status;
}

/* Emits a bool for updates made of several operations: the step is not skipped. */
static sdlf_status emit_taken_step(sdlf_plan *plan)
{
    if (plan->options.optimizer.type->form != SDLF_UPDATE_ORTHOGONAL) return SDLF_OK;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, SDLF_BOOL, sdlf_shape(1), &plan->taken_step);
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    if (status != SDLF_OK) return status;
    return plan_emit_binary(plan, plan->node_count - 1, SDLF_BINARY_LESS, none, plan->factor, 0, plan->taken_step);
}

sdlf_status plan_lower_loss_scale(sdlf_plan *plan)
{
    sdlf_dtype dtype = plan->options.dtype;
    sdlf_tensor found, one = sdlf_tensor_view(dtype, sdlf_shape(1), NULL);
    if (!scales(plan) || plan_count_present(plan->gradients, plan->model->parameter_count) == 0) return SDLF_OK;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, dtype, one.shape, &found);
    if (status == SDLF_OK) status = emit_checks(plan, found);
    if (status == SDLF_OK) status = plan_new_tensor(plan, BUFFER_ARENA, dtype, one.shape, &plan->factor);
    if (status == SDLF_OK) status = plan_new_tensor(plan, BUFFER_ARENA, SDLF_INT64, one.shape, &plan->steps_taken);
    const sdlf_operation update = {
        .kind = SDLF_LOSS_SCALE_UPDATE,
        .in = {found, plan_control_tensor(plan, CONTROL_STEP)},
        .out = {plan->loss_scale, plan->factor, plan->steps_taken},
        .loss_scale = plan->options.loss_scale_rule,
    };
    plan->clip = plan->factor;
    if (status == SDLF_OK)
        status = plan_emit(plan, plan->node_count - 1, SDLF_PHASE_UPDATE, plan->options.backward, &update);
    return status == SDLF_OK ? emit_taken_step(plan) : status;
}
