/* The pass that chooses layouts, for inference: activations lie channels last where a calculator's convolutions like that, and
 * stay so through whatever can follow; conversions stand where the two meet.
 *
 * Steps are walked in their order. A convolution whose calculator says so takes and makes activations that are channels last; other
 * kinds follow where an input lies that way already:
 *     pooling                             has kernels for both
 *     activation, add, binary, select     go element by element: channels last (N,C,H,W) is row-major (N,H,W,C) to them
 *     batch_norm2d_infer                  sees a row-major (N H W, C)
 *     copy                                takes any strides; joining channels, say
 * Everything else, and the world outside, gets row-major activations. What lies channels last has a buffer of its own beside
 * the buffer of the row-major content, which is filled only if somebody reads it. */
#include "framework/plan/plan_internal.h"

#include <assert.h>
#include <stdlib.h>

/* The forms that a buffer's content exists in. */
typedef struct forms {
    bool row_major;   /* in the buffer itself */
    bool written;     /* there, by a step: its other writers, if there are, write there too */
    int last;         /* the buffer that holds it channels last; its own where both are the same; 0: none */
    sdlf_shape shape; /* with `last`: (N,C,H,W) of the whole content */
} forms;

typedef struct pass {
    sdlf_plan *plan;
    plan_step *old; /* the steps as they were; the plan's list is built anew */
    int old_count;
    forms *form; /* of each buffer that they use */
} pass;

/* ---- tensors ---- */

static bool is_image(const sdlf_tensor *tensor)
{
    return sdlf_tensor_present(tensor) && tensor->layout == SDLF_DENSE && tensor->shape.rank == 4;
}

/* A tensor over all of the content in one of its forms. */
static sdlf_tensor whole(const pass *p, int buffer, bool last)
{
    const forms *form = &p->form[buffer];
    sdlf_tensor tensor = sdlf_tensor_view(p->plan->buffers[buffer].dtype, form->shape, NULL);
    tensor.buffer = last ? form->last : buffer;
    return last ? sdlf_tensor_channels_last(tensor) : tensor;
}

/* The same part of the content, in the form that is channels last. False, and nothing changed: it is no part that strides can
 * tell, because it has others than the content, or runs over from one channel into the next. */
static bool restride(const pass *p, sdlf_tensor *tensor)
{
    if (!is_image(tensor)) return false;
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
    part.offset = offset * size;
    part.buffer = to.buffer;
    *tensor = part;
    return true;
}

/* Where it has been asked before whether it can be done. */
static void must_restride(const pass *p, sdlf_tensor *tensor)
{
    bool done = restride(p, tensor);
    assert(done);
    (void)done;
}

/* (N,C,H,W) as (N,H,W,C) */
static sdlf_tensor channels_behind(sdlf_tensor tensor)
{
    return sdlf_tensor_transpose(sdlf_tensor_transpose(tensor, 1, 2), 2, 3);
}

static bool is_last(const pass *p, const sdlf_tensor *tensor)
{
    return is_image(tensor) && p->form[tensor->buffer].last != 0;
}

/* ---- making forms ---- */

/* A buffer for the form of `buffer` that is channels last. */
static sdlf_status add_last(pass *p, int buffer, sdlf_shape shape)
{
    forms *form = &p->form[buffer];
    const plan_buffer *original = &p->plan->buffers[buffer];
    form->shape = shape;
    bool same = shape.dim[1] == 1 || shape.dim[2] * shape.dim[3] == 1;
    form->last = same ? buffer : plan_new_buffer(p->plan, BUFFER_ARENA, original->dtype, original->bytes);
    return form->last != 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of buffers");
}

static sdlf_status append_copy(pass *p, const plan_step *reader, sdlf_tensor from, sdlf_tensor to)
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
static sdlf_status need_row_major(pass *p, const plan_step *reader, int buffer)
{
    forms *form = &p->form[buffer];
    if (form->row_major) return SDLF_OK;
    form->row_major = true;
    if (form->last == buffer) return SDLF_OK;
    return append_copy(p, reader, whole(p, buffer, true), whole(p, buffer, false));
}

/* The operand in the form that is channels last, which is made if need be. */
static sdlf_status need_last(pass *p, const plan_step *reader, sdlf_tensor *operand)
{
    int buffer = operand->buffer;
    if (p->form[buffer].last == 0) {
        sdlf_status status = add_last(p, buffer, operand->shape);
        if (status != SDLF_OK) return status;
        sdlf_tensor from = channels_behind(whole(p, buffer, false)), to = channels_behind(whole(p, buffer, true));
        if (to.buffer != buffer) status = append_copy(p, reader, from, to);
        if (status != SDLF_OK) return status;
    }
    must_restride(p, operand);
    return SDLF_OK;
}

