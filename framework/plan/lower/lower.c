/* SPDX-License-Identifier: MIT */
/* The lowering pass: every layer emits its forward pass, then, in reverse, its backward pass (backward.c) with the
 * updates (updates.c); the result is one flat list of steps over buffers. */
#include "framework/plan/lower/lower.h"

#include <assert.h>

#include <sdlf/random.h>

#include "framework/input_layer.h"

int plan_count_present(const sdlf_tensor *tensors, int count)
{
    int present = 0;
    for (int i = 0; i < count; i++) present += sdlf_tensor_present(&tensors[i]);
    return present;
}

/* True for a copy onto itself: the past of a state that grows in place. */
static bool copies_itself(const sdlf_operation *operation)
{
    const sdlf_tensor *from = &operation->in[0], *to = &operation->out[0];
    if (operation->kind != SDLF_COPY || from->buffer != to->buffer || from->offset != to->offset) return false;
    if (from->dtype != to->dtype || !sdlf_shape_equal(from->shape, to->shape)) return false;
    for (int axis = 0; axis < from->shape.rank; axis++)
        if (from->shape.dim[axis] != 1 && from->stride[axis] != to->stride[axis]) return false;
    return true;
}

sdlf_status plan_emit(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator,
                      const sdlf_operation *operation)
{
    if (plan_count_present(operation->out, SDLF_MAX_OUTPUTS) == 0 || copies_itself(operation)) return SDLF_OK;
    sdlf_status status = sdlf_operation_check(operation);
    if (status != SDLF_OK) return status;
    plan_step step = {.operation = *operation, .calculator = calculator, .phase = phase, .serves = phase, .node = node};
    return plan_append_step(plan, &step);
}

static sdlf_status emit(layer_sink *base, const sdlf_operation *operation)
{
    plan_sink *sink = (plan_sink *)base;
    return plan_emit(sink->plan, sink->node, sink->phase, sink->calculator, operation);
}

/* In training the operation must be supported in both passes, as the backward pass reads what the forward pass saved.
 * Without fusion a layer stays decomposed. */
static bool takes(const layer_sink *base, const sdlf_operation *operation)
{
    const plan_sink *sink = (const plan_sink *)base;
    const plan_node *node = &sink->plan->nodes[sink->node];
    if (sink->plan->options.no_fusion || !sdlf_calculator_supports(node->forward, operation)) return false;
    return sink->plan->options.mode != SDLF_TRAIN || sdlf_calculator_supports(node->backward, operation);
}

static sdlf_status scratch(layer_sink *base, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor)
{
    return plan_new_tensor(((plan_sink *)base)->plan, BUFFER_ARENA, dtype, shape, tensor);
}

plan_sink plan_make_sink(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator)
{
    static_assert(offsetof(plan_sink, base) == 0, "base must be first");
    return (plan_sink){
        .base = {.emit = emit, .takes = takes, .scratch = scratch},
        .plan = plan,
        .node = node,
        .phase = phase,
        .calculator = calculator,
    };
}

/* ---- tensors of parameters and states ---- */

/* Creates one buffer for each parameter of the model, in order. */
static sdlf_status make_parameter_buffers(sdlf_plan *plan)
{
    for (int i = 0; i < plan->model->parameter_count; i++) {
        sdlf_tensor tensor;
        sdlf_status status = plan_new_tensor(plan, BUFFER_PARAMETER, plan->options.dtype,
                                             plan->model->parameters[i].spec.shape, &tensor);
        if (status != SDLF_OK) return status;
        if (i == 0) plan->parameter_buffer_base = tensor.buffer;
        plan->buffers[tensor.buffer].parameter = i;
    }
    return SDLF_OK;
}

sdlf_tensor plan_parameter_tensor(const sdlf_plan *plan, int parameter)
{
    sdlf_tensor tensor = sdlf_tensor_view(plan->options.dtype, plan->model->parameters[parameter].spec.shape, NULL);
    tensor.buffer = plan->parameter_buffer_base + parameter;
    return tensor;
}

/* ---- forward ---- */

static sdlf_status prepare_node(sdlf_plan *plan, plan_node *node)
{
    sdlf_status status = SDLF_OK;
    bool is_input = node->layer->type == &sdlf_input_layer_class;
    for (int i = 0; i < node->output_count && status == SDLF_OK; i++) {
        plan_value *value = &plan->values[node->first_value + i];
        bool view = i == 0 && !is_input && (node->layer->type->forward == NULL || node->idle);
        const sdlf_plan_constant *constant = plan_constant_of(plan, node);
        sdlf_tensor state;
        status = plan_input_state_tensor(plan, node->first_value + i, &state);
        if (status != SDLF_OK) break;
        if (sdlf_tensor_present(&state))
            value->tensor = state;
        else if (constant != NULL)
            status = plan_make_constant(plan, constant, &value->tensor);
        else if (view)
            value->tensor = sdlf_tensor_reshape(plan->values[node->inputs[0]].tensor, value->tensor.shape);
        else
            status = plan_new_tensor(plan, is_input && !plan_is_fed(plan, node) ? BUFFER_PINNED : BUFFER_ARENA,
                                     value->tensor.dtype, value->tensor.shape, &value->tensor);
    }
    for (int i = 0; i < node->saved_count && status == SDLF_OK; i++) {
        sdlf_tensor *saved = &plan->saved[node->first_saved + i];
        status = plan_new_tensor(plan, BUFFER_ARENA, saved->dtype, saved->shape, saved);
    }
    return status;
}

