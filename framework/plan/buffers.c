/* Buffers, steps and the questions that the passes ask about them. */
#include "framework/plan/plan_internal.h"

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
    if (count < 0 || count > INT64_MAX / 16) /* room for rounding */
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

/* Do the plan and the one that it shares with mean the same data by that number? */
static bool same_data(const sdlf_plan *plan, int data)
{
    const sdlf_plan *share = plan->options.share;
    if (data >= PLAN_FIRST_CONSTANT + share->options.constant_count) return false;
    return plan_data(plan, data)->data == plan_data(share, data)->data;
}

const plan_buffer *plan_shared_buffer(const sdlf_plan *plan, const plan_buffer *wanted)
{
    const sdlf_plan *share = plan->options.share;
    for (int i = 1; share != NULL && i < share->buffer_count; i++) {
        const plan_buffer *buffer = &share->buffers[i];
        if (buffer->kind == wanted->kind && buffer->parameter == wanted->parameter && buffer->state == wanted->state &&
            buffer->data == wanted->data && buffer->dtype == wanted->dtype && buffer->bytes == wanted->bytes &&
            buffer->memory != NULL && buffer->space >= 0 &&
            (wanted->kind != BUFFER_DATA || same_data(plan, wanted->data)) &&
            strcmp(share->spaces[buffer->space].name, plan->spaces[wanted->space].name) == 0)
            return buffer;
    }
    return NULL;
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

bool plan_output_is_updated(const sdlf_operation *operation, int i)
{
    const sdlf_operation_class *type = sdlf_operation_class_of(operation->kind);
    return type->out[i].updated;
}

/* These are asked of every step for every buffer, so that the cheap question comes first: operands that are absent have buffer 0. */
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

int plan_count_readers(const sdlf_plan *plan, int buffer)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++)
        count += !plan->steps[i].dead && plan_step_reads(&plan->steps[i], buffer);
    return count;
}

int plan_count_writers(const sdlf_plan *plan, int buffer)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++)
        count += !plan->steps[i].dead && plan_step_writes(&plan->steps[i], buffer);
    return count;
}

int plan_next_reader(const sdlf_plan *plan, int buffer, int after)
{
    for (int i = after + 1; i < plan->step_count; i++) {
        if (!plan->steps[i].dead && plan_step_reads(&plan->steps[i], buffer)) return i;
    }
    return -1;
}

bool plan_covers_buffer(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return tensor->offset == 0 && (sdlf_tensor_is_contiguous(tensor) || sdlf_tensor_is_channels_last(tensor)) &&
           sdlf_tensor_bytes(tensor) == plan->buffers[tensor->buffer].bytes;
}

void plan_join_groups(sdlf_plan *plan, int a, int b)
{
    int from = plan->nodes[b].group, to = plan->nodes[a].group;
    if (from < to) {
        int swap = from;
        from = to;
        to = swap;
    }
    for (int i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i].group == from) plan->nodes[i].group = to;
    }
    for (int i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].node == from) plan->steps[i].node = to;
    }
}
