/* SPDX-License-Identifier: MIT */
/* 8-bit operands around an operation that is to be computed in integers. See qdq_operands.h. */
#include "framework/plan/fuse/qdq_operands.h"

#include <math.h>

bool plan_quantized_origin(const sdlf_plan *plan, const sdlf_tensor *x, const sdlf_calculator *calculator,
                           quantized_origin *from)
{
    if (!sdlf_tensor_present(x) || plan->buffers[x->buffer].kind != BUFFER_ARENA || !sdlf_tensor_is_contiguous(x) ||
        !plan_covers_buffer(plan, x) || plan_count_writers(plan, x->buffer) != 1)
        return false;
    const plan_step *step = &plan->steps[plan_first_writer(plan, x->buffer)];
    const sdlf_operation *op = &step->operation;
    bool bytes = op->in[0].dtype == SDLF_UINT8 || op->in[0].dtype == SDLF_INT8;
    bool converted = op->kind == SDLF_COPY && bytes && sdlf_tensor_is_contiguous(&op->in[0]);
    if (step->calculator != calculator || (op->kind != SDLF_DEQUANTIZE && !converted)) return false;
    *from = (quantized_origin){.bytes = sdlf_tensor_reshape(op->in[0], x->shape), .scale = 1};
    if (converted) return true;
    from->scale = op->quantize.scale;
    from->zero = op->quantize.zero;
    return true;
}

bool plan_quantized_bound(const sdlf_activation *activation, quantized_target *to)
{
    float low = -INFINITY, high = INFINITY;
    if (activation->function == SDLF_RELU)
        low = 0;
    else if (activation->function == SDLF_CLIP)
        low = activation->low, high = activation->high;
    else if (activation->function != SDLF_IDENTITY)
        return false;
    if (to->step < 0) {
        to->low = low, to->high = high;
        return low <= high;
    }
    low = rintf(low / to->scale) + (float)to->zero;
    high = rintf(high / to->scale) + (float)to->zero;
    to->low = fminf(fmaxf(to->low, low), to->high);
    to->high = fmaxf(fminf(to->high, high), to->low);
    return low <= high;
}

quantized_target plan_quantized_target(const sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    const sdlf_tensor *y = &step->operation.out[0];
    quantized_target to = {.y = *y, .scale = 1, .step = -1};
    int reader = plan_is_between(plan, y) ? plan_next_reader(plan, y->buffer, i) : -1;
    if (reader < 0 || plan->steps[reader].calculator != step->calculator) return to;
    const sdlf_operation *op = &plan->steps[reader].operation;
    if (op->kind != SDLF_QUANTIZE) return to;
    return (quantized_target){.y = sdlf_tensor_reshape(op->out[0], y->shape),
                              .scale = op->quantize.scale,
                              .low = op->quantize.low,
                              .high = op->quantize.high,
                              .zero = op->quantize.zero,
                              .step = reader};
}

/* Removes the producer of an input that has no reader left. */
static void release(sdlf_plan *plan, int buffer, int reader)
{
    if (plan->buffers[buffer].kind != BUFFER_ARENA || plan_count_readers(plan, buffer) > 0) return;
    plan_step *writer = &plan->steps[plan_first_writer(plan, buffer)];
    writer->dead = true;
    plan_join_groups(plan, writer->node, plan->steps[reader].node);
}

bool plan_quantized_is_taken(const sdlf_plan *plan, int i, const sdlf_operation *fused)
{
    return sdlf_operation_check(fused) == SDLF_OK && sdlf_calculator_supports(plan->steps[i].calculator, fused);
}

sdlf_status plan_quantized_replace(sdlf_plan *plan, int i, const quantized_target *to, const sdlf_operation *fused)
{
    const sdlf_operation old = plan->steps[i].operation;
    if (to->step >= 0) {
        plan->steps[to->step].dead = true;
        plan_join_groups(plan, plan->steps[i].node, plan->steps[to->step].node);
    }
    sdlf_status status = plan_replace_operation(plan, i, fused);
    for (int j = 0; j < 2; j++)
        if (sdlf_tensor_present(&old.in[j])) release(plan, old.in[j].buffer, i);
    return status;
}