/* Could need_last make it, without gaps? */
static bool can_be_last(const pass *p, const sdlf_tensor *operand)
{
    sdlf_tensor copy = *operand;
    if (!is_image(operand) || !plan_covers_buffer(p->plan, operand)) return false;
    return is_last(p, operand) ? restride(p, &copy) : sdlf_tensor_is_contiguous(operand);
}

static int count_writers(const pass *p, int buffer)
{
    int count = 0;
    for (int i = 0; i < p->old_count; i++) count += plan_step_writes(&p->old[i], buffer);
    return count;
}

/* An output that could be made channels last: all of its buffer, by this step alone. */
static bool can_be_made(const pass *p, const sdlf_tensor *out)
{
    return is_image(out) && plan_covers_buffer(p->plan, out) && count_writers(p, out->buffer) == 1;
}

/* An output that is written channels last; afterwards settle_output. */
static sdlf_status make_last(pass *p, sdlf_tensor *operand)
{
    int buffer = operand->buffer;
    sdlf_status status = p->form[buffer].last != 0 ? SDLF_OK : add_last(p, buffer, operand->shape);
    if (status != SDLF_OK) return status;
    p->form[buffer].row_major = p->form[buffer].last == buffer;
    must_restride(p, operand);
    return SDLF_OK;
}

/* What others than this plan's steps read is row-major. */
static sdlf_status settle_output(pass *p, const plan_step *step, int buffer)
{
    return p->plan->buffers[buffer].kind == BUFFER_ARENA ? SDLF_OK : need_row_major(p, step, buffer);
}

/* ---- kinds ---- */

/* Convolution and pooling: kernels for both forms. */
static bool takes_last(const pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_kernel_slot *slot = &step->calculator->type->kernel[op->kind];
    unsigned operands = sdlf_operation_class_of(op->kind)->channels_last;
    bool wanted = sdlf_calculator_likes_channels_last(step->calculator, op);
    if (operands == 0 || !slot->channels_last || !can_be_made(p, &op->out[0])) return false;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!(operands >> i & 1) || !sdlf_tensor_present(&op->in[i])) continue;
        if (!can_be_last(p, &op->in[i])) return false;
        wanted = wanted || is_last(p, &op->in[i]);
        for (int j = 0; j < i; j++) { /* one content under two shapes would need two forms */
            if (operands >> j & 1 && op->in[j].buffer == op->in[i].buffer &&
                !sdlf_shape_equal(op->in[j].shape, op->in[i].shape))
                return false;
        }
    }
    sdlf_operation turned = sdlf_operation_channels_last(op);
    return wanted && sdlf_calculator_supports(step->calculator, &turned);
}

static sdlf_status convert_kernel(pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    unsigned operands = sdlf_operation_class_of(op->kind)->channels_last;
    int written = op->out[0].buffer;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        sdlf_status status = operands >> i & 1 ? need_last(p, step, in) : need_row_major(p, step, in->buffer);
        if (status != SDLF_OK) return status;
    }
    sdlf_status status = make_last(p, &op->out[0]);
    if (status == SDLF_OK) status = plan_append_step(p->plan, step);
    return status == SDLF_OK ? settle_output(p, step, written) : status;
}

static bool goes_by_elements(sdlf_operation_kind kind)
{
    return kind == SDLF_ACTIVATION_FORWARD || kind == SDLF_ADD || kind == SDLF_BINARY || kind == SDLF_SELECT;
}

/* Is the operand one of the output's shape, not a broadcast one? */
static bool is_full(const sdlf_tensor *operand, const sdlf_tensor *out)
{
    if (!is_image(operand) || !sdlf_shape_equal(operand->shape, out->shape)) return false;
    for (int axis = 0; axis < 4; axis++) {
        if (operand->stride[axis] == 0 && operand->shape.dim[axis] > 1) return false;
    }
    return true;
}

static bool follows_by_elements(const pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    bool norm = op->kind == SDLF_BATCH_NORM2D_INFER, wanted = false;
    if ((!goes_by_elements(op->kind) && !norm) || !can_be_made(p, &op->out[0])) return false;
    for (int i = 0; i < (norm ? 1 : SDLF_MAX_INPUTS); i++) {
        const sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        if (is_full(in, &op->out[0])) {
            if (!can_be_last(p, in)) return false;
            wanted = wanted || is_last(p, in);
        } else if (!is_image(in)) {
            return false;
        }
    }
    return wanted;
}

/* As rows of channels, (N H W, C). */
static sdlf_tensor channel_rows(sdlf_tensor tensor)
{
    sdlf_tensor behind = channels_behind(tensor);
    return sdlf_tensor_reshape(behind, sdlf_shape(sdlf_shape_span(behind.shape, 0, 3), behind.shape.dim[3]));
}

