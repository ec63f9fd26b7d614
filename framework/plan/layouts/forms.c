/* SPDX-License-Identifier: MIT */
/* The forms of a content: views of it, and the copies that convert one into the other. */
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

/* Changes the tensor to the same part of the content in channels-last form. False, with nothing changed, if strides
 * cannot describe that part. The content is N images of C channels of pixels; an axis of the tensor, whatever its rank,
 * must stay within one of these. */
bool layout_restride(const layout_pass *p, sdlf_tensor *tensor)
{
    enum { IMAGES, CHANNELS, PIXELS, AXES };
    if (!sdlf_tensor_present(tensor) || tensor->layout != SDLF_DENSE) return false;
    const sdlf_tensor all = whole(p, tensor->buffer, true);
    const int64_t *dim = all.shape.dim;
    int64_t pixels = dim[2] * dim[3] > 0 ? dim[2] * dim[3] : 1, channels = dim[1] > 0 ? dim[1] : 1;
    const int64_t extent[AXES] = {dim[0], channels, pixels}, from[AXES] = {channels * pixels, pixels, 1},
                  to[AXES] = {channels * pixels, 1, channels};
    int64_t at = tensor->offset / (int64_t)sdlf_dtype_size(tensor->dtype), offset = 0, last[AXES];
    for (int i = 0; i < AXES; i++) {
        last[i] = at / from[i];
        offset += last[i] * to[i];
        at -= last[i] * from[i];
    }
    sdlf_tensor part = *tensor;
    for (int axis = 0; axis < part.shape.rank; axis++) {
        int64_t stride = part.stride[axis], steps = part.shape.dim[axis] - 1;
        if (steps <= 0 && part.shape.rank == 4) part.stride[axis] = all.stride[axis];
        if (steps <= 0 || stride == 0) continue;
        int i = stride % from[IMAGES] == 0 ? IMAGES : stride % from[CHANNELS] == 0 ? CHANNELS : PIXELS;
        last[i] += steps * (stride / from[i]);
        if (stride < 0 || last[i] >= extent[i]) return false;
        part.stride[axis] = stride / from[i] * to[i];
    }
    part.offset = offset * (int64_t)sdlf_dtype_size(all.dtype);
    part.buffer = all.buffer;
    part.dtype = all.dtype;
    *tensor = part;
    return true;
}

/* The same where it is already known to be possible. */
void layout_must_restride(const layout_pass *p, sdlf_tensor *tensor)
{
    bool done = layout_restride(p, tensor);
    assert(done);
    (void)done;
}

/* (N,C,L) as (N,C,1,L); other tensors are unchanged. */
sdlf_tensor layout_as_image(sdlf_tensor tensor)
{
    if (!sdlf_tensor_present(&tensor) || tensor.layout != SDLF_DENSE || tensor.shape.rank != 3) return tensor;
    tensor.shape = sdlf_shape(tensor.shape.dim[0], tensor.shape.dim[1], 1, tensor.shape.dim[2]);
    tensor.stride[3] = tensor.stride[2];
    tensor.stride[2] = tensor.stride[3] * tensor.shape.dim[3];
    return tensor;
}

/* (N,C,H,W) as (N,H,W,C) */
sdlf_tensor layout_channels_last(sdlf_tensor tensor)
{
    return sdlf_tensor_transpose(sdlf_tensor_transpose(tensor, 1, 2), 2, 3);
}

bool layout_is_nhwc(const layout_pass *p, const sdlf_tensor *tensor)
{
    return sdlf_tensor_present(tensor) && tensor->layout == SDLF_DENSE && p->form[tensor->buffer].nhwc != 0;
}

/* ---- creating forms ---- */

/* Adds a buffer for the channels-last form of `buffer`. */
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

/* Ensures that the content exists in row-major form. */
sdlf_status layout_need_row_major(layout_pass *p, const plan_step *reader, int buffer)
{
    layout_forms *form = &p->form[buffer];
    if (form->row_major) return SDLF_OK;
    form->row_major = true;
    if (form->nhwc == buffer) return SDLF_OK;
    return append_copy(p, reader, whole(p, buffer, true), whole(p, buffer, false));
}

/* Changes the operand to its channels-last form, which is created if necessary. */
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

/* True if layout_need_nhwc could create a dense channels-last form. */
bool layout_can_be_nhwc(const layout_pass *p, const sdlf_tensor *operand)
{
    sdlf_tensor copy = *operand;
    if (!layout_is_image(operand) || !plan_covers_buffer(p->plan, operand)) return false;
    if (!layout_is_nhwc(p, operand)) return sdlf_tensor_is_contiguous(operand);
    return layout_restride(p, &copy) && sdlf_tensor_is_channels_last(&copy);
}

/* True if exactly one step writes the buffer. */
static bool has_one_writer(const layout_pass *p, int buffer)
{
    int count = 0;
    for (int at = plan_uses_first(&p->uses, buffer); at >= 0 && count < 2; at = p->uses.use[at].next)
        count += plan_step_writes(&p->old[p->uses.use[at].step], buffer);
    return count == 1;
}

/* True if an output could be produced channels last: it is all of its buffer, and only this step writes it. */
bool layout_can_be_made(const layout_pass *p, const sdlf_tensor *out)
{
    return layout_is_image(out) && plan_covers_buffer(p->plan, out) && has_one_writer(p, out->buffer);
}

/* Makes a step write this output channels last; layout_settle_output must follow. */
sdlf_status layout_make_nhwc(layout_pass *p, sdlf_tensor *operand)
{
    int buffer = operand->buffer;
    sdlf_status status = p->form[buffer].nhwc != 0 ? SDLF_OK : layout_add_nhwc(p, buffer, operand->shape);
    if (status != SDLF_OK) return status;
    p->form[buffer].row_major = p->form[buffer].nhwc == buffer;
    layout_must_restride(p, operand);
    return SDLF_OK;
}

/* Converts an output to row-major form if anything outside this plan's steps reads it. */
sdlf_status layout_settle_output(layout_pass *p, const plan_step *step, int buffer)
{
    return p->plan->buffers[buffer].kind == BUFFER_ARENA ? SDLF_OK : layout_need_row_major(p, step, buffer);
}
