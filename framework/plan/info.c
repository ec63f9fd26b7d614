/* What a plan tells of itself: steps, layers, memory. */
#include "framework/plan/plan_internal.h"

#include <string.h>

#include "layers/input.h"

int sdlf_plan_step_count(const sdlf_plan *plan)
{
    return plan->step_count;
}

/* Offset of a tensor in its arena; -1: a parameter's or state's memory, which is no arena's. */
static int64_t arena_offset(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    const plan_buffer *buffer = &plan->buffers[tensor->buffer];
    if (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE || buffer->offset < 0) return -1;
    return buffer->offset + tensor->offset;
}

sdlf_step_info sdlf_plan_step_info(const sdlf_plan *plan, int index)
{
    const plan_step *step = &plan->steps[index];
    const sdlf_operation *op = &step->operation;
    int first = 0;
    while (first + 1 < SDLF_MAX_OUTPUTS && !sdlf_tensor_present(&op->out[first])) first++;
    return (sdlf_step_info){
        .layer = plan->nodes[step->node].layer->name,
        .operation = step->label != NULL ? step->label : sdlf_operation_class_of(op->kind)->name,
        .calculator = step->calculator->type->name,
        .algorithm =
            step->phase == SDLF_PHASE_COPY ? NULL : sdlf_calculator_algorithm(step->calculator, &step->operation),
        .phase = step->phase,
        .serves = step->serves,
        .content = step->content,
        .shape = op->out[first].shape,
        .dtype = op->out[first].dtype,
        .cost = step->cost,
        .offset = arena_offset(plan, &op->out[first]),
        .workspace = sdlf_tensor_present(&op->workspace) ? sdlf_tensor_bytes(&op->workspace) : 0,
        .seconds = step->seconds,
    };
}

/* Is this node a line of the listing? Inputs, dead nodes and nodes fused into an earlier one are not. */
static bool is_listed(const sdlf_plan *plan, int index)
{
    const plan_node *node = &plan->nodes[index];
    return node->live && node->group == index && node->layer->type != &sdlf_input_layer_class;
}

int sdlf_plan_layer_count(const sdlf_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->node_count; i++) count += is_listed(plan, i);
    return count;
}

static void add_cost(sdlf_cost *sum, sdlf_cost cost)
{
    sum->flops += cost.flops;
    sum->bytes += cost.bytes;
}

/* The node of the group that comes last: its output is the group's. */
static const plan_node *last_of_group(const sdlf_plan *plan, int group)
{
    const plan_node *last = &plan->nodes[group];
    for (int i = group; i < plan->node_count; i++) {
        if (plan->nodes[i].group == group) last = &plan->nodes[i];
    }
    return last;
}

sdlf_layer_info sdlf_plan_layer_info(const sdlf_plan *plan, int index)
{
    int node_index = -1;
    for (int i = 0; i < plan->node_count && index >= 0; i++) {
        if (is_listed(plan, i) && index-- == 0) node_index = i;
    }
    if (node_index < 0) return (sdlf_layer_info){.offset = -1};
    const plan_node *node = &plan->nodes[node_index];
    const plan_node *last = last_of_group(plan, node_index);
    const sdlf_tensor *output = &plan->values[last->first_value].tensor;
    sdlf_layer_info info = {
        .layer = node->group_name != NULL ? node->group_name : node->layer->name,
        .type = node->group_type != NULL ? node->group_type : node->layer->type->name,
        .forward = node->forward->type->name,
        .shape = output->shape,
        .dtype = output->dtype,
        .offset = -1,
    };
    for (int i = node_index; i < plan->node_count; i++) {
        const plan_node *member = &plan->nodes[i];
        for (int j = 0; member->group == node_index && j < member->signature.parameter_count; j++)
            info.parameters += sdlf_shape_count(member->signature.parameter[j].shape);
    }
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->node != node_index || step->phase == SDLF_PHASE_COPY) continue;
        if (step->phase == SDLF_PHASE_FORWARD) {
            add_cost(&info.forward_cost, step->cost);
            info.forward_seconds += step->seconds;
            info.forward = step->calculator->type->name;
            info.offset = arena_offset(plan, &step->operation.out[0]);
        } else {
            add_cost(&info.backward_cost, step->cost);
            info.backward_seconds += step->seconds;
            info.backward = step->calculator->type->name;
        }
    }
    return info;
}

int sdlf_plan_layer_of(const sdlf_plan *plan, const char *layer)
{
    for (int i = 0; i < plan->node_count; i++) {
        int group = plan->nodes[i].group, line = 0;
        if (strcmp(plan->nodes[i].layer->name, layer) != 0 || !is_listed(plan, group)) continue;
        for (int j = 0; j < group; j++) line += is_listed(plan, j);
        return line;
    }
    return -1;
}

sdlf_memory_info sdlf_plan_memory(const sdlf_plan *plan)
{
    sdlf_memory_info memory = {0};
    for (int i = 0; i < plan->space_count; i++) {
        memory.arena += plan->spaces[i].bytes;
        memory.unshared += plan->spaces[i].unshared;
    }
    memory.arena += plan_stage_bytes(plan);
    memory.unshared += plan_stage_bytes(plan);
    int states = 0;
    if (plan->options.mode == SDLF_TRAIN && !plan->options.gradients_only)
        states = plan->options.optimizer.type->state_count(&plan->options.optimizer);
    for (int i = 0; i < plan->model->parameter_count; i++) {
        const sdlf_parameter *parameter = &plan->model->parameters[i];
        int64_t bytes = sdlf_shape_count(parameter->spec.shape) * (int64_t)sizeof(float); /* an outline has no values */
        memory.parameters += bytes;
        if (parameter->spec.trainable) memory.states += states * bytes;
    }
    for (int i = 1; i < plan->buffer_count; i++) { /* copies live in arenas, and count as what they are */
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->offset < 0 || (buffer->kind != BUFFER_PARAMETER && buffer->kind != BUFFER_STATE)) continue;
        int64_t bytes = (buffer->bytes + 63) / 64 * 64;
        *(buffer->kind == BUFFER_PARAMETER ? &memory.parameters : &memory.states) += bytes;
        memory.arena -= bytes;
        memory.unshared -= bytes;
    }
    return memory;
}
