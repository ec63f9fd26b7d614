/* The lowering pass: every layer describes its forward pass, then, in reverse, its backward pass; the result is one
 * straight list of steps over buffers. Updates stand right behind the backward pass of their layer, so that a gradient's
 * memory is free again at once; with gradient clipping they come last. */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/random.h>

#include "layers/input.h"

typedef struct plan_sink {
    sdlf_plan *plan;
    int node;
    sdlf_phase phase;
    sdlf_calculator *calculator;
    sdlf_status status; /* of sdlf_scratch, which has no other way to say it */
} plan_sink;

static int present_count(const sdlf_tensor *tensors, int count)
{
    int present = 0;
    for (int i = 0; i < count; i++) present += sdlf_tensor_present(&tensors[i]);
    return present;
}

sdlf_status plan_emit(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator,
                      const sdlf_operation *operation)
{
    if (present_count(operation->out, SDLF_MAX_OUTPUTS) == 0) return SDLF_OK;
    sdlf_status status = sdlf_operation_check(operation);
    if (status != SDLF_OK) return status;
    plan_step step = {.operation = *operation, .calculator = calculator, .phase = phase, .serves = phase, .node = node};
    return plan_append_step(plan, &step);
}

sdlf_status sdlf_emit(sdlf_layer_context *context, const sdlf_operation *operation)
{
    plan_sink *sink = context->sink;
    if (sink->status != SDLF_OK) return sink->status;
    return plan_emit(sink->plan, sink->node, sink->phase, sink->calculator, operation);
}

sdlf_tensor sdlf_scratch(sdlf_layer_context *context, sdlf_dtype dtype, sdlf_shape shape)
{
    plan_sink *sink = context->sink;
    sdlf_tensor tensor;
    sdlf_status status = plan_new_tensor(sink->plan, BUFFER_ARENA, dtype, shape, &tensor);
    if (status != SDLF_OK) sink->status = status;
    return tensor;
}

/* ---- tensors of parameters and states ---- */

/* One buffer for each parameter of the model, in order. */
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

static sdlf_tensor parameter_tensor(const sdlf_plan *plan, int parameter)
{
    sdlf_tensor tensor = sdlf_tensor_view(plan->options.dtype, plan->model->parameters[parameter].spec.shape, NULL);
    tensor.buffer = plan->parameter_buffer_base + parameter;
    return tensor;
}

/* ---- forward ---- */

static sdlf_status prepare_node(sdlf_plan *plan, plan_node *node)
{
    const sdlf_signature *signature = &node->signature;
    sdlf_status status = SDLF_OK;
    bool is_input = node->layer->type == &sdlf_input_layer_class;
    for (int i = 0; i < signature->output_count && status == SDLF_OK; i++) {
        plan_value *value = &plan->values[node->first_value + i];
        bool view = i == 0 && !is_input && (node->layer->type->forward == NULL || node->idle);
        if (view)
            value->tensor = sdlf_tensor_reshape(plan->values[node->inputs[0]].tensor, signature->output_shape[0]);
        else
            status = plan_new_tensor(plan, is_input && !plan_is_fed(plan, node) ? BUFFER_PINNED : BUFFER_ARENA,
                                     signature->output_dtype[i], signature->output_shape[i], &value->tensor);
    }
    for (int i = 0; i < signature->parameter_count; i++)
        node->parameter[i] = parameter_tensor(plan, node->first_parameter + i);
    for (int i = 0; i < signature->saved_count && status == SDLF_OK; i++)
        status =
            plan_new_tensor(plan, BUFFER_ARENA, signature->saved_dtype[i], signature->saved_shape[i], &node->saved[i]);
    return status;
}

static bool is_cross_entropy(const plan_node *node)
{
    return strcmp(node->layer->type->name, "softmax_cross_entropy") == 0;
}

