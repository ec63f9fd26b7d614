/* SPDX-License-Identifier: MIT */
/* Copies in the layout pass: joining, cutting out and moving channels. */
#include "framework/plan/layouts/layouts.h"

/* (N,C,H,W) of a buffer of which `part` is some channels of all images; rank 0: it is not. */
static sdlf_shape shape_around(const layout_pass *p, const sdlf_tensor *part)
{
    int64_t size = (int64_t)sdlf_dtype_size(part->dtype), area = part->shape.dim[2] * part->shape.dim[3];
    int64_t count = p->plan->buffers[part->buffer].bytes / size, pixels = part->shape.dim[0] * area;
    sdlf_shape shape = part->shape;
    if (pixels == 0 || count % pixels != 0) return SDLF_SCALAR;
    shape.dim[1] = count / pixels;
    sdlf_tensor all = sdlf_tensor_view(part->dtype, shape, NULL);
    for (int axis = 0; axis < 4; axis++) {
        if (part->shape.dim[axis] > 1 && part->stride[axis] != all.stride[axis]) return SDLF_SCALAR;
    }
    return part->offset % (area * size) == 0 ? shape : SDLF_SCALAR;
}

/* Is the buffer filled only by copies, each of some channels of the same (N,C,H,W)? */
static bool only_copies_write(const layout_pass *p, int buffer, sdlf_shape shape)
{
    for (int at = plan_uses_first(&p->uses, buffer); at >= 0; at = p->uses.use[at].next) {
        const plan_step *step = &p->old[p->uses.use[at].step];
        const sdlf_operation *op = &step->operation;
        if (!plan_step_writes(step, buffer)) continue;
        if (op->kind != SDLF_COPY || !layout_is_image(&op->out[0]) || op->in[0].dtype != op->out[0].dtype ||
            !sdlf_shape_equal(shape_around(p, &op->out[0]), shape))
            return false;
    }
    return true;
}

/* A copy takes what lies channels last as it is, and makes that where nothing else than such copies fills the
 * buffer. */
bool layout_follows_copy(const layout_pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    sdlf_tensor in = op->in[0], out = op->out[0];
    if (op->kind != SDLF_COPY || !layout_is_image(&in) || !layout_is_image(&out) || in.dtype != out.dtype) return false;
    if (layout_is_nhwc(p, &out)) return true;
    sdlf_shape shape = shape_around(p, &out);
    return !p->form[out.buffer].written && layout_is_nhwc(p, &in) && layout_restride(p, &in) &&
           p->plan->buffers[out.buffer].kind == BUFFER_ARENA && shape.rank == 4 &&
           only_copies_write(p, out.buffer, shape);
}

sdlf_status layout_convert_copy(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    sdlf_tensor in = op->in[0], out = op->out[0];
    sdlf_status status = SDLF_OK;
    if (!layout_is_nhwc(p, &out)) status = layout_add_nhwc(p, out.buffer, shape_around(p, &out));
    if (status != SDLF_OK) return status;
    p->form[out.buffer].row_major = p->form[out.buffer].nhwc == out.buffer;
    layout_must_restride(p, &out);
    sdlf_tensor same = in;
    if (layout_is_nhwc(p, &in) && layout_restride(p, &same))
        in = same;
    else
        status = layout_need_row_major(p, step, in.buffer);
    if (status != SDLF_OK) return status;
    op->in[0] = layout_channels_last(in);
    op->out[0] = layout_channels_last(out);
    return plan_append_step(p->plan, step);
}