static sdlf_status convert_elements(pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    bool norm = op->kind == SDLF_BATCH_NORM2D_INFER;
    const sdlf_tensor out = op->out[0];
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        bool image = !norm || i == 0, full = image && is_full(in, &out);
        sdlf_status status = full ? need_last(p, step, in) : need_row_major(p, step, in->buffer);
        if (status != SDLF_OK) return status;
        if (image) *in = norm ? channel_rows(*in) : channels_behind(*in);
    }
    sdlf_status status = make_last(p, &op->out[0]);
    if (status != SDLF_OK) return status;
    op->out[0] = norm ? channel_rows(op->out[0]) : channels_behind(op->out[0]);
    status = plan_append_step(p->plan, step);
    return status == SDLF_OK ? settle_output(p, step, out.buffer) : status;
}

/* ---- copies ---- */

/* (N,C,H,W) of a buffer of which `part` is some channels of all images; rank 0: it is not. */
static sdlf_shape shape_around(const pass *p, const sdlf_tensor *part)
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

/* Is the buffer filled by copies alone, each of some channels of the same (N,C,H,W)? */
static bool only_copies_write(const pass *p, int buffer, sdlf_shape shape)
{
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        if (!plan_step_writes(&p->old[i], buffer)) continue;
        if (op->kind != SDLF_COPY || !is_image(&op->out[0]) || op->in[0].dtype != op->out[0].dtype ||
            !sdlf_shape_equal(shape_around(p, &op->out[0]), shape))
            return false;
    }
    return true;
}

/* A copy takes what lies channels last as it is, and makes that where nothing else than such copies fills the buffer. */
static bool follows_copy(const pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    sdlf_tensor in = op->in[0], out = op->out[0];
    if (op->kind != SDLF_COPY || !is_image(&in) || !is_image(&out) || in.dtype != out.dtype) return false;
    if (is_last(p, &out)) return true;
    sdlf_shape shape = shape_around(p, &out);
    return !p->form[out.buffer].written && is_last(p, &in) && restride(p, &in) &&
           p->plan->buffers[out.buffer].kind == BUFFER_ARENA && shape.rank == 4 &&
           only_copies_write(p, out.buffer, shape);
}

static sdlf_status convert_copy(pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    sdlf_tensor in = op->in[0], out = op->out[0];
    sdlf_status status = SDLF_OK;
    if (!is_last(p, &out)) status = add_last(p, out.buffer, shape_around(p, &out));
    if (status != SDLF_OK) return status;
    p->form[out.buffer].row_major = p->form[out.buffer].last == out.buffer;
    must_restride(p, &out);
    sdlf_tensor same = in;
    if (is_last(p, &in) && restride(p, &same))
        in = same;
    else
        status = need_row_major(p, step, in.buffer);
    if (status != SDLF_OK) return status;
    op->in[0] = channels_behind(in);
    op->out[0] = channels_behind(out);
    return plan_append_step(p->plan, step);
}

/* ---- all steps ---- */

static sdlf_status convert_step(pass *p, plan_step step)
{
    if (takes_last(p, &step)) return convert_kernel(p, &step);
    if (follows_by_elements(p, &step)) return convert_elements(p, &step);
    if (follows_copy(p, &step)) return convert_copy(p, &step);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!sdlf_tensor_present(&step.operation.in[i])) continue;
        sdlf_status status = need_row_major(p, &step, step.operation.in[i].buffer);
        if (status != SDLF_OK) return status;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (sdlf_tensor_present(&step.operation.out[i])) p->form[step.operation.out[i].buffer].written = true;
    }
    /* an algorithm that takes nothing else than channels last was chosen, and these could not be brought so */
    if (!sdlf_calculator_supports(step.calculator, &step.operation)) step.operation.algorithm = 0;
    return plan_append_step(p->plan, &step);
}

/* One such convolution alone would save less than conversions cost. */
bool plan_turns_layouts(const sdlf_plan *plan)
{
    int count = 0;
    if (plan->options.mode != SDLF_INFER || plan->options.no_fusion || plan->options.keep_activations) return false;
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        count += sdlf_calculator_likes_channels_last(step->calculator, &step->operation);
    }
    return count > 1;
}

sdlf_status plan_choose_layouts(sdlf_plan *plan)
{
    if (!plan_turns_layouts(plan)) return SDLF_OK;
    int buffers = plan->buffer_count;
    pass p = {.plan = plan, .old = plan->steps, .old_count = plan->step_count};
    p.form = calloc((size_t)buffers, sizeof *p.form);
    if (p.form == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    for (int i = 0; i < buffers; i++) p.form[i].row_major = true;
    sdlf_status status = SDLF_OK;
    plan->steps = NULL;
    plan->step_count = plan->step_capacity = 0;
    for (int i = 0; i < p.old_count && status == SDLF_OK; i++) status = convert_step(&p, p.old[i]);
    plan->forward_steps = plan->step_count;
    free(p.form);
    free(p.old);
    return status;
}
