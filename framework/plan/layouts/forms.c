/* SPDX-License-Identifier: MIT */
/* The forms of a content: views of it, and the copies by which one is made of the other. */
#include "framework/plan/layouts/layouts.h"

#include <assert.h>

bool layout_is_image(const sdlf_tensor *tensor)
{
    return sdlf_tensor_present(tensor) && tensor->layout == SDLF_DENSE && tensor->shape.rank == 4;
}

/* A tensor over all of the content in one of its forms. */
static sdlf_tensor whole(const layout_pass *p, int buffer, bool last)
{
    const layout_forms *form = &p->form[buffer];
    int at = last ? form->nhwc : buffer;
    sdlf_tensor tensor = sdlf_tensor_view(p->plan->buffers[at].dtype, form->shape, NULL);
    tensor.buffer = at;
    return last ? sdlf_tensor_channels_last(tensor) : tensor;
}

/* The same part of the content, in the form that is channels last. False, and nothing changed: it is no part that
 * strides can tell, because it has others than the content, or runs over from one channel into the next. */
bool layout_restride(const layout_pass *p, sdlf_tensor *tensor)
{
    if (!layout_is_image(tensor)) return false;
    sdlf_tensor from = whole(p, tensor->buffer, false), to = whole(p, tensor->buffer, true), part = *tensor;
    int64_t size = (int64_t)sdlf_dtype_size(part.dtype), rest = part.offset / size, offset = 0;
    for (int axis = 0; axis < 4; axis++) {
        int64_t dim = part.shape.dim[axis], index = from.stride[axis] > 0 ? rest / from.stride[axis] : 0;
        bool spread = dim > 1 && part.stride[axis] != 0;
        rest -= index * from.stride[axis];
        offset += index * to.stride[axis];
        if (spread && part.stride[axis] != from.stride[axis]) return false;
        if (dim > 0 && index + (spread ? dim : 1) > from.shape.dim[axis]) return false;
        part.stride[axis] = dim > 1 && part.stride[axis] == 0 ? 0 : to.stride[axis];
    }
    part.offset = offset * (int64_t)sdlf_dtype_size(to.dtype);
    part.buffer = to.buffer;
    part.dtype = to.dtype;
    *tensor = part;
    return true;
}

/* Where it has been asked before whether it can be done. */
void layout_must_restride(const layout_pass *p, sdlf_tensor *tensor)
{
    bool done = layout_restride(p, tensor);
    assert(done);
    (void)done;
}

/* (N,C,H,W) as (N,H,W,C) */
sdlf_tensor layout_channels_last(sdlf_tensor tensor)
{
    return sdlf_tensor_transpose(sdlf_tensor_transpose(tensor, 1, 2), 2, 3);
}

bool layout_is_nhwc(const layout_pass *p, const sdlf_tensor *tensor)
{
    return layout_is_image(tensor) && p->form[tensor->buffer].nhwc != 0;
}

/* ---- making forms ---- */

/* A buffer for the form of `buffer` that is channels last. */
sdlf_status layout_add_nhwc(layout_pass *p, int buffer, sdlf_shape shape)
{
    layout_forms *form = &p->form[buffer];
    const plan_buffer original = p->plan->buffers[buffer];
    bool stored = p->storage != SDLF_NONE && original.dtype == SDLF_FLOAT32;
    sdlf_dtype dtype = stored ? p->storage : original.dtype;
    bool converted = dtype != original.dtype;
    int64_t size = (int64_t)sdlf_dtype_size(original.dtype),
            bytes = original.bytes / size * (int64_t)sdlf_dtype_size(dtype);
    form->shape = shape;
    bool same = !converted && (shape.dim[1] == 1 || shape.dim[2] * shape.dim[3] == 1);
    form->nhwc = same ? buffer : plan_new_buffer(p->plan, BUFFER_ARENA, dtype, bytes);
    return form->nhwc != 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of buffers");
}

static sdlf_status append_copy(layout_pass *p, const plan_step *reader, sdlf_tensor from, sdlf_tensor to)
{
    plan_step step = {.operation = {.kind = SDLF_COPY, .in = {from}, .out = {to}},
                      .calculator = reader->calculator,
                      .phase = reader->phase,
                      .serves = reader->phase,
                      .node = reader->node};
    step.cost = sdlf_operation_cost(&step.operation);
    return plan_append_step(p->plan, &step);
}

/* See to it that the content is there in row-major form. */
sdlf_status layout_need_row_major(layout_pass *p, const plan_step *reader, int buffer)
{
    layout_forms *form = &p->form[buffer];
    if (form->row_major) return SDLF_OK;
    form->row_major = true;
    if (form->nhwc == buffer) return SDLF_OK;
    return append_copy(p, reader, whole(p, buffer, true), whole(p, buffer, false));
}

/* The operand in the form that is channels last, which is made if need be. */
sdlf_status layout_need_nhwc(layout_pass *p, const plan_step *reader, sdlf_tensor *operand)
{
    int buffer = operand->buffer;
    if (p->form[buffer].nhwc == 0) {
        sdlf_status status = layout_add_nhwc(p, buffer, operand->shape);
        if (status != SDLF_OK) return status;
        sdlf_tensor from = layout_channels_last(whole(p, buffer, false)),
                    to = layout_channels_last(whole(p, buffer, true));
        if (to.buffer != buffer) status = append_copy(p, reader, from, to);
        if (status != SDLF_OK) return status;
    }
    layout_must_restride(p, operand);
    return SDLF_OK;
}

/* Could layout_need_nhwc make it, without gaps? */
bool layout_can_be_nhwc(const layout_pass *p, const sdlf_tensor *operand)
{
    sdlf_tensor copy = *operand;
    if (!layout_is_image(operand) || !plan_covers_buffer(p->plan, operand)) return false;
    return layout_is_nhwc(p, operand) ? layout_restride(p, &copy) : sdlf_tensor_is_contiguous(operand);
}

/* Is there one step that writes the buffer, and no second? */
static bool has_one_writer(const layout_pass *p, int buffer)
{
    int count = 0;
    for (int at = plan_uses_first(&p->uses, buffer); at >= 0 && count < 2; at = p->uses.use[at].next)
        count += plan_step_writes(&p->old[p->uses.use[at].step], buffer);
    return count == 1;
}

/* An output that could be made channels last: all of its buffer, and only by this step. */
bool layout_can_be_made(const layout_pass *p, const sdlf_tensor *out)
{
    return layout_is_image(out) && plan_covers_buffer(p->plan, out) && has_one_writer(p, out->buffer);
}

/* An output that is written channels last; afterwards layout_settle_output. */
sdlf_status layout_make_nhwc(layout_pass *p, sdlf_tensor *operand)
{
    int buffer = operand->buffer;
    sdlf_status status = p->form[buffer].nhwc != 0 ? SDLF_OK : layout_add_nhwc(p, buffer, operand->shape);
    if (status != SDLF_OK) return status;
    p->form[buffer].row_major = p->form[buffer].nhwc == buffer;
    layout_must_restride(p, operand);
    return SDLF_OK;
}

/* What others than this plan's steps read is row-major. */
sdlf_status layout_settle_output(layout_pass *p, const plan_step *step, int buffer)
{
    return p->plan->buffers[buffer].kind == BUFFER_ARENA ? SDLF_OK : layout_need_row_major(p, step, buffer);
}
