/* SPDX-License-Identifier: MIT */
/* Buffers, steps and the queries that passes make about them. */
#include "framework/plan/passes.h"

#include <stdlib.h>
#include <string.h>

int plan_new_buffer(sdlf_plan *plan, buffer_kind kind, sdlf_dtype dtype, int64_t bytes)
{
    if (plan->buffer_count == plan->buffer_capacity) {
        int capacity = plan->buffer_capacity != 0 ? 2 * plan->buffer_capacity : 64;
        plan_buffer *buffers = realloc(plan->buffers, (size_t)capacity * sizeof *buffers);
        if (buffers == NULL) return 0;
        plan->buffers = buffers;
        plan->buffer_capacity = capacity;
        if (plan->buffer_count == 0) buffers[plan->buffer_count++] = (plan_buffer){.first_use = -1, .alias = -1};
    }
    int index = plan->buffer_count++;
    plan->buffers[index] = (plan_buffer){
        .kind = kind,
        .dtype = dtype,
        .bytes = bytes,
        .space = -1,
        .source = index,
        .parameter = -1,
        .constant = kind == BUFFER_DERIVED || kind == BUFFER_DATA,
        .first_use = -1,
        .last_use = -1,
        .alias = -1,
        .offset = -1,
    };
    return index;
}

sdlf_status plan_new_tensor(sdlf_plan *plan, buffer_kind kind, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor)
{
    *tensor = sdlf_tensor_view(dtype, shape, NULL);
    int64_t count = sdlf_shape_count(shape);
    if (count < 0 || count > INT64_MAX / 16) /* leaves headroom for rounding up */
        return sdlf_fail(SDLF_ERROR_SHAPE, "a tensor of shape %s has too many elements", sdlf_shape_print(shape).text);
    tensor->buffer = plan_new_buffer(plan, kind, dtype, count * (int64_t)sdlf_dtype_size(dtype));
    if (tensor->buffer == 0) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of buffers");
    return SDLF_OK;
}

sdlf_tensor plan_control_tensor(sdlf_plan *plan, plan_control control)
{
    if (plan->feed.present && control == CONTROL_STEP) return plan->feed.step;
    if (plan->feed.present && control == CONTROL_RATE) return plan->feed.rate;
    sdlf_dtype dtype = control == CONTROL_STEP ? SDLF_INT64 : plan->options.dtype;
    if (plan->control[control] == 0) {
        int buffer = plan_new_buffer(plan, BUFFER_CONTROL, dtype, (int64_t)sdlf_dtype_size(dtype));
        if (buffer == 0) return (sdlf_tensor){.dtype = SDLF_NONE};
        plan->buffers[buffer].control = (int)control;
        plan->buffers[buffer].constant = true;
        plan->control[control] = buffer;
    }
    sdlf_tensor tensor = sdlf_tensor_view(dtype, sdlf_shape(1), NULL);
    tensor.buffer = plan->control[control];
    return tensor;
}

int plan_named_space(sdlf_plan *plan, const char *name, sdlf_calculator *calculator)
{
    for (int i = 0; i < plan->space_count; i++) {
        if (strcmp(plan->spaces[i].name, name) != 0) continue;
        if (plan->spaces[i].calculator == NULL) plan->spaces[i].calculator = calculator;
        return i;
    }
    if (plan->space_count == PLAN_MAX_SPACES) return -1;
    plan->spaces[plan->space_count] = (plan_space){.name = name, .calculator = calculator};
    return plan->space_count++;
}

int plan_space_of(sdlf_plan *plan, sdlf_calculator *calculator)
{
    return plan_named_space(plan, calculator->space, calculator);
}

bool plan_is_host_space(const sdlf_plan *plan, int space)
{
    return strcmp(plan->spaces[space].name, SDLF_HOST_SPACE) == 0;
}

bool plan_is_passing_copy(const sdlf_plan *plan, const plan_buffer *buffer)
{
    return !buffer->constant && buffer->source != (int)(buffer - plan->buffers);
}

