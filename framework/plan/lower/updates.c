/* SPDX-License-Identifier: MIT */
/* Lowering of the parameter updates, and of the gradient clipping scale. */
#include "framework/plan/lower/lower.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sdlf_tensor plan_state_tensor(sdlf_plan *plan, int parameter, int state)
{
    sdlf_tensor tensor;
    sdlf_shape shape = plan->model->parameters[parameter].spec.shape;
    if (plan->options.shard_states) shape = sdlf_shape(model_state_count(plan->model, parameter));
    if (plan_new_tensor(plan, BUFFER_STATE, plan->options.dtype, shape, &tensor) != SDLF_OK)
        return (sdlf_tensor){.dtype = SDLF_NONE};
    plan->buffers[tensor.buffer].parameter = parameter;
    plan->buffers[tensor.buffer].state = state;
    return tensor;
}

sdlf_status plan_emit_binary(sdlf_plan *plan, int index, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                             double scalar, sdlf_tensor y)
{
    const sdlf_operation operation = {
        .kind = SDLF_BINARY, .in = {a, b}, .out = {y}, .binary = {.function = function, .scalar = scalar}};
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, plan->nodes[index].backward, &operation);
}

sdlf_status plan_emit_select(sdlf_plan *plan, int index, sdlf_tensor condition, sdlf_tensor a, sdlf_tensor to)
{
    const sdlf_operation select = {
        .kind = SDLF_SELECT, .in = {sdlf_tensor_broadcast(condition, to.shape), a, to}, .out = {to}};
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, plan->nodes[index].backward, &select);
}

/* Emitted before all readers, as an update may move up to where its gradient is computed. */
static sdlf_status emit_rate(sdlf_plan *plan, sdlf_binary_function function, sdlf_tensor from, double scalar,
                             sdlf_tensor *to)
{
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, plan->options.dtype, sdlf_shape(1), to);
    const sdlf_operation operation = {
        .kind = SDLF_BINARY, .in = {from}, .out = {*to}, .binary = {.function = function, .scalar = scalar}};
    if (status != SDLF_OK) return status;
    return plan_emit(plan, plan->node_count - 1, SDLF_PHASE_BACKWARD, plan->options.backward, &operation);
}

/* max(0, scale rate - offset) */
static sdlf_status emit_own_rate(sdlf_plan *plan, double scale, double offset, sdlf_tensor *rate)
{
    sdlf_tensor scaled, lowered, main = plan_control_tensor(plan, CONTROL_RATE);
    sdlf_status status = emit_rate(plan, SDLF_BINARY_MULTIPLY, main, scale, &scaled);
    *rate = scaled;
    if (status != SDLF_OK || offset == 0) return status;
    status = emit_rate(plan, SDLF_BINARY_SUBTRACT, scaled, offset, &lowered);
    return status == SDLF_OK ? emit_rate(plan, SDLF_BINARY_MAXIMUM, lowered, 0, rate) : status;
}

