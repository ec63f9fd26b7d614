/* SPDX-License-Identifier: MIT */
/* Copies in the layout pass: concatenating, slicing and moving channels. */
#include "framework/plan/layouts/layouts.h"

/* The (N,C,H,W) of a buffer of which `part` is some channels of all images; rank 0: it is not. */
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

/* True if only copies fill the buffer, each writing some channels of the same (N,C,H,W). */
static bool only_copies_write(const layout_pass *p, int buffer, sdlf_shape shape)
{
    for (int at = plan_uses_first(&p->uses, buffer); at >= 0; at = p->uses.use[at].next) {
        const plan_step *step = &p->old[p->uses.use[at].step];
        const sdlf_operation *op = &step->operation;
        if (!plan_step_writes(step, buffer)) continue;
        const sdlf_tensor out = layout_as_image(op->out[0]);
        if (op->kind != SDLF_COPY || !layout_is_image(&out) || op->in[0].dtype != out.dtype ||
            !sdlf_shape_equal(shape_around(p, &out), shape))
            return false;
    }
    return true;
}

/* True if the tensor's channel axis is that of the content, whichever part it covers. */
static bool keeps_channels(const layout_pass *p, sdlf_tensor part)
{
    int64_t channels = p->form[part.buffer].shape.dim[1];
    return layout_restride(p, &part) && (part.shape.dim[1] <= 1 || channels <= 1 || part.stride[1] < channels);
}

/* True if it is channels last in itself, rows of channels under another shape, and the calculator uses that. */
static bool is_rows_of_channels(const layout_pass *p, const sdlf_calculator *calculator, const sdlf_tensor *in)
{
    bool used = p->storage == SDLF_NONE ? layout_uses_nhwc_everywhere(p->votes, calculator)
                                        : layout_stores(p->votes, calculator, p->storage);
    return used && in->dtype == SDLF_FLOAT32 && !layout_is_nhwc(p, in) && in->shape.dim[1] > 1 &&
           sdlf_tensor_is_channels_last(in) && !sdlf_tensor_is_contiguous(in);
}

/* True if the copy's output can be channels last. */
static bool makes_nhwc(const layout_pass *p, const plan_step *step)
{
    sdlf_tensor in = step->operation.in[0], out = step->operation.out[0];
    if (!layout_is_image(&in) || !layout_is_image(&out)) return false;
    if (layout_is_nhwc(p, &out)) return layout_restride(p, &out);
    sdlf_shape shape = shape_around(p, &out);
    bool follows = layout_is_nhwc(p, &in) ? keeps_channels(p, in) : is_rows_of_channels(p, step->calculator, &in);
    return !p->form[out.buffer].written && follows && p->plan->buffers[out.buffer].kind == BUFFER_ARENA &&
           shape.rank == 4 && only_copies_write(p, out.buffer, shape);
}

/* A copy reads channels-last contents directly, and writes channels last if only such copies fill the
 * buffer. */
bool layout_follows_copy(const layout_pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    sdlf_tensor in = op->in[0];
    if (op->kind != SDLF_COPY || in.dtype != op->out[0].dtype) return false;
    if (makes_nhwc(p, step)) return true;
    return layout_is_nhwc(p, &in) && !p->form[in.buffer].row_major && !layout_is_nhwc(p, &op->out[0]) &&
           layout_restride(p, &in);
}

sdlf_status layout_convert_copy(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    sdlf_tensor in = op->in[0], out = op->out[0], same = in;
    sdlf_status status = SDLF_OK;
    bool made = makes_nhwc(p, step);
    if (made && !layout_is_nhwc(p, &out)) status = layout_add_nhwc(p, out.buffer, shape_around(p, &out));
    if (status != SDLF_OK) return status;
    if (made) {
        p->form[out.buffer].row_major = p->form[out.buffer].nhwc == out.buffer;
        layout_must_restride(p, &out);
    } else {
        p->form[out.buffer].written = true;
    }
    if (layout_is_nhwc(p, &in) && layout_restride(p, &same))
        in = same;
    else
        status = layout_need_row_major(p, step, in.buffer);
    if (status != SDLF_OK) return status;
    op->in[0] = made ? layout_channels_last(in) : in;
    op->out[0] = made ? layout_channels_last(out) : out;
    return plan_append_step(p->plan, step);
}

/* The input of a reduction over an entire channels-last content: (N,P,C) along its pixels, or (N P,C) along its
 * channels. Rank 0: another reduction. */
static sdlf_shape reduced_nhwc(const layout_pass *p, const sdlf_operation *op)
{
    const sdlf_tensor *x = &op->in[0];
    if (op->kind != SDLF_REDUCE || !layout_is_nhwc(p, x) || p->form[x->buffer].row_major) return SDLF_SCALAR;
    if (!plan_covers_buffer(p->plan, x) || !sdlf_tensor_is_contiguous(x) || !sdlf_tensor_is_contiguous(&op->out[0]))
        return SDLF_SCALAR;
    const int64_t *dim = p->form[x->buffer].shape.dim;
    int axis = op->reduce.axis;
    int64_t pixels = dim[2] * dim[3], inner = sdlf_shape_span(x->shape, axis + 1, x->shape.rank);
    int64_t length = x->shape.dim[axis];
    if (length == pixels && inner == 1) return sdlf_shape(dim[0], pixels, dim[1]);
    return length == dim[1] && inner == pixels ? sdlf_shape(dim[0] * pixels, dim[1]) : SDLF_SCALAR;
}

bool layout_follows_reduce(const layout_pass *p, const plan_step *step)
{
    return p->storage == SDLF_NONE && reduced_nhwc(p, &step->operation).rank > 0;
}

sdlf_status layout_convert_reduce(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    sdlf_shape shape = reduced_nhwc(p, op);
    p->form[op->out[0].buffer].written = true;
    op->in[0].buffer = p->form[op->in[0].buffer].nhwc;
    op->in[0] = sdlf_tensor_reshape(op->in[0], shape);
    op->out[0] = sdlf_tensor_reshape(op->out[0], sdlf_shape_without(shape, 1));
    op->reduce.axis = 1;
    return plan_append_step(p->plan, step);
}
