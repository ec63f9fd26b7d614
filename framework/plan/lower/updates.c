/* Lowering the updates of parameters, and the scale of gradient clipping. */
#include "framework/plan/lower/lower.h"

#include <math.h>
#include <stdlib.h>

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

sdlf_status plan_emit_binary(sdlf_plan *plan, int index, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                             double scalar, sdlf_tensor y)
{
    const sdlf_operation operation = {
        .kind = SDLF_BINARY, .in = {a, b}, .out = {y}, .binary = {.function = function, .scalar = scalar}};
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, plan->nodes[index].backward, &operation);
}

/* average += (1 - ema) (weight - average) */
static sdlf_status emit_average(sdlf_plan *plan, int index, int parameter, int state)
{
    sdlf_tensor average = state_tensor(plan, parameter, state), weight = plan_parameter_tensor(plan, parameter);
    sdlf_tensor difference, part, none = {.dtype = SDLF_NONE};
    if (!sdlf_tensor_present(&average)) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, weight.dtype, weight.shape, &difference);
    if (status == SDLF_OK) status = plan_new_tensor(plan, BUFFER_ARENA, weight.dtype, weight.shape, &part);
    if (status == SDLF_OK) status = plan_emit_binary(plan, index, SDLF_BINARY_SUBTRACT, weight, average, 0, difference);
    if (status == SDLF_OK)
        status = plan_emit_binary(plan, index, SDLF_BINARY_MULTIPLY, difference, none, 1 - plan->options.ema, part);
    return status == SDLF_OK ? plan_emit_binary(plan, index, SDLF_BINARY_ADD, average, part, 0, average) : status;
}

/* Before all that reads it: an update may move to where its gradient is made. */
static sdlf_status emit_rate(sdlf_plan *plan, double scale, sdlf_tensor to)
{
    const sdlf_operation operation = {.kind = SDLF_BINARY,
                                      .in = {plan_control_tensor(plan, CONTROL_RATE)},
                                      .out = {to},
                                      .binary = {.function = SDLF_BINARY_MULTIPLY, .scalar = scale}};
    return plan_emit(plan, plan->node_count - 1, SDLF_PHASE_BACKWARD, plan->options.backward, &operation);
}

sdlf_status plan_lower_rates(sdlf_plan *plan)
{
    const float *scales = plan->options.rate_scales;
    if (scales == NULL || plan->options.gradients_only) return SDLF_OK;
    int count = plan->model->parameter_count;
    plan->rates = calloc((size_t)count + 1, sizeof *plan->rates);
    if (plan->rates == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its learning rates");
    for (int i = 0; i < count; i++) {
        if (!(scales[i] > 0) || isinf(scales[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: rate_scales[%d]: expected a number above 0, found %g", i,
                             (double)scales[i]);
        if (scales[i] == 1) continue;
        for (int j = 0; j < i; j++)
            if (scales[j] == scales[i]) plan->rates[i] = plan->rates[j];
        if (sdlf_tensor_present(&plan->rates[i])) continue;
        sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, plan->options.dtype, sdlf_shape(1), &plan->rates[i]);
        if (status == SDLF_OK) status = emit_rate(plan, (double)scales[i], plan->rates[i]);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static sdlf_status emit_update(sdlf_plan *plan, int index, int parameter)
{
    const plan_node *node = &plan->nodes[index];
    const sdlf_optimizer *optimizer = &plan->options.optimizer;
    sdlf_operation update = {0};
    optimizer->type->update(optimizer, plan->model->parameters[parameter].spec.decay, &update);
    update.in[0] = plan->gradients[parameter];
    update.in[1] = plan_control_tensor(plan, CONTROL_RATE);
    if (plan->rates != NULL && sdlf_tensor_present(&plan->rates[parameter])) update.in[1] = plan->rates[parameter];
    update.in[2] = plan->clip;
    const sdlf_operation_class *type = sdlf_operation_class_of(update.kind);
    if (type->in[3].name != NULL) update.in[3] = plan_control_tensor(plan, CONTROL_STEP);
    update.out[0] = plan_parameter_tensor(plan, parameter);
    for (int i = 0; i < optimizer->type->state_count(optimizer); i++) {
        update.out[1 + i] = state_tensor(plan, parameter, i);
        if (!sdlf_tensor_present(&update.out[1 + i])) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    bool matrix = update.out[0].shape.rank >= 2, decays = plan->model->parameters[parameter].spec.decay;
    sdlf_status status = SDLF_OK;
    if (optimizer->type->form == SDLF_UPDATE_TRUST && decays) status = plan_emit_trust(plan, index, &update);
    if (status == SDLF_OK && optimizer->type->form == SDLF_UPDATE_ORTHOGONAL && matrix)
        status = plan_emit_orthogonal(plan, index, &update);
    else if (status == SDLF_OK)
        status = plan_emit(plan, index, SDLF_PHASE_UPDATE, node->backward, &update);
    if (status != SDLF_OK || plan->options.ema <= 0) return status;
    return emit_average(plan, index, parameter, optimizer->type->state_count(optimizer));
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
