/* SPDX-License-Identifier: MIT */
/* Rebuilds the steps of a plan whose rows are stored in 16 bits. */
#include "framework/plan/layouts/row_storage.h"

/* The same part of the content in the storage type. */
static sdlf_tensor in_storage(const storage_pass *p, sdlf_tensor tensor)
{
    tensor.offset = tensor.offset / (int64_t)sdlf_dtype_size(tensor.dtype) * (int64_t)sdlf_dtype_size(p->storage);
    tensor.dtype = p->storage;
    tensor.buffer = p->content[tensor.buffer].stored_buffer;
    return tensor;
}

/* A tensor over all of a buffer's content. */
static sdlf_tensor whole(const storage_pass *p, int buffer)
{
    const plan_buffer *of = &p->plan->buffers[buffer];
    int64_t count = of->bytes / (int64_t)sdlf_dtype_size(of->dtype);
    sdlf_tensor tensor = sdlf_tensor_view(of->dtype, sdlf_shape(count), NULL);
    tensor.buffer = buffer;
    return tensor;
}

static sdlf_status append_copy(storage_pass *p, const plan_step *beside, int from, int to)
{
    plan_step step = {.operation = {.kind = SDLF_COPY, .in = {whole(p, from)}, .out = {whole(p, to)}},
                      .calculator = beside->calculator,
                      .phase = beside->phase,
                      .serves = beside->phase,
                      .node = beside->node};
    step.cost = sdlf_operation_cost(&step.operation);
    return plan_append_step(p->plan, &step);
}

static sdlf_status add_stored_buffer(storage_pass *p, int buffer)
{
    stored_content *content = &p->content[buffer];
    if (content->stored_buffer != 0) return SDLF_OK;
    int64_t count = p->plan->buffers[buffer].bytes / (int64_t)sizeof(float);
    content->stored_buffer =
        plan_new_buffer(p->plan, BUFFER_ARENA, p->storage, count * (int64_t)sdlf_dtype_size(p->storage));
    return content->stored_buffer != 0 ? SDLF_OK
                                       : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of buffers");
}

static sdlf_status need_stored(storage_pass *p, const plan_step *reader, int buffer)
{
    if (p->content[buffer].stored_buffer != 0) return SDLF_OK;
    sdlf_status status = add_stored_buffer(p, buffer);
    return status == SDLF_OK ? append_copy(p, reader, buffer, p->content[buffer].stored_buffer) : status;
}

static sdlf_status need_float32(storage_pass *p, const plan_step *reader, int buffer)
{
    stored_content *content = &p->content[buffer];
    if (content->float32) return SDLF_OK;
    content->float32 = true;
    return append_copy(p, reader, content->stored_buffer, buffer);
}

/* The content has been rewritten in float32. */
static void note_float32(storage_pass *p, int buffer)
{
    p->content[buffer].stored_buffer = 0;
    p->content[buffer].float32 = true;
}

/* Converts the step's operands to the forms it reads; appends it, and conversions of outputs read outside. */
static sdlf_status append_stored(storage_pass *p, plan_step *step, unsigned operands)
{
    sdlf_operation *op = &step->operation;
    int written[SDLF_MAX_OUTPUTS] = {0};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < SDLF_MAX_OPERANDS && status == SDLF_OK; i++) {
        sdlf_tensor *operand = sdlf_operand_at(op, i);
        if (!sdlf_tensor_present(operand)) continue;
        if (!(operands >> i & 1)) {
            if (is_output(i))
                note_float32(p, operand->buffer);
            else
                status = need_float32(p, step, operand->buffer);
            continue;
        }
        if (is_output(i)) {
            written[i - SDLF_MAX_INPUTS] = operand->buffer;
            p->content[operand->buffer].float32 = false;
            status = add_stored_buffer(p, operand->buffer);
        } else {
            status = need_stored(p, step, operand->buffer);
        }
        if (status == SDLF_OK) *operand = in_storage(p, *operand);
    }
    step->cost = sdlf_operation_cost(op);
    if (status == SDLF_OK) status = plan_append_step(p->plan, step);
    for (int i = 0; i < SDLF_MAX_OUTPUTS && status == SDLF_OK; i++) {
        if (written[i] != 0 && p->plan->buffers[written[i]].kind != BUFFER_ARENA)
            status = need_float32(p, step, written[i]);
    }
    return status;
}

/* A copy reads whichever form exists. */
static unsigned copied_operands(const storage_pass *p, const plan_step *step, bool stored)
{
    const sdlf_tensor *in = &step->operation.in[0];
    bool has_stored = in->dtype == SDLF_FLOAT32 && p->content[in->buffer].stored_buffer != 0;
    return (has_stored && (stored || !p->content[in->buffer].float32) ? 1u << 0 : 0) |
           (stored ? 1u << SDLF_MAX_INPUTS : 0);
}

sdlf_status storage_append_steps(storage_pass *p)
{
    sdlf_status status = SDLF_OK;
    int forward = p->plan->forward_steps;
    for (int i = 0; i < p->old_count && status == SDLF_OK; i++) {
        plan_step step = p->old[i];
        unsigned operands = 0;
        if (i == forward) p->plan->forward_steps = p->plan->step_count;
        if (is_copy(&step))
            operands = copied_operands(p, &step, p->stored[i]);
        else if (p->stored[i])
            operands = storage_operands(p, &step.operation);
        status = append_stored(p, &step, operands);
    }
    if (forward == p->old_count) p->plan->forward_steps = p->plan->step_count;
    return status;
}