sdlf_layer_context plan_make_context(sdlf_plan *plan, int index, plan_sink *sink, plan_operands *operands)
{
    const plan_node *node = &plan->nodes[index];
    for (int i = 0; i < node->input_count; i++) operands->input[i] = plan->values[node->inputs[i]].tensor;
    for (int i = 0; i < node->output_count; i++) operands->output[i] = plan->values[node->first_value + i].tensor;
    for (int i = 0; i < node->parameter_count; i++) {
        int parameter = node->first_parameter + i;
        operands->parameter[i] = plan_parameter_tensor(plan, parameter);
        if (plan->gradients != NULL) operands->parameter_gradient[i] = plan->gradients[parameter];
    }
    for (int i = 0; i < node->saved_count; i++) operands->saved[i] = plan->saved[node->first_saved + i];
    return (sdlf_layer_context){
        .input = operands->input,
        .output = operands->output,
        .parameter = operands->parameter,
        .saved = operands->saved,
        .input_count = node->input_count,
        .training = plan->options.mode == SDLF_TRAIN,
        .eval_mode = plan->options.eval_mode,
        .batch = plan->options.batch,
        .first_sample = plan->options.first_sample,
        .seed = plan->options.seed,
        .stream = SDLF_STREAM_DROPOUT + (uint32_t)index,
        .sink = sink,
    };
}

static sdlf_status lower_forward(sdlf_plan *plan, int index)
{
    plan_node *node = &plan->nodes[index];
    sdlf_status status = prepare_node(plan, node);
    if (status == SDLF_OK && plan_is_fed(plan, node)) return plan_lower_gather(plan, index);
    if (status != SDLF_OK || node->layer->type->forward == NULL || node->idle) return status;
    plan_sink sink = plan_make_sink(plan, index, SDLF_PHASE_FORWARD, node->forward);
    plan_operands operands = {0};
    sdlf_layer_context context = plan_make_context(plan, index, &sink, &operands);
    context.step = plan_control_tensor(plan, CONTROL_STEP);
    if (!sdlf_tensor_present(&context.step)) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    if (node->layer->type->has_metrics && !sdlf_tensor_present(&plan->metrics)) {
        status = plan_new_tensor(plan, BUFFER_PINNED, SDLF_FLOAT64, sdlf_shape(3), &plan->metrics);
        if (status != SDLF_OK) return status;
        context.metrics = plan->metrics;
    }
    status = node->layer->type->forward(node->layer, &context);
    return status == SDLF_OK ? sink.base.status : status;
}

/* Pins what remains readable after a run. */
static void pin_results(sdlf_plan *plan)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        if (!node->live || !node->layer->type->is_loss) continue;
        plan->buffers[plan->values[node->first_value].tensor.buffer].kind = BUFFER_PINNED;
        if (plan->loss_value < 0) plan->loss_value = node->first_value;
    }
    for (int i = 0; i < plan->model->output_count; i++) {
        sdlf_node output = plan->model->outputs[i].node;
        const plan_node *node = &plan->nodes[output.layer];
        int buffer = plan->values[node->first_value + output.output].tensor.buffer;
        if (node->live && plan->buffers[buffer].kind != BUFFER_DATA) plan->buffers[buffer].kind = BUFFER_PINNED;
    }
    if (plan->model->output_count == 0 && plan->nodes[plan->model->layer_count - 1].live)
        plan->buffers[plan->values[plan->nodes[plan->model->layer_count - 1].first_value].tensor.buffer].kind =
            BUFFER_PINNED;
}

/* Marks parameters that no step writes: they are the same in every space. */
static void mark_constants(sdlf_plan *plan)
{
    for (int i = 0; i < plan->model->parameter_count; i++)
        plan->buffers[plan->parameter_buffer_base + i].constant = true;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *operation = &plan->steps[i].operation;
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            if (!sdlf_tensor_present(&operation->out[j])) continue;
            plan_buffer *buffer = &plan->buffers[operation->out[j].buffer];
            if (buffer->kind == BUFFER_PARAMETER) buffer->constant = false;
        }
    }
    for (int i = 0; i < plan->model->parameter_count && plan->options.shard_states; i++) /* other ranks write it, too */
        if (sdlf_tensor_present(&plan->gradients[i])) plan->buffers[plan->parameter_buffer_base + i].constant = false;
}

sdlf_status plan_lower(sdlf_plan *plan)
{
    sdlf_status status = make_parameter_buffers(plan);
    if (status == SDLF_OK && plan->feed.present) status = plan_lower_feed(plan);
    for (int i = 0; i < plan->node_count && status == SDLF_OK; i++) {
        if (!plan->nodes[i].live) continue;
        status = lower_forward(plan, i);
        if (status != SDLF_OK)
            return sdlf_fail_context(status, "layer %d '%s' (%s), forward", i, plan->nodes[i].layer->name,
                                     plan->nodes[i].layer->type->name);
    }
    plan->forward_steps = plan->step_count;
    if (status == SDLF_OK && plan->options.mode == SDLF_TRAIN) status = plan_lower_training(plan);
    if (status != SDLF_OK) return status;
    pin_results(plan);
    mark_constants(plan);
    return SDLF_OK;
}
