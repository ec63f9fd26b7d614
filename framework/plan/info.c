/* SPDX-License-Identifier: MIT */
/* Information about a plan: steps, memory. (Layers: listing.c.) */
#include "framework/plan/plan_internal.h"

int sdlf_plan_step_count(const sdlf_plan *plan)
{
    if (plan == NULL) return 0;
    return plan->step_count;
}

int64_t plan_arena_offset(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    const plan_buffer *buffer = &plan->buffers[tensor->buffer];
    if (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE || buffer->offset < 0) return -1;
    return buffer->offset + tensor->offset;
}

sdlf_step_info sdlf_plan_step_info(const sdlf_plan *plan, int index)
{
    if (plan == NULL || index < 0 || index >= plan->step_count) return (sdlf_step_info){.offset = -1};
    const plan_step *step = &plan->steps[index];
    const sdlf_operation *op = &step->operation;
    int first = 0;
    while (first + 1 < SDLF_MAX_OUTPUTS && !sdlf_tensor_present(&op->out[first])) first++;
    return (sdlf_step_info){
        .layer = plan->nodes[step->node].layer->name,
        .operation = step->label != NULL ? step->label : sdlf_operation_type(op)->name,
        .calculator = step->calculator->type->name,
        .algorithm = plan_step_moves(step) ? NULL : sdlf_calculator_algorithm(step->calculator, &step->operation),
        .phase = step->phase,
        .serves = step->serves,
        .content = step->content,
        .shape = op->out[first].shape,
        .dtype = op->out[first].dtype,
        .cost = step->cost,
        .offset = plan_arena_offset(plan, &op->out[first]),
        .workspace = sdlf_tensor_present(&op->workspace) ? sdlf_tensor_bytes(&op->workspace) : 0,
        .live = step->live,
        .seconds = step->seconds,
    };
}

sdlf_memory_info sdlf_plan_memory(const sdlf_plan *plan)
{
    if (plan == NULL) return (sdlf_memory_info){0};
    sdlf_memory_info memory = {0};
    for (int i = 0; i < plan->space_count; i++) {
        memory.arena += plan->spaces[i].bytes;
        memory.unshared += plan->spaces[i].unshared;
    }
    memory.arena += plan_stage_bytes(plan);
    memory.unshared += plan_stage_bytes(plan);
    int states = 0;
    if (plan->options.mode == SDLF_TRAIN && !plan->options.gradients_only) states = plan_state_count(&plan->options);
    for (int i = 0; i < plan->model->parameter_count; i++) {
        const sdlf_parameter *parameter = &plan->model->parameters[i];
        int64_t bytes = sdlf_shape_count(parameter->spec.shape) * (int64_t)sizeof(float); /* an outline has no values */
        memory.parameters += bytes;
        if (plan->options.shard_states) bytes = model_state_count(plan->model, i) * (int64_t)sizeof(float);
        if (parameter->spec.trainable) memory.states += states * bytes;
    }
    for (int i = 0; i < plan->weight_only_count; i++) /* which the plan takes over, and keeps only in another form */
        memory.parameters -= plan->weight_only[i].units * plan->weight_only[i].inputs * (int64_t)sizeof(float);
    for (int i = 1; i < plan->buffer_count; i++) { /* copies are in arenas, and count as what they hold */
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->offset < 0 || buffer->raw || (buffer->kind != BUFFER_PARAMETER && buffer->kind != BUFFER_STATE))
            continue;
        int64_t bytes = (buffer->bytes + 63) / 64 * 64;
        *(buffer->kind == BUFFER_PARAMETER ? &memory.parameters : &memory.states) += bytes;
        memory.arena -= bytes;
        memory.unshared -= bytes;
    }
    for (int i = 0; i < plan->model->output_count; i++) {
        const model_output *output = &plan->model->outputs[i];
        const plan_node *node = &plan->nodes[output->node.layer];
        int64_t bytes = sdlf_tensor_bytes(&plan->values[node->first_value + output->node.output].tensor);
        if (memory.output_name != NULL && bytes <= memory.output) continue;
        memory.output = bytes;
        memory.output_name = output->name;
    }
    return memory;
}
