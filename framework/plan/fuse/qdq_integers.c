/* SPDX-License-Identifier: MIT */
/* Inference: operations between dequantize and quantize are computed in integers.
 *
 *     product with constant integer weights, its activation         quantized_conv2d; without a quantize after it,
 *                                                                   into float32
 *     the same, then a copy to int32                                quantized_conv2d into int32, also of x less a
 *                                                                   computed zero point
 *     add, of two; relu or clip; nothing                            quantized_add
 *     max, average or global average pooling                        quantized_pool2d
 *
 * The dequantize is removed when its output has no other reader. Unsupported operations stay decomposed. */
#include "framework/plan/fuse/qdq_operands.h"

#include <math.h>
#include <stdlib.h>

/* ---- elementwise operations and pooling ---- */

static sdlf_status fuse_sum(sdlf_plan *plan, int i)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    const sdlf_calculator *calculator = plan->steps[i].calculator;
    sdlf_activation activation = {.function = SDLF_IDENTITY};
    quantized_origin a, b;
    if (op->kind == SDLF_ADD) activation = op->add.activation;
    if (op->kind == SDLF_ACTIVATION_FORWARD) activation = op->activation;
    bool two = op->kind == SDLF_ADD || (op->kind == SDLF_BINARY && op->binary.function == SDLF_BINARY_ADD &&
                                        sdlf_tensor_present(&op->in[0]) && sdlf_tensor_present(&op->in[1]));
    if (!two && op->kind != SDLF_ACTIVATION_FORWARD && op->kind != SDLF_QUANTIZE) return SDLF_OK;
    if (!plan_quantized_origin(plan, &op->in[0], calculator, &a)) return SDLF_OK;
    if (two && !plan_quantized_origin(plan, &op->in[1], calculator, &b)) return SDLF_OK;
    quantized_target to = plan_quantized_target(plan, i);
    if (op->kind == SDLF_QUANTIZE)
        to = (quantized_target){op->out[0],        op->quantize.scale, op->quantize.low,
                                op->quantize.high, op->quantize.zero,  -1};
    else if (to.step < 0 || !plan_quantized_bound(&activation, &to))
        return SDLF_OK;
    sdlf_operation fused = {
        .kind = SDLF_QUANTIZED_ADD,
        .in = {a.bytes},
        .out = {to.y},
        .quantized_add = {
            .a_scale = a.scale / to.scale, .a_zero = a.zero, .y_zero = to.zero, .low = to.low, .high = to.high}};
    if (two) {
        fused.in[1] = b.bytes;
        fused.quantized_add.b_scale = b.scale / to.scale;
        fused.quantized_add.b_zero = b.zero;
    } else if (op->kind == SDLF_QUANTIZE && a.scale == to.scale && a.zero == to.zero && a.bytes.dtype == to.y.dtype) {
        fused = (sdlf_operation){.kind = SDLF_COPY, .in = {a.bytes}, .out = {to.y}};
    }
    return plan_quantized_is_taken(plan, i, &fused) ? plan_quantized_replace(plan, i, &to, &fused) : SDLF_OK;
}

/* Matches a pool of unscaled bytes, which are copied to floats before it and back after it. */
static quantized_target find_bytes(const sdlf_plan *plan, int i, const quantized_origin *from)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    quantized_target to = {.y = *y, .scale = 1, .step = -1};
    int reader = plan_is_between(plan, y) ? plan_next_reader(plan, y->buffer, i) : -1;
    if (reader < 0 || plan->steps[reader].calculator != plan->steps[i].calculator) return to;
    const sdlf_operation *op = &plan->steps[reader].operation;
    bool same = op->kind == SDLF_COPY && op->out[0].dtype == from->bytes.dtype &&
                sdlf_tensor_is_contiguous(&op->in[0]) && sdlf_tensor_is_contiguous(&op->out[0]) && from->scale == 1 &&
                from->zero == 0;
    if (!same) return to;
    bool is_signed = op->out[0].dtype == SDLF_INT8;
    return (quantized_target){.y = sdlf_tensor_reshape(op->out[0], y->shape),
                              .scale = 1,
                              .low = is_signed ? -128 : 0,
                              .high = is_signed ? 127 : 255,
                              .step = reader};
}

static sdlf_status fuse_pool(sdlf_plan *plan, int i)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    bool global = op->kind == SDLF_GLOBAL_AVG_POOL2D_FORWARD;
    if (!global && op->kind != SDLF_MAX_POOL2D_FORWARD && op->kind != SDLF_AVG_POOL2D_FORWARD) return SDLF_OK;
    quantized_origin from;
    quantized_target to = plan_quantized_target(plan, i);
    if (!plan_quantized_origin(plan, &op->in[0], plan->steps[i].calculator, &from)) return SDLF_OK;
    if (to.step < 0 && op->kind == SDLF_MAX_POOL2D_FORWARD) to = find_bytes(plan, i, &from);
    if (to.step < 0) return SDLF_OK;
    const int64_t *dim = op->in[0].shape.dim;
    if (global && (dim[2] > 1 << 15 || dim[3] > 1 << 15)) return SDLF_OK;
    sdlf_operation fused = {.kind = SDLF_QUANTIZED_POOL2D,
                            .in = {from.bytes},
                            .out = {to.y},
                            .quantized_pool2d = {.window = op->pool2d.window,
                                                 .average = op->kind != SDLF_MAX_POOL2D_FORWARD,
                                                 .count_padding = !global && op->pool2d.count_padding,
                                                 .scale = from.scale / to.scale,
                                                 .x_zero = from.zero,
                                                 .y_zero = to.zero,
                                                 .low = to.low,
                                                 .high = to.high}};
    if (global)
        fused.quantized_pool2d.window =
            (sdlf_window2d){.size = {(int)dim[2], (int)dim[3]}, .stride = {1, 1}, .dilation = {1, 1}};
    return plan_quantized_is_taken(plan, i, &fused) ? plan_quantized_replace(plan, i, &to, &fused) : SDLF_OK;
}

sdlf_status plan_fuse_qdq_integers(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.dtype != SDLF_FLOAT32) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = plan_fuse_qdq_product(plan, i);
        if (status == SDLF_OK && !plan->steps[i].dead) status = fuse_sum(plan, i);
        if (status == SDLF_OK && !plan->steps[i].dead) status = fuse_pool(plan, i);
    }
    return status;
}