/* ---- steps ---- */

sdlf_status plan_append_step(sdlf_plan *plan, const plan_step *step)
{
    if (plan->step_count == plan->step_capacity) {
        int capacity = plan->step_capacity != 0 ? 2 * plan->step_capacity : 32;
        plan_step *steps = realloc(plan->steps, (size_t)capacity * sizeof *steps);
        if (steps == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for %d steps", capacity);
        plan->steps = steps;
        plan->step_capacity = capacity;
    }
    plan->steps[plan->step_count++] = *step;
    return SDLF_OK;
}

void plan_remove_dead_steps(sdlf_plan *plan)
{
    int kept = 0, forward = 0;
    for (int i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].dead) continue;
        if (i < plan->forward_steps) forward++;
        if (kept != i) plan->steps[kept] = plan->steps[i];
        kept++;
    }
    plan->step_count = kept;
    plan->forward_steps = forward;
}

void plan_fit_lists(sdlf_plan *plan)
{
    plan_step *steps = realloc(plan->steps, ((size_t)plan->step_count + 1) * sizeof *steps);
    if (steps != NULL) {
        plan->steps = steps;
        plan->step_capacity = plan->step_count + 1;
    }
    plan_buffer *buffers = realloc(plan->buffers, ((size_t)plan->buffer_count + 1) * sizeof *buffers);
    if (buffers == NULL) return;
    plan->buffers = buffers;
    plan->buffer_capacity = plan->buffer_count + 1;
}

bool plan_output_is_updated(const sdlf_operation *operation, int i)
{
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    return type->out[i].updated;
}

/* The cheap test comes first: absent operands have buffer 0. */
bool plan_step_moves(const plan_step *step)
{
    return step->phase == SDLF_PHASE_COPY || step->phase == SDLF_PHASE_COMMUNICATE;
}

bool plan_step_reads(const plan_step *step, int buffer)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (op->in[i].buffer == buffer && sdlf_tensor_present(&op->in[i])) return true;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (op->out[i].buffer == buffer && sdlf_tensor_present(&op->out[i]) && plan_output_is_updated(op, i))
            return true;
    }
    return false;
}

bool plan_step_writes(const plan_step *step, int buffer)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (op->out[i].buffer == buffer && sdlf_tensor_present(&op->out[i])) return true;
    }
    return false;
}

bool plan_covers_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return tensor->offset == 0 && (sdlf_tensor_is_contiguous(tensor) || sdlf_tensor_is_channels_last(tensor)) &&
           sdlf_tensor_bytes(tensor) == plan->buffers[tensor->buffer].bytes;
}

bool plan_permutes_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    int64_t next = 1, count = sdlf_tensor_count(tensor);
    for (bool found = true; found && next < count;) {
        found = false;
        for (int axis = 0; axis < tensor->shape.rank && !found; axis++) {
            found = tensor->shape.dim[axis] > 1 && tensor->stride[axis] == next;
            if (found) next *= tensor->shape.dim[axis];
        }
    }
    return tensor->offset == 0 && next == count && sdlf_tensor_bytes(tensor) == plan->buffers[tensor->buffer].bytes;
}

/* The first node of a node's group (union-find with path halving). */
static int group_of(sdlf_plan *plan, int node)
{
    plan_node *nodes = plan->nodes;
    while (nodes[node].group != node) {
        nodes[node].group = nodes[nodes[node].group].group;
        node = nodes[node].group;
    }
    return node;
}

void plan_join_groups(sdlf_plan *plan, int a, int b)
{
    int from = group_of(plan, b), to = group_of(plan, a);
    if (from > to)
        plan->nodes[from].group = to;
    else
        plan->nodes[to].group = from;
}

void plan_settle_groups(sdlf_plan *plan)
{
    for (int i = 0; i < plan->node_count; i++) plan->nodes[i].group = group_of(plan, i);
    for (int i = 0; i < plan->step_count; i++) plan->steps[i].node = plan->nodes[plan->steps[i].node].group;
}
