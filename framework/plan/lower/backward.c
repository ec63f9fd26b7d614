/* SPDX-License-Identifier: MIT */
/* Lowering of the backward pass: layers emit it in reverse order, and the gradients of a value with several readers are
 * added. Updates directly follow the backward pass of their layer, so that a gradient's memory is freed early; with
 * gradient clipping, loss scaling or accumulation they come last. */
#include "framework/plan/lower/lower.h"

#include <stdlib.h>

#include "framework/input_layer.h"

static void mark_gradients(sdlf_plan *plan)
{
    for (int i = 0; i < plan->node_count; i++) {
        plan_node *node = &plan->nodes[i];
        bool needs = false;
        for (int j = 0; j < node->parameter_count; j++)
            needs = needs || plan->model->parameters[node->first_parameter + j].spec.trainable;
        for (int j = 0; j < node->input_count; j++) needs = needs || plan->values[node->inputs[j]].needs_gradient;
        for (int j = 0; j < node->output_count; j++) {
            plan_value *value = &plan->values[node->first_value + j];
            value->needs_gradient = needs && sdlf_dtype_is_float(value->tensor.dtype);
        }
    }
}

/* Sets the initial gradients of a node's outputs: 1, or the loss scale, for a loss; zeros for unused outputs of a node
 * with used ones. */
static sdlf_status prepare_output_gradients(sdlf_plan *plan, int index, bool *reached)
{
    plan_node *node = &plan->nodes[index];
    plan_value *outputs = &plan->values[node->first_value];
    *reached = false;
    if (node->layer->type->is_loss) outputs[0].gradient = plan->loss_gradient;
    for (int i = 0; i < node->output_count; i++)
        *reached = *reached || (outputs[i].needs_gradient && sdlf_tensor_present(&outputs[i].gradient));
    for (int i = 0; *reached && i < node->output_count; i++) {
        if (sdlf_tensor_present(&outputs[i].gradient) || !outputs[i].needs_gradient) continue;
        sdlf_operation fill = {.kind = SDLF_FILL, .fill = {.value = 0}};
        sdlf_status status =
            plan_new_tensor(plan, BUFFER_ARENA, outputs[i].tensor.dtype, outputs[i].tensor.shape, &fill.out[0]);
        if (status == SDLF_OK) status = plan_emit(plan, index, SDLF_PHASE_BACKWARD, node->backward, &fill);
        if (status != SDLF_OK) return status;
        outputs[i].gradient = fill.out[0];
    }
    return SDLF_OK;
}

/* Adds a reader's contribution to a value's gradient. */
static sdlf_status add_gradient(sdlf_plan *plan, int index, int value_index, const sdlf_tensor *gradient)
{
    plan_value *value = &plan->values[value_index];
    if (!sdlf_tensor_present(gradient)) return SDLF_OK;
    if (!sdlf_tensor_present(&value->gradient)) {
        value->gradient = *gradient;
        return SDLF_OK;
    }
    sdlf_operation add = {.kind = SDLF_ADD, .in = {value->gradient, *gradient}};
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, value->tensor.dtype, value->tensor.shape, &add.out[0]);
    if (status == SDLF_OK) status = plan_emit(plan, index, SDLF_PHASE_BACKWARD, plan->nodes[index].backward, &add);
    value->gradient = add.out[0];
    return status;
}

static sdlf_status run_layer_backward(sdlf_plan *plan, int index, sdlf_tensor *input_gradient)
{
    plan_node *node = &plan->nodes[index];
    sdlf_tensor output_gradient[SDLF_MAX_LAYER_OUTPUTS];
    for (int i = 0; i < node->output_count; i++) output_gradient[i] = plan->values[node->first_value + i].gradient;
    if (node->layer->type->forward == NULL) {
        if (plan->values[node->inputs[0]].needs_gradient)
            input_gradient[0] = sdlf_tensor_reshape(output_gradient[0], plan->values[node->inputs[0]].tensor.shape);
        return SDLF_OK;
    }
    if (node->layer->type->backward == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "the layer has no backward pass, but a gradient must pass through it");
    plan_sink sink = plan_make_sink(plan, index, SDLF_PHASE_BACKWARD, node->backward);
    plan_operands operands = {0};
    sdlf_layer_context context = plan_make_context(plan, index, &sink, &operands);
    context.step = plan_control_tensor(plan, CONTROL_STEP);
    context.output_gradient = output_gradient;
    context.input_gradient = input_gradient;
    context.parameter_gradient = operands.parameter_gradient;
    sdlf_status status = node->layer->type->backward(node->layer, &context);
    return status == SDLF_OK ? sink.base.status : status;
}

