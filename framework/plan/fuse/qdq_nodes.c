/* SPDX-License-Identifier: MIT */
/* Inference: fuses quantisation and dequantisation, as layers express them, into one operation each:
 *
 *     dequantize    a copy of bytes to float32 [- zero] [scale]
 *     quantize      [/ scale], round, [+ zero], a copy of float32 to bytes, which saturates
 *
 * A plain copy of bytes is unchanged: without a zero point and a scale there is nothing to save. */
#include "framework/plan/passes.h"

static bool is_byte(sdlf_dtype dtype)
{
    return dtype == SDLF_UINT8 || dtype == SDLF_INT8;
}

static bool is_whole(const sdlf_plan *plan, const sdlf_tensor *x)
{
    return sdlf_tensor_is_contiguous(x) && plan_covers_buffer(plan, x);
}

bool plan_is_between(const sdlf_plan *plan, const sdlf_tensor *x)
{
    return plan->buffers[x->buffer].kind == BUFFER_ARENA && is_whole(plan, x) &&
           plan_count_readers(plan, x->buffer) == 1 && plan_count_writers(plan, x->buffer) == 1;
}

/* Matches x op a scalar, and returns the scalar; for a commutative function it may come first. */
static bool with_number(const sdlf_operation *op, sdlf_binary_function function, double *number, sdlf_tensor *x)
{
    if (op->kind != SDLF_BINARY || op->binary.function != function) return false;
    bool first = sdlf_tensor_present(&op->in[0]), second = sdlf_tensor_present(&op->in[1]);
    bool symmetric = function == SDLF_BINARY_ADD || function == SDLF_BINARY_MULTIPLY;
    if (first == second || (second && !symmetric)) return false;
    *x = op->in[first ? 0 : 1];
    *number = op->binary.scalar;
    return sdlf_tensor_is_contiguous(x);
}

static bool is_zero_point(double zero)
{
    return zero >= -128 && zero <= 255 && zero == (int)zero;
}

static sdlf_status replace(sdlf_plan *plan, int kept, const int *gone, int count, const sdlf_operation *fused)
{
    const sdlf_calculator *calculator = plan->steps[kept].calculator;
    if (sdlf_operation_check(fused) != SDLF_OK || !sdlf_calculator_supports(calculator, fused)) return SDLF_OK;
    for (int i = 0; i < count; i++) {
        plan->steps[gone[i]].dead = true;
        plan_join_groups(plan, plan->steps[gone[i]].node, plan->steps[kept].node);
    }
    return plan_replace_operation(plan, kept, fused);
}

/* The only reader of step i's output, on the same calculator; -1: none. */
static int reader_of(const sdlf_plan *plan, int i)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    int reader = plan_is_between(plan, y) ? plan_next_reader(plan, y->buffer, i) : -1;
    return reader >= 0 && plan->steps[reader].calculator == plan->steps[i].calculator ? reader : -1;
}

static sdlf_status fuse_dequantize(sdlf_plan *plan, int i)
{
    const sdlf_operation *copy = &plan->steps[i].operation;
    const sdlf_tensor *x = &copy->in[0];
    if (copy->kind != SDLF_COPY || !is_byte(x->dtype) || copy->out[0].dtype != SDLF_FLOAT32 ||
        !sdlf_tensor_is_contiguous(x) || !is_whole(plan, &copy->out[0]))
        return SDLF_OK;
    double zero = 0, scale = 1, number;
    int gone[2], count = 0, last = i;
    sdlf_tensor operand;
    for (int next = reader_of(plan, i); next >= 0 && count < 2; next = reader_of(plan, last)) {
        const sdlf_operation *op = &plan->steps[next].operation;
        if (!is_whole(plan, &op->out[0])) break;
        bool subtracts = last == i && with_number(op, SDLF_BINARY_SUBTRACT, &number, &operand) && is_zero_point(number);
        if (subtracts) zero = number;
        if (!subtracts && !with_number(op, SDLF_BINARY_MULTIPLY, &scale, &operand)) break;
        gone[count++] = last;
        last = next;
        if (!subtracts) break;
    }
    if (count == 0) return SDLF_OK;
    sdlf_operation fused = {.kind = SDLF_DEQUANTIZE,
                            .in = {*x},
                            .out = {plan->steps[last].operation.out[0]},
                            .quantize = {.scale = (float)scale, .zero = (int)zero}};
    fused.out[0] = sdlf_tensor_reshape(fused.out[0], x->shape);
    return replace(plan, last, gone, count, &fused);
}

/* The step that produces x only for this operation, on the same calculator as step i; -1: none. */
static int writer_of(const sdlf_plan *plan, const sdlf_tensor *x, int i)
{
    int writer = plan_is_between(plan, x) ? plan_first_writer(plan, x->buffer) : -1;
    return writer >= 0 && plan->steps[writer].calculator == plan->steps[i].calculator ? writer : -1;
}

static sdlf_status fuse_quantize(sdlf_plan *plan, int i)
{
    const sdlf_operation *copy = &plan->steps[i].operation;
    const sdlf_tensor *y = &copy->out[0];
    if (copy->kind != SDLF_COPY || copy->in[0].dtype != SDLF_FLOAT32 || !is_byte(y->dtype) ||
        !sdlf_tensor_is_contiguous(y))
        return SDLF_OK;
    double zero = 0, scale = 1;
    int gone[3], count = 0, at = writer_of(plan, &copy->in[0], i);
    sdlf_tensor x;
    if (at >= 0 && with_number(&plan->steps[at].operation, SDLF_BINARY_ADD, &zero, &x)) {
        gone[count++] = at;
        at = is_zero_point(zero) ? writer_of(plan, &x, i) : -1;
    }
    if (at < 0) return SDLF_OK;
    const sdlf_operation *round = &plan->steps[at].operation;
    if (round->kind != SDLF_ACTIVATION_FORWARD || round->activation.function != SDLF_ROUND) return SDLF_OK;
    gone[count++] = at;
    x = round->in[0];
    at = writer_of(plan, &x, i);
    if (at >= 0 && with_number(&plan->steps[at].operation, SDLF_BINARY_DIVIDE, &scale, &x)) gone[count++] = at;
    bool is_signed = y->dtype == SDLF_INT8;
    sdlf_operation fused = {
        .kind = SDLF_QUANTIZE,
        .in = {sdlf_tensor_reshape(x, y->shape)},
        .out = {*y},
        .quantize = {
            .scale = (float)scale, .zero = (int)zero, .low = is_signed ? -128 : 0, .high = is_signed ? 127 : 255}};
    return replace(plan, i, gone, count, &fused);
}

sdlf_status plan_fuse_qdq_nodes(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.dtype != SDLF_FLOAT32) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse_dequantize(plan, i);
        if (status == SDLF_OK && !plan->steps[i].dead) status = fuse_quantize(plan, i);
    }
    return status;
}
