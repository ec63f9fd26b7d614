/* SPDX-License-Identifier: MIT */
/* The layout selection pass. Inference: activations are channels last where a calculator's convolutions prefer that,
 * propagated through every operation that can follow, with conversions where the two forms meet. Where a calculator has
 * a storage type for activations (sdlf_calculator_storage), in training and inference: the same, in that type;
 * convolution weights are converted in every training step, and prepacked once in inference; parameters are unchanged.
 * In training without such a type all of a calculator's steps are channels last, or none (votes.c).
 *
 * Steps are visited in order. A convolution whose calculator prefers it reads and writes channels-last activations, and
 * so does every other one of that calculator that can, if those have at least half of its FLOPs (votes.c); other kinds
 * follow if an input is channels last already:
 *     pooling                             has kernels for both
 *     activation, add, binary, select     elementwise: channels last (N,C,H,W) is row-major (N,H,W,C) to them
 *     batch_norm2d                        sees a row-major (N H W, C)
 *     reduce                              along the pixels or the channels
 *     copy                                supports any strides, for example to concatenate channels
 * Elementwise operations and copies treat tensors of rank 3 as images of one row. A kernel may read row-major images
 * and write channels-last ones, if its calculator says so (`mixed`). Everything else, and the world outside, gets
 * row-major activations. Channels-last content has its own buffer beside that of the row-major content, which is filled
 * only if something reads it. */
#include "framework/plan/layouts/layouts.h"
#include "framework/operand.h"

#include <stdlib.h>

/* The operands that are channels last, as bits of a class: for kinds with kernels for it; in training including the
 * weights. */
static unsigned nhwc_operands(const layout_pass *p, const sdlf_operation *op)
{
    const sdlf_operation_class *type = sdlf_operation_type(op);
    bool weights = p->storage != SDLF_NONE && type->channels_last != 0 && p->plan->options.mode == SDLF_TRAIN;
    return weights ? type->storage : type->channels_last;
}

/* True if all outputs requested channels last can be produced so. */
static bool outputs_can_be_made(const layout_pass *p, const sdlf_operation *op, unsigned operands)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        bool asked = operands >> (SDLF_MAX_INPUTS + i) & 1 && sdlf_tensor_present(&op->out[i]);
        if (asked && !layout_can_be_made(p, &op->out[i])) return false;
    }
    return true;
}

/* For convolution and pooling, with kernels for both forms: true if the step becomes channels last. */
static bool takes_nhwc(const layout_pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(step->calculator, op);
    unsigned operands = nhwc_operands(p, op);
    bool stored = p->storage != SDLF_NONE, wanted = stored && layout_stores(p->votes, step->calculator, p->storage);
    if (stored && !wanted) return false;
    if (!stored) wanted = slot->prefers_channels_last && layout_uses_nhwc_everywhere(p->votes, step->calculator);
    if (!wanted && layout_uses_nhwc(p->votes, step->calculator)) wanted = layout_is_preferred(p->plan, step);
    if (operands == 0 || !slot->channels_last || !outputs_can_be_made(p, op, operands)) return false;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!(operands >> i & 1) || !sdlf_tensor_present(&op->in[i])) continue;
        if (!layout_can_be_nhwc(p, &op->in[i])) return false;
        wanted = wanted || layout_is_nhwc(p, &op->in[i]);
        for (int j = 0; j < i; j++) { /* one content under two shapes would need two forms */
            if (operands >> j & 1 && op->in[j].buffer == op->in[i].buffer &&
                !sdlf_shape_equal(op->in[j].shape, op->in[i].shape))
                return false;
        }
    }
    sdlf_operation nhwc = stored ? layout_stored(p->plan, op, p->storage) : sdlf_operation_channels_last(op);
    return wanted && sdlf_calculator_supports(step->calculator, &nhwc);
}