/* What forward and backward see alike. `input` and `output` have room for a layer's tensors. */
static sdlf_layer_context make_context(sdlf_plan *plan, int index, plan_sink *sink, sdlf_tensor *input,
                                       sdlf_tensor *output)
{
    plan_node *node = &plan->nodes[index];
    for (int i = 0; i < node->input_count; i++) input[i] = plan->values[node->inputs[i]].tensor;
    for (int i = 0; i < node->signature.output_count; i++) output[i] = plan->values[node->first_value + i].tensor;
    return (sdlf_layer_context){
        .input = input,
        .output = output,
        .parameter = node->parameter,
        .saved = node->saved,
        .input_count = node->input_count,
        .training = plan->options.mode == SDLF_TRAIN,
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
    plan_sink sink = {.plan = plan, .node = index, .phase = SDLF_PHASE_FORWARD, .calculator = node->forward};
    sdlf_tensor input[SDLF_MAX_LAYER_INPUTS], output[SDLF_MAX_LAYER_OUTPUTS];
    sdlf_layer_context context = make_context(plan, index, &sink, input, output);
    context.step = plan_control_tensor(plan, CONTROL_STEP);
    if (!sdlf_tensor_present(&context.step)) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    if (is_cross_entropy(node) && !sdlf_tensor_present(&plan->metrics)) {
        status = plan_new_tensor(plan, BUFFER_PINNED, SDLF_FLOAT64, sdlf_shape(3), &plan->metrics);
        if (status != SDLF_OK) return status;
        context.metrics = plan->metrics;
    }
    status = node->layer->type->forward(node->layer, &context);
    return status == SDLF_OK ? sink.status : status;
}

/* ---- backward ---- */

static void mark_gradients(sdlf_plan *plan)
{
    for (int i = 0; i < plan->node_count; i++) {
        plan_node *node = &plan->nodes[i];
        bool needs = false;
        for (int j = 0; j < node->signature.parameter_count; j++)
            needs = needs || node->signature.parameter[j].trainable;
        for (int j = 0; j < node->input_count; j++) needs = needs || plan->values[node->inputs[j]].needs_gradient;
        for (int j = 0; j < node->signature.output_count; j++) {
            plan_value *value = &plan->values[node->first_value + j];
            value->needs_gradient = needs && sdlf_dtype_is_float(value->tensor.dtype);
        }
    }
}

/* Give the node's first gradients: 1 for a loss; zeros for outputs nobody uses beside others that somebody does. */
static sdlf_status prepare_output_gradients(sdlf_plan *plan, int index, bool *reached)
{
    plan_node *node = &plan->nodes[index];
    plan_value *outputs = &plan->values[node->first_value];
    *reached = false;
    if (node->layer->type->is_loss) {
        outputs[0].gradient = plan_control_tensor(plan, CONTROL_ONE);
        if (!sdlf_tensor_present(&outputs[0].gradient)) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    for (int i = 0; i < node->signature.output_count; i++)
        *reached = *reached || (outputs[i].needs_gradient && sdlf_tensor_present(&outputs[i].gradient));
    for (int i = 0; *reached && i < node->signature.output_count; i++) {
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

/* A value's gradient is the sum of what its readers give. */
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
    for (int i = 0; i < node->signature.output_count; i++)
        output_gradient[i] = plan->values[node->first_value + i].gradient;
    if (node->layer->type->forward == NULL) {
        if (plan->values[node->inputs[0]].needs_gradient)
            input_gradient[0] = sdlf_tensor_reshape(output_gradient[0], node->signature.input_shape[0]);
        return SDLF_OK;
    }
    if (node->layer->type->backward == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "the layer has no backward pass, and a gradient must pass through it");
    plan_sink sink = {.plan = plan, .node = index, .phase = SDLF_PHASE_BACKWARD, .calculator = node->backward};
    sdlf_tensor input[SDLF_MAX_LAYER_INPUTS], output[SDLF_MAX_LAYER_OUTPUTS];
    sdlf_layer_context context = make_context(plan, index, &sink, input, output);
    context.step = plan_control_tensor(plan, CONTROL_STEP);
    context.output_gradient = output_gradient;
    context.input_gradient = input_gradient;
    context.parameter_gradient = node->parameter_gradient;
    sdlf_status status = node->layer->type->backward(node->layer, &context);
    return status == SDLF_OK ? sink.status : status;
}

/* ---- updates ---- */

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

static sdlf_status emit_update(sdlf_plan *plan, int index, int which)
{
    plan_node *node = &plan->nodes[index];
    const sdlf_optimizer *optimizer = &plan->options.optimizer;
    sdlf_operation update = {0};
    optimizer->type->update(optimizer, node->signature.parameter[which].decay, &update);
    update.in[0] = node->parameter_gradient[which];
    update.in[1] = plan_control_tensor(plan, CONTROL_RATE);
    update.in[2] = plan->clip;
    const sdlf_operation_class *type = sdlf_operation_class_of(update.kind);
    if (type->in[3].name != NULL) update.in[3] = plan_control_tensor(plan, CONTROL_STEP);
    update.out[0] = node->parameter[which];
    for (int i = 0; i < optimizer->type->state_count(optimizer); i++) {
        update.out[1 + i] = state_tensor(plan, node->first_parameter + which, i);
        if (!sdlf_tensor_present(&update.out[1 + i])) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    return plan_emit(plan, index, SDLF_PHASE_UPDATE, node->backward, &update);
}

static sdlf_status emit_updates(sdlf_plan *plan, int index)
{
    plan_node *node = &plan->nodes[index];
    for (int i = 0; i < node->signature.parameter_count; i++) {
        if (!sdlf_tensor_present(&node->parameter_gradient[i])) continue;
        sdlf_status status = emit_update(plan, index, i);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static sdlf_status lower_backward(sdlf_plan *plan, int index)
{
    plan_node *node = &plan->nodes[index];
    bool reached;
    sdlf_status status = prepare_output_gradients(plan, index, &reached);
    if (status != SDLF_OK || !reached) return status;
    buffer_kind gradient_kind = plan->options.gradients_only ? BUFFER_PINNED : BUFFER_ARENA;
    for (int i = 0; i < node->signature.parameter_count && status == SDLF_OK; i++) {
        if (node->signature.parameter[i].trainable)
            status = plan_new_tensor(plan, gradient_kind, plan->options.dtype, node->signature.parameter[i].shape,
                                     &node->parameter_gradient[i]);
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
    if (status == SDLF_OK && plan->options.clip_norm <= 0 && !plan->options.gradients_only)
        status = emit_updates(plan, index);
    return status;
}

/* scale = min(1, max_norm / norm of all gradients together). */
static sdlf_status lower_clipping(sdlf_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->node_count; i++)
        count += present_count(plan->nodes[i].parameter_gradient, SDLF_MAX_LAYER_PARAMETERS);
    if (count == 0) return SDLF_OK;
    sdlf_dtype dtype = plan->options.dtype;
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, dtype, sdlf_shape(count), &plan->squares);
    if (status == SDLF_OK) status = plan_new_tensor(plan, BUFFER_ARENA, dtype, sdlf_shape(1), &plan->clip);
    if (status != SDLF_OK) return status;
    int which = 0, last = 0;
    for (int i = 0; i < plan->node_count; i++) {
        for (int j = 0; j < plan->nodes[i].signature.parameter_count; j++) {
            const sdlf_tensor *gradient = &plan->nodes[i].parameter_gradient[j];
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

static sdlf_status lower_training(sdlf_plan *plan)
{
    mark_gradients(plan);
    for (int i = plan->node_count - 1; i >= 0; i--) {
        if (!plan->nodes[i].live || plan->nodes[i].layer->type == &sdlf_input_layer_class) continue;
        sdlf_status status = lower_backward(plan, i);
        if (status != SDLF_OK)
            return sdlf_fail_context(status, "layer %d '%s' (%s), backward", i, plan->nodes[i].layer->name,
                                     plan->nodes[i].layer->type->name);
    }
    if (plan->options.clip_norm <= 0 || plan->options.gradients_only) return SDLF_OK;
    sdlf_status status = lower_clipping(plan);
    for (int i = 0; i < plan->node_count && status == SDLF_OK; i++) status = emit_updates(plan, i);
    return status;
}

/* What stays readable after a run keeps its memory. */
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
        if (node->live) plan->buffers[buffer].kind = BUFFER_PINNED;
    }
    if (plan->model->output_count == 0 && plan->nodes[plan->model->layer_count - 1].live)
        plan->buffers[plan->values[plan->nodes[plan->model->layer_count - 1].first_value].tensor.buffer].kind =
            BUFFER_PINNED;
}

/* A parameter or state that no step writes is the same in every space. */
static void mark_constants(sdlf_plan *plan)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind == BUFFER_PARAMETER) buffer->constant = plan_count_writers(plan, i) == 0;
    }
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
    if (status == SDLF_OK && plan->options.mode == SDLF_TRAIN) status = lower_training(plan);
    if (status != SDLF_OK) return status;
    pin_results(plan);
    mark_constants(plan);
    return SDLF_OK;
}
