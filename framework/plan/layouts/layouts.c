/* The pass that chooses layouts, for inference: activations lie channels last where a calculator's convolutions like that, and
 * stay so through whatever can follow; conversions stand where the two meet.
 *
 * Steps are walked in their order. A convolution whose calculator says so takes and makes activations that are channels last, and so does
 * every other one of that calculator that can where those have half of its FLOPs or more (votes.c); other kinds follow where an
 * input lies that way already:
 *     pooling                             has kernels for both
 *     activation, add, binary, select     go element by element: channels last (N,C,H,W) is row-major (N,H,W,C) to them
 *     batch_norm2d_infer                  sees a row-major (N H W, C)
 *     copy                                takes any strides; joining channels, say
 * A kernel may take row-major images and make such as are channels last, where its calculator says so (`mixed`).
 * Everything else, and the world outside, gets row-major activations. What lies channels last has a buffer of its own beside
 * the buffer of the row-major content, which is filled only if somebody reads it. */
#include "framework/plan/layouts/layouts.h"

#include <stdlib.h>

/* Convolution and pooling: kernels for both forms. */
static bool takes_last(const layout_pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_kernel_slot *slot = &step->calculator->type->kernel[op->kind];
    unsigned operands = sdlf_operation_class_of(op->kind)->channels_last;
    bool wanted = slot->likes_channels_last && layout_turns_all(p->votes, step->calculator);
    if (!wanted && layout_turns(p->votes, step->calculator))
        wanted = sdlf_calculator_likes_channels_last(step->calculator, op);
    if (operands == 0 || !slot->channels_last || !layout_can_be_made(p, &op->out[0])) return false;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!(operands >> i & 1) || !sdlf_tensor_present(&op->in[i])) continue;
        if (!layout_can_be_last(p, &op->in[i])) return false;
        wanted = wanted || layout_is_last(p, &op->in[i]);
        for (int j = 0; j < i; j++) { /* one content under two shapes would need two forms */
            if (operands >> j & 1 && op->in[j].buffer == op->in[i].buffer &&
                !sdlf_shape_equal(op->in[j].shape, op->in[i].shape))
                return false;
        }
    }
    sdlf_operation turned = sdlf_operation_channels_last(op);
    return wanted && sdlf_calculator_supports(step->calculator, &turned);
}

/* May in[0] stay row-major, as it is? */
static bool reads_row_major(const layout_pass *p, const plan_step *step)
{
    bool allowed = sdlf_operation_class_of(step->operation.kind)->stays_row_major & 1u;
    sdlf_operation mixed = sdlf_operation_channels_last(&step->operation);
    mixed.in[0] = step->operation.in[0];
    return allowed && !layout_is_last(p, &mixed.in[0]) && sdlf_operation_is_mixed(&mixed) &&
           sdlf_calculator_supports(step->calculator, &mixed);
}

static sdlf_status convert_kernel(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    unsigned operands = sdlf_operation_class_of(op->kind)->channels_last;
    int written = op->out[0].buffer;
    if (reads_row_major(p, step)) operands &= ~1u;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        sdlf_status status =
            operands >> i & 1 ? layout_need_last(p, step, in) : layout_need_row_major(p, step, in->buffer);
        if (status != SDLF_OK) return status;
    }
    sdlf_status status = layout_make_last(p, &op->out[0]);
    if (status == SDLF_OK) status = plan_append_step(p->plan, step);
    return status == SDLF_OK ? layout_settle_output(p, step, written) : status;
}

/* Is the operand one of the output's shape, not a broadcast one? */
static bool is_full(const sdlf_tensor *operand, const sdlf_tensor *out)
{
    if (!layout_is_image(operand) || !sdlf_shape_equal(operand->shape, out->shape)) return false;
    for (int axis = 0; axis < 4; axis++) {
        if (operand->stride[axis] == 0 && operand->shape.dim[axis] > 1) return false;
    }
    return true;
}