/* True if in[0] may stay row-major. */
static bool reads_row_major(const layout_pass *p, const plan_step *step)
{
    bool allowed = p->storage == SDLF_NONE && sdlf_operation_type(&step->operation)->stays_row_major & 1u;
    sdlf_operation mixed = sdlf_operation_channels_last(&step->operation);
    mixed.in[0] = step->operation.in[0];
    return allowed && !layout_is_nhwc(p, &mixed.in[0]) && sdlf_operation_is_mixed(&mixed) &&
           sdlf_calculator_supports(step->calculator, &mixed);
}

/* Converts the outputs, once the inputs have their forms; appends the step, and conversions of outputs read outside. */
static sdlf_status append_nhwc(layout_pass *p, plan_step *step, unsigned operands,
                               sdlf_tensor (*view)(sdlf_tensor tensor))
{
    sdlf_operation *op = &step->operation;
    int written[SDLF_MAX_OUTPUTS] = {0};
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        sdlf_tensor *out = &op->out[i];
        if (!sdlf_tensor_present(out)) continue;
        if (!(operands >> (SDLF_MAX_INPUTS + i) & 1)) {
            p->form[out->buffer].written = true;
            continue;
        }
        written[i] = out->buffer;
        sdlf_status status = layout_make_nhwc(p, out);
        if (status != SDLF_OK) return status;
        if (view != NULL) *out = view(*out);
    }
    sdlf_status status = plan_append_step(p->plan, step);
    for (int i = 0; i < SDLF_MAX_OUTPUTS && status == SDLF_OK; i++) {
        if (written[i] != 0) status = layout_settle_output(p, step, written[i]);
    }
    return status;
}

static sdlf_status convert_kernel(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    unsigned operands = nhwc_operands(p, op);
    if (reads_row_major(p, step)) operands &= ~1u;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        sdlf_status status =
            operands >> i & 1 ? layout_need_nhwc(p, step, in) : layout_need_row_major(p, step, in->buffer);
        if (status != SDLF_OK) return status;
    }
    return append_nhwc(p, step, operands, NULL);
}

/* True if the operand has the output's shape and is not broadcast. */
static bool is_full(const sdlf_tensor *operand, const sdlf_tensor *out)
{
    if (!layout_is_image(operand) || !sdlf_shape_equal(operand->shape, out->shape)) return false;
    for (int axis = 0; axis < 4; axis++) {
        if (operand->stride[axis] == 0 && operand->shape.dim[axis] > 1) return false;
    }
    return true;
}

/* Viewed as rows of channels, (N H W, C). */
static sdlf_tensor channel_rows(sdlf_tensor tensor)
{
    sdlf_tensor behind = layout_channels_last(tensor);
    return sdlf_tensor_reshape(behind, sdlf_shape(sdlf_shape_span(behind.shape, 0, 3), behind.shape.dim[3]));
}

/* The image operands, as bits of a class: all, or those that are not per channel. */
static unsigned image_operands(const sdlf_operation_class *type)
{
    return type->nhwc_rule == SDLF_NHWC_ROWS ? type->storage : ~0u;
}

/* With a storage type: true if the calculator supports it. (Without one a kernel sees nothing new.) */
static bool channels_last_is_taken(const layout_pass *p, const plan_step *step)
{
    if (p->storage == SDLF_NONE) return true;
    const sdlf_operation_class *type = sdlf_operation_type(&step->operation);
    sdlf_operation nhwc = sdlf_operation_stored(&step->operation, p->storage);
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        sdlf_tensor *operand = sdlf_operand_at(&nhwc, i);
        if (!(type->storage >> i & 1) || !layout_is_image(operand)) continue;
        if (type->float32_beside >> i & 1 && !is_full(operand, &step->operation.out[0])) {
            *operand = layout_channels_last(step->operation.in[i]);
            continue;
        }
        *operand = sdlf_tensor_channels_last(*operand);
        *operand = type->nhwc_rule == SDLF_NHWC_ROWS ? channel_rows(*operand) : layout_channels_last(*operand);
    }
    return type->storage != 0 && layout_stores(p->votes, step->calculator, p->storage) &&
           sdlf_calculator_supports(step->calculator, &nhwc);
}