sdlf_status plan_lower_rates(sdlf_plan *plan)
{
    const float *scales = plan->options.rate_scales, *offsets = plan->options.rate_offsets;
    if (scales == NULL || plan->options.gradients_only) return SDLF_OK;
    int count = plan->model->parameter_count;
    plan->rates = calloc((size_t)count + 1, sizeof *plan->rates);
    if (plan->rates == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its learning rates");
    for (int i = 0; i < count; i++) {
        if (!(scales[i] > 0) || isinf(scales[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: rate_scales[%d]: expected a number above 0, found %g", i,
                             (double)scales[i]);
        float offset = offsets != NULL ? offsets[i] : 0;
        if (!(offset >= 0) || isinf(offset))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: rate_offsets[%d]: expected 0 or more, found %g", i,
                             (double)offset);
        if (scales[i] == 1 && offset == 0) continue;
        for (int j = 0; j < i; j++)
            if (scales[j] == scales[i] && (offsets == NULL || offsets[j] == offset)) plan->rates[i] = plan->rates[j];
        if (sdlf_tensor_present(&plan->rates[i])) continue;
        sdlf_status status = emit_own_rate(plan, (double)scales[i], (double)offset, &plan->rates[i]);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* The optimizer for that parameter, which may have its own weight decay. */
static sdlf_optimizer optimizer_of(const sdlf_plan *plan, int parameter, bool *decays)
{
    const float *own = plan->options.weight_decays;
    sdlf_optimizer optimizer = plan->options.optimizer;
    *decays = plan->model->parameters[parameter].spec.decay;
    if (own == NULL || !(own[parameter] >= 0)) return optimizer;
    for (const sdlf_field *field = optimizer.type->fields; field->name != NULL; field++)
        if (strcmp(field->name, "weight_decay") == 0)
            *(double *)(void *)(optimizer.options.bytes + field->offset) = (double)own[parameter];
    *decays = true;
    return optimizer;
}

/* True if muon uses its orthogonal step for a parameter of that shape. */
static bool is_orthogonal(const sdlf_optimizer *optimizer, sdlf_shape shape)
{
    return optimizer->type->form == SDLF_UPDATE_ORTHOGONAL &&
           shape.rank >= (optimizer->options.muon.filters_only ? 4 : 2);
}

/* The part of a parameter or its gradient that this rank updates. */
static sdlf_tensor part_of(const sdlf_plan *plan, int parameter, sdlf_tensor tensor)
{
    if (!plan->options.shard_states) return tensor;
    tensor = sdlf_tensor_reshape(tensor, sdlf_shape(sdlf_tensor_count(&tensor)));
    return sdlf_tensor_narrow(tensor, 0, model_state_first(plan->model, parameter),
                              model_state_count(plan->model, parameter));
}

static sdlf_status emit_update(sdlf_plan *plan, int index, int parameter)
{
    const plan_node *node = &plan->nodes[index];
    bool decays;
    if (plan->options.shard_states && model_state_count(plan->model, parameter) == 0) return SDLF_OK;
    const sdlf_optimizer own = optimizer_of(plan, parameter, &decays), *optimizer = &own;
    sdlf_operation update = {0};
    optimizer->type->update(optimizer, decays, &update);
    update.in[0] = part_of(plan, parameter, plan->gradients[parameter]);
    update.in[1] = plan_control_tensor(plan, CONTROL_RATE);
    if (plan->rates != NULL && sdlf_tensor_present(&plan->rates[parameter])) update.in[1] = plan->rates[parameter];
    update.in[2] = plan->clip;
    const sdlf_operation_class *type = sdlf_operation_type(&update);
    if (type->in[3].name != NULL) {
        bool counted = sdlf_tensor_present(&plan->steps_taken);
        update.in[3] = counted ? plan->steps_taken : plan_control_tensor(plan, CONTROL_STEP);
    }
    update.out[0] = part_of(plan, parameter, plan_parameter_tensor(plan, parameter));
    for (int i = 0; i < optimizer->type->state_count(optimizer); i++) {
        update.out[1 + i] = plan_state_tensor(plan, parameter, i);
        if (!sdlf_tensor_present(&update.out[1 + i])) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    sdlf_status status = SDLF_OK;
    if (optimizer->type->form == SDLF_UPDATE_TRUST && decays) status = plan_emit_trust(plan, index, &update);
    if (status == SDLF_OK && is_orthogonal(optimizer, update.out[0].shape))
        status = plan_emit_orthogonal(plan, index, &update);
    else if (status == SDLF_OK)
        status = plan_emit(plan, index, SDLF_PHASE_UPDATE, node->backward, &update);
    return status == SDLF_OK ? plan_emit_averages(plan, index, parameter) : status;
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

sdlf_status plan_lower_squares(sdlf_plan *plan)
{
    int count = plan_count_present(plan->gradients, plan->model->parameter_count), which = 0;
    if (plan->options.clip_norm <= 0 || count == 0) return SDLF_OK;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, plan->options.dtype, sdlf_shape(count), &plan->squares);
    for (int i = 0; i < plan->node_count; i++) {
        for (int j = 0; j < plan->nodes[i].parameter_count && status == SDLF_OK; j++) {
            const sdlf_tensor *gradient = &plan->gradients[plan->nodes[i].first_parameter + j];
            if (!sdlf_tensor_present(gradient)) continue;
            const sdlf_operation reduce = {
                .kind = SDLF_REDUCE,
                .in = {sdlf_tensor_reshape(*gradient, sdlf_shape(sdlf_tensor_count(gradient)))},
                .out = {sdlf_tensor_narrow(plan->squares, 0, which++, 1)},
                .reduce = {.function = SDLF_REDUCE_SUM_SQUARES, .axis = 0},
            };
            status = plan_emit(plan, i, SDLF_PHASE_UPDATE, plan->nodes[i].backward, &reduce);
        }
    }
    return status;
}

sdlf_status plan_lower_clipping(sdlf_plan *plan)
{
    if (!sdlf_tensor_present(&plan->squares)) return SDLF_OK;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, plan->options.dtype, sdlf_shape(1), &plan->clip);
    const sdlf_operation clip = {
        .kind = SDLF_CLIP_SCALE,
        .in = {plan->squares, plan->factor},
        .out = {plan->clip},
        .clip = {.max_norm = plan->options.clip_norm},
    };
    if (status != SDLF_OK) return status;
    return plan_emit(plan, plan->node_count - 1, SDLF_PHASE_UPDATE, plan->options.backward, &clip);
}
