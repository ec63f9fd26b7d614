/* Lowering the updates of parameters, and the scale of gradient clipping. */
#include "framework/plan/lower/lower.h"

static sdlf_tensor state_tensor(sdlf_plan *plan, int parameter, int state)
{
    sdlf_tensor tensor;
    if (plan_new_tensor(plan, BUFFER_STATE, plan->options.dtype, plan->model->parameters[parameter].spec.shape,
                        &tensor) != SDLF_OK)
        return (sdlf_tensor){.dtype = SDLF_NONE};
    plan->buffers[tensor.buffer].parameter = parameter;
    plan->buffers[tensor.buffer].state = state;
    return tensor;
}

static sdlf_status emit_update(sdlf_plan *plan, int index, int parameter)
{
    const plan_node *node = &plan->nodes[index];
    const sdlf_optimizer *optimizer = &plan->options.optimizer;
    sdlf_operation update = {0};
    optimizer->type->update(optimizer, plan->model->parameters[parameter].spec.decay, &update);
    update.in[0] = plan->gradients[parameter];
    update.in[1] = plan_control_tensor(plan, CONTROL_RATE);
    update.in[2] = plan->clip;
    const sdlf_operation_class *type = sdlf_operation_class_of(update.kind);
    if (type->in[3].name != NULL) update.in[3] = plan_control_tensor(plan, CONTROL_STEP);
    update.out[0] = plan_parameter_tensor(plan, parameter);
    for (int i = 0; i < optimizer->type->state_count(optimizer); i++) {
        update.out[1 + i] = state_tensor(plan, parameter, i);
        if (!sdlf_tensor_present(&update.out[1 + i])) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, node->backward, &update);
}

sdlf_status plan_emit_updates(sdlf_plan *plan, int index)
{
    const plan_node *node = &plan->nodes[index];
    for (int i = node->first_parameter; i < node->first_parameter + node->parameter_count; i++) {
        if (!sdlf_tensor_present(&plan->gradients[i])) continue;
        sdlf_status status = emit_update(plan, index, i);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

sdlf_status plan_lower_clipping(sdlf_plan *plan)
{
    int count = plan_count_present(plan->gradients, plan->model->parameter_count);
    if (count == 0) return SDLF_OK;
    sdlf_dtype dtype = plan->options.dtype;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, dtype, sdlf_shape(count), &plan->squares);
    if (status == SDLF_OK) status = plan_new_tensor(plan, BUFFER_ARENA, dtype, sdlf_shape(1), &plan->clip);
    if (status != SDLF_OK) return status;
    int which = 0, last = 0;
    for (int i = 0; i < plan->node_count; i++) {
        for (int j = 0; j < plan->nodes[i].parameter_count; j++) {
            const sdlf_tensor *gradient = &plan->gradients[plan->nodes[i].first_parameter + j];
            if (!sdlf_tensor_present(gradient)) continue;
            sdlf_operation reduce = {
                .kind = SDLF_REDUCE,
                .in = {sdlf_tensor_reshape(*gradient, sdlf_shape(sdlf_tensor_count(gradient)))},
                .out = {sdlf_tensor_narrow(plan->squares, 0, which++, 1)},
                .reduce = {.function = SDLF_REDUCE_SUM_SQUARES, .axis = 0},
            };
            status = plan_emit(plan, i, SDLF_PHASE_UPDATE, plan->nodes[i].backward, &reduce);
            if (status != SDLF_OK) return status;
            last = i;
        }
    }
    sdlf_operation clip = {
        .kind = SDLF_CLIP_SCALE,
        .in = {plan->squares},
        .out = {plan->clip},
        .clip = {.max_norm = plan->options.clip_norm},
    };
    return plan_emit(plan, last, SDLF_PHASE_UPDATE, plan->options.backward, &clip);
}