static bool follows_channels_last(const layout_pass *p, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_operation_class *type = sdlf_operation_type(op);
    bool wanted = false, rows = type->nhwc_rule == SDLF_NHWC_ROWS;
    if (type->nhwc_rule == SDLF_NHWC_NEVER || !layout_can_be_made(p, &op->out[0])) return false;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        const sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in) || (rows && !(type->storage >> i & 1))) continue;
        if (is_full(in, &op->out[0])) {
            if (!layout_can_be_nhwc(p, in)) return false;
            wanted = wanted || layout_is_nhwc(p, in);
        } else if (!layout_is_image(in)) {
            return false;
        }
    }
    return wanted && channels_last_is_taken(p, step);
}

static sdlf_status convert_channels_last(layout_pass *p, plan_step *step)
{
    sdlf_operation *op = &step->operation;
    const sdlf_operation_class *type = sdlf_operation_type(op);
    unsigned images = image_operands(type);
    sdlf_tensor (*view)(sdlf_tensor) = type->nhwc_rule == SDLF_NHWC_ROWS ? channel_rows : layout_channels_last;
    const sdlf_tensor out = op->out[0];
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &op->in[i];
        if (!sdlf_tensor_present(in)) continue;
        bool image = images >> i & 1, full = image && is_full(in, &out);
        sdlf_status status = full ? layout_need_nhwc(p, step, in) : layout_need_row_major(p, step, in->buffer);
        if (status != SDLF_OK) return status;
        if (image) *in = view(*in);
    }
    return append_nhwc(p, step, images, view);
}

/* ---- all steps ---- */

static plan_step with_images(plan_step step)
{
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) step.operation.in[i] = layout_as_image(step.operation.in[i]);
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) step.operation.out[i] = layout_as_image(step.operation.out[i]);
    return step;
}

static sdlf_status convert_step(layout_pass *p, plan_step step)
{
    plan_step images = with_images(step);
    if (takes_nhwc(p, &step)) return convert_kernel(p, &step);
    if (follows_channels_last(p, &images)) return convert_channels_last(p, &images);
    if (layout_follows_copy(p, &images)) return layout_convert_copy(p, &images);
    if (layout_follows_reduce(p, &step)) return layout_convert_reduce(p, &step);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!sdlf_tensor_present(&step.operation.in[i])) continue;
        sdlf_status status = layout_need_row_major(p, &step, step.operation.in[i].buffer);
        if (status != SDLF_OK) return status;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (sdlf_tensor_present(&step.operation.out[i])) p->form[step.operation.out[i].buffer].written = true;
    }
    /* a selected algorithm supports only channels last, and these operands could not be converted */
    if (!sdlf_calculator_supports(step.calculator, &step.operation)) step.operation.algorithm = 0;
    return plan_append_step(p->plan, &step);
}

static sdlf_status convert_steps(sdlf_plan *plan, const layout_votes *votes)
{
    int buffers = plan->buffer_count;
    int forward = plan->forward_steps;
    layout_pass p = {.plan = plan, .old = plan->steps, .old_count = plan->step_count, .votes = votes};
    p.storage = layout_storage(votes);
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
    for (int i = 0; i < p.old_count && status == SDLF_OK; i++) {
        if (i == forward) plan->forward_steps = plan->step_count;
        status = convert_step(&p, p.old[i]);
    }
    if (forward == p.old_count) plan->forward_steps = plan->step_count;
    plan_uses_release(&p.uses);
    free(p.form);
    free(p.old);
    return status;
}

/* If nothing is channels last, resets algorithms that support only that to the calculators' choice. */
static void leave_algorithms(sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        if (!sdlf_calculator_supports(step->calculator, &step->operation)) step->operation.algorithm = 0;
    }
}

sdlf_status plan_choose_layouts(sdlf_plan *plan)
{
    layout_votes *votes = NULL;
    sdlf_status status = layout_count_votes(plan, &votes);
    bool any = false;
    for (int i = 0; status == SDLF_OK && votes[i].calculator != NULL; i++)
        any = any || layout_uses_nhwc(votes, votes[i].calculator);
    if (status == SDLF_OK && any) status = convert_steps(plan, votes);
    if (status == SDLF_OK && !any) leave_algorithms(plan);
    free(votes);
    return status;
}