static bool follows_turned(const layout_pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    sdlf_turning turning = sdlf_operation_class_of(op->kind)->turning;
    bool wanted = false;
    if (turning == SDLF_TURNS_NOT || !layout_can_be_made(p, &op->out[0])) return false;
    for (int i = 0; i < (turning == SDLF_TURNS_ROWS ? 1 : SDLF_MAX_INPUTS); i++) {
        const sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        if (is_full(in, &op->out[0])) {
            if (!layout_can_be_last(p, in)) return false;
            wanted = wanted || layout_is_last(p, in);
        } else if (!layout_is_image(in)) {
            return false;
        }
    }
    return wanted;
}

/* As rows of channels, (N H W, C). */
static sdlf_tensor channel_rows(sdlf_tensor tensor)
{
    sdlf_tensor behind = layout_channels_behind(tensor);
    return sdlf_tensor_reshape(behind, sdlf_shape(sdlf_shape_span(behind.shape, 0, 3), behind.shape.dim[3]));
}

static sdlf_status convert_turned(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    bool rows = sdlf_operation_class_of(op->kind)->turning == SDLF_TURNS_ROWS;
    const sdlf_tensor out = op->out[0];
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        bool image = !rows || i == 0, full = image && is_full(in, &out);
        sdlf_status status = full ? layout_need_last(p, step, in) : layout_need_row_major(p, step, in->buffer);
        if (status != SDLF_OK) return status;
        if (image) *in = rows ? channel_rows(*in) : layout_channels_behind(*in);
    }
    sdlf_status status = layout_make_last(p, &op->out[0]);
    if (status != SDLF_OK) return status;
    op->out[0] = rows ? channel_rows(op->out[0]) : layout_channels_behind(op->out[0]);
    status = plan_append_step(p->plan, step);
    return status == SDLF_OK ? layout_settle_output(p, step, out.buffer) : status;
}

/* ---- all steps ---- */

static sdlf_status convert_step(layout_pass *p, plan_step step)
{
    if (takes_last(p, &step)) return convert_kernel(p, &step);
    if (follows_turned(p, &step)) return convert_turned(p, &step);
    if (layout_follows_copy(p, &step)) return layout_convert_copy(p, &step);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!sdlf_tensor_present(&step.operation.in[i])) continue;
        sdlf_status status = layout_need_row_major(p, &step, step.operation.in[i].buffer);
        if (status != SDLF_OK) return status;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (sdlf_tensor_present(&step.operation.out[i])) p->form[step.operation.out[i].buffer].written = true;
    }
    /* an algorithm that takes nothing else than channels last was chosen, and these could not be brought so */
    if (!sdlf_calculator_supports(step.calculator, &step.operation)) step.operation.algorithm = 0;
    return plan_append_step(p->plan, &step);
}

static sdlf_status convert_steps(sdlf_plan *plan, const layout_votes *votes)
{
    int buffers = plan->buffer_count;
    layout_pass p = {.plan = plan, .old = plan->steps, .old_count = plan->step_count, .votes = votes};
    p.form = calloc((size_t)buffers, sizeof *p.form);
    if (p.form == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    sdlf_status status = plan_uses_make(&p.uses, p.old, p.old_count, buffers);
    if (status != SDLF_OK) {
        free(p.form);
        return status;
    }
    for (int i = 0; i < buffers; i++) p.form[i].row_major = true;
    plan->steps = NULL;
    plan->step_count = plan->step_capacity = 0;
    for (int i = 0; i < p.old_count && status == SDLF_OK; i++) status = convert_step(&p, p.old[i]);
    plan->forward_steps = plan->step_count;
    plan_uses_release(&p.uses);
    free(p.form);
    free(p.old);
    return status;
}

sdlf_status plan_choose_layouts(sdlf_plan *plan)
{
    layout_votes *votes = NULL;
    sdlf_status status = layout_count_votes(plan, &votes);
    bool turns = false;
    for (int i = 0; status == SDLF_OK && votes[i].calculator != NULL; i++)
        turns = turns || layout_turns(votes, votes[i].calculator);
    if (status == SDLF_OK && turns) status = convert_steps(plan, votes);
    free(votes);
    return status;
}
