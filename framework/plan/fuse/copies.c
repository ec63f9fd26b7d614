/* SPDX-License-Identifier: MIT */
/* Inference, after layout selection: removes copies whose readers can read the source instead. Either the copied memory
 * is contiguous on both sides, such as part of a row; or the reader supports strides: attention and other copies may
 * then read any part with a contiguous last axis, and in host memory any such reader may read all of it. On a device,
 * reads start at an offset that every kernel supports. */
#include "framework/plan/passes.h"

#include <string.h>

bool plan_same_strides(const sdlf_tensor *a, const sdlf_tensor *b)
{
    for (int axis = 0; axis < a->shape.rank; axis++) {
        if (a->shape.dim[axis] > 1 && a->stride[axis] != b->stride[axis]) return false;
    }
    return sdlf_shape_equal(a->shape, b->shape);
}

enum { DEVICE_ALIGNMENT = 16 };

static bool is_plain_copy(const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    bool on_host = strcmp(step->calculator->space, SDLF_HOST_SPACE) == 0;
    return !step->dead && op->kind == SDLF_COPY && op->in[0].dtype == op->out[0].dtype &&
           op->in[0].layout == SDLF_DENSE && sdlf_shape_equal(op->in[0].shape, op->out[0].shape) &&
           op->in[0].buffer != op->out[0].buffer && (on_host || op->in[0].offset % DEVICE_ALIGNMENT == 0);
}

bool plan_view_source(const sdlf_tensor *from, const sdlf_tensor *to, sdlf_tensor *part)
{
    int64_t size = (int64_t)sdlf_dtype_size(to->dtype), at = (part->offset - to->offset) / size, offset = 0;
    int64_t last[SDLF_MAX_RANK];
    sdlf_tensor view = *part;
    if (!sdlf_tensor_is_contiguous(to) || sdlf_tensor_count(to) == 0 || part->dtype != to->dtype) return false;
    for (int axis = 0; axis < to->shape.rank; axis++) {
        last[axis] = to->shape.dim[axis] > 1 ? at / to->stride[axis] : 0;
        at -= last[axis] > 0 ? last[axis] * to->stride[axis] : 0;
        offset += last[axis] > 0 ? last[axis] * from->stride[axis] : 0;
    }
    if (at != 0) return false;
    for (int i = 0; i < part->shape.rank; i++) {
        int64_t stride = part->stride[i], steps = part->shape.dim[i] - 1;
        int axis = 0;
        if (steps <= 0 || stride == 0) continue;
        while (axis < to->shape.rank && (to->shape.dim[axis] == 1 || stride % to->stride[axis] != 0)) axis++;
        if (stride < 0 || axis == to->shape.rank) return false;
        last[axis] += steps * (stride / to->stride[axis]);
        if (last[axis] >= to->shape.dim[axis]) return false;
        view.stride[i] = stride / to->stride[axis] * from->stride[axis];
    }
    view.buffer = from->buffer;
    view.offset = from->offset + offset * size;
    *part = view;
    return true;
}

/* True if the operand's last axis is contiguous. */
static bool has_runs(const sdlf_tensor *operand)
{
    int rank = operand->shape.rank;
    return rank == 0 || operand->shape.dim[rank - 1] == 1 || operand->stride[rank - 1] == 1;
}

static bool read_source(const sdlf_operation *copy, sdlf_operation *reader, int i, bool on_host)
{
    const sdlf_tensor *from = &copy->in[0], *to = &copy->out[0];
    sdlf_tensor *operand = &reader->in[i];
    if (sdlf_tensor_is_contiguous(from) && sdlf_tensor_is_contiguous(to)) {
        operand->buffer = from->buffer;
        operand->offset += from->offset;
        return true;
    }
    const sdlf_operation_class *type = sdlf_operation_type(reader);
    bool any_strides = type->any_strides >> i & 1, any_part = type->reads_parts >> i & 1;
    sdlf_tensor part = *operand;
    if (any_part && plan_view_source(from, to, &part) && has_runs(&part) &&
        (on_host || part.offset % DEVICE_ALIGNMENT == 0)) {
        *operand = part;
        return true;
    }
    if (!any_strides || !on_host || operand->offset != 0 || !plan_same_strides(operand, to)) return false;
    *operand = *from;
    return true;
}

static bool replace_reader(const sdlf_plan *plan, int copy, int reader, sdlf_operation *replaced)
{
    const sdlf_operation *op = &plan->steps[copy].operation;
    bool on_host = strcmp(plan->steps[copy].calculator->space, SDLF_HOST_SPACE) == 0;
    *replaced = plan->steps[reader].operation;
    if (plan->steps[reader].calculator != plan->steps[copy].calculator ||
        plan_step_writes(&plan->steps[reader], op->in[0].buffer) || plan_writes_between(plan, op, copy, reader))
        return false;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        bool reads = sdlf_tensor_present(&replaced->in[i]) && replaced->in[i].buffer == op->out[0].buffer;
        if (reads && !read_source(op, replaced, i, on_host)) return false;
    }
    return sdlf_operation_check(replaced) == SDLF_OK &&
           sdlf_calculator_supports(plan->steps[reader].calculator, replaced);
}

static bool can_read_source(const sdlf_plan *plan, int copy)
{
    const sdlf_tensor *to = &plan->steps[copy].operation.out[0];
    sdlf_operation replaced;
    if (plan->buffers[to->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, to) ||
        plan_count_writers(plan, to->buffer) != 1)
        return false;
    int reader = plan_next_reader(plan, to->buffer, copy);
    if (reader < 0) return false;
    for (; reader >= 0; reader = plan_next_reader(plan, to->buffer, reader))
        if (!replace_reader(plan, copy, reader, &replaced)) return false;
    return true;
}

static sdlf_status read_all_from_source(sdlf_plan *plan, int copy)
{
    int buffer = plan->steps[copy].operation.out[0].buffer, first = plan_next_reader(plan, buffer, copy);
    sdlf_status status = SDLF_OK;
    plan_join_groups(plan, plan->steps[copy].node, plan->steps[first].node);
    for (int reader = first; reader >= 0 && status == SDLF_OK; reader = plan_next_reader(plan, buffer, reader)) {
        sdlf_operation replaced;
        replace_reader(plan, copy, reader, &replaced);
        status = plan_replace_operation(plan, reader, &replaced);
    }
    plan->steps[copy].dead = status == SDLF_OK;
    return status;
}

sdlf_status plan_fuse_copies(sdlf_plan *plan)
{
    if (plan->options.state_count > 0) return SDLF_OK; /* their steps must not depend on the length of a state */
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        if (is_plain_copy(&plan->steps[i]) && can_read_source(plan, i)) status = read_all_from_source(plan, i);
    }
    return status;
}