/* True if updates must wait for the gradients of all parameters. */
static bool updates_come_last(const sdlf_plan *plan)
{
    return plan->options.clip_norm > 0 || plan->options.accumulate || plan->options.loss_scale > 0;
}

static sdlf_status lower_backward(sdlf_plan *plan, int index)
{
    plan_node *node = &plan->nodes[index];
    bool reached;
    sdlf_status status = prepare_output_gradients(plan, index, &reached);
    if (status != SDLF_OK || !reached) return status;
    buffer_kind gradient_kind = plan->options.gradients_only ? BUFFER_PINNED : BUFFER_ARENA;
    for (int i = 0; i < node->parameter_count && status == SDLF_OK; i++) {
        int parameter = node->first_parameter + i;
        const sdlf_parameter_spec *spec = &plan->model->parameters[parameter].spec;
        if (spec->trainable)
            status =
                plan_new_tensor(plan, gradient_kind, plan->options.dtype, spec->shape, &plan->gradients[parameter]);
    }
    sdlf_tensor input_gradient[SDLF_MAX_LAYER_INPUTS] = {{0}};
    for (int i = 0; i < node->input_count && status == SDLF_OK; i++) {
        const plan_value *value = &plan->values[node->inputs[i]];
        if (value->needs_gradient && node->layer->type->forward != NULL)
            status = plan_new_tensor(plan, BUFFER_ARENA, value->tensor.dtype, value->tensor.shape, &input_gradient[i]);
    }
    if (status == SDLF_OK) status = run_layer_backward(plan, index, input_gradient);
    for (int i = 0; i < node->input_count && status == SDLF_OK; i++)
        status = add_gradient(plan, index, node->inputs[i], &input_gradient[i]);
    if (status == SDLF_OK && plan->options.accumulate) return plan_emit_sums(plan, index);
    if (status == SDLF_OK && !updates_come_last(plan) && !plan->options.gradients_only)
        status = plan_emit_updates(plan, index);
    return status;
}

sdlf_status plan_lower_training(sdlf_plan *plan)
{
    plan->gradients = calloc((size_t)plan->model->parameter_count + 1, sizeof *plan->gradients);
    if (plan->gradients == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of gradients");
    mark_gradients(plan);
    sdlf_status status = plan_lower_rates(plan);
    if (status == SDLF_OK) status = plan_lower_lookahead(plan);
    if (status == SDLF_OK) status = plan_lower_loss_gradient(plan);
    if (status != SDLF_OK) return status;
    for (int i = plan->node_count - 1; i >= 0; i--) {
        if (!plan->nodes[i].live || plan->nodes[i].layer->type == &sdlf_input_layer_class) continue;
        status = lower_backward(plan, i);
        if (status != SDLF_OK)
            return sdlf_fail_context(status, "layer %d '%s' (%s), backward", i, plan->nodes[i].layer->name,
                                     plan->nodes[i].layer->type->name);
    }
    if (!updates_come_last(plan) || plan->options.gradients_only) return SDLF_OK;
    if (plan->options.accumulate) status = plan_lower_means(plan);
    if (status == SDLF_OK) status = plan_lower_squares(plan);
    if (status == SDLF_OK) status = plan_lower_loss_scale(plan);
    if (status == SDLF_OK) status = plan_lower_clipping(plan);
    for (int i = 0; i < plan->node_count && status == SDLF_OK; i++) status = plan_emit_updates(plan, i);
    return status;
}
