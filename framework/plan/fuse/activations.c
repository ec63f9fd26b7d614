/* SPDX-License-Identifier: MIT */
/* Inference: activations that other programs' files express as several operations become one, which the producer of x
 * may then absorb as an epilogue:
 *
 *     silu  x sigmoid(x)
 *     gelu  x (1 + erf(x / sqrt 2)) / 2, wherever the 1/2 is applied
 *
 * In training they stay separate: the gradients read the intermediate values. */
#include "framework/plan/passes.h"

#include <math.h>

/* True if both tensors cover the same elements in the same order. */
static bool is_same(const sdlf_tensor *a, const sdlf_tensor *b)
{
    if (a->buffer != b->buffer || a->offset != b->offset || !sdlf_shape_equal(a->shape, b->shape)) return false;
    for (int axis = 0; axis < a->shape.rank; axis++) {
        if (a->shape.dim[axis] > 1 && a->stride[axis] != b->stride[axis]) return false;
    }
    return true;
}

/* The only reader of step i's output, if it reads the output unchanged on the same calculator; else -1. */
static int only_reader(const sdlf_plan *plan, int i)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    if (plan->buffers[y->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, y) ||
        plan_count_readers(plan, y->buffer) != 1 || plan_count_writers(plan, y->buffer) != 1)
        return -1;
    int reader = plan_next_reader(plan, y->buffer, i);
    if (reader < 0 || plan->steps[reader].calculator != plan->steps[i].calculator) return -1;
    for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
        const sdlf_tensor *in = &plan->steps[reader].operation.in[j];
        if (sdlf_tensor_present(in) && in->buffer == y->buffer && !is_same(in, y)) return -1;
    }
    return reader;
}

static bool is_activation(const sdlf_plan *plan, int i, sdlf_activation_function function)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    return op->kind == SDLF_ACTIVATION_FORWARD && op->activation.function == function;
}

static bool is_binary(const sdlf_plan *plan, int i, sdlf_binary_function function)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    return op->kind == SDLF_BINARY && op->binary.function == function;
}

/* For an operation of a tensor and that scalar: the tensor; else NULL. Files round their scalars to float32. */
static const sdlf_tensor *operand_beside(const sdlf_plan *plan, int i, sdlf_binary_function function, double number)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    int scalar = sdlf_tensor_present(&op->in[0]) ? 1 : 0;
    if (!is_binary(plan, i, function) || sdlf_tensor_present(&op->in[scalar])) return NULL;
    if (scalar == 0 && function == SDLF_BINARY_DIVIDE) return NULL;
    return fabs(op->binary.scalar - number) <= 1e-7 * number ? &op->in[1 - scalar] : NULL;
}

static const sdlf_tensor *halved(const sdlf_plan *plan, int i)
{
    return operand_beside(plan, i, SDLF_BINARY_MULTIPLY, 0.5);
}

/* For a product of step i's output with another tensor: that tensor; else NULL. */
static const sdlf_tensor *other_factor(const sdlf_plan *plan, int product, int i)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0], *in = plan->steps[product].operation.in;
    if (!is_binary(plan, product, SDLF_BINARY_MULTIPLY)) return NULL;
    if (!sdlf_tensor_present(&in[0]) || !sdlf_tensor_present(&in[1])) return NULL;
    int other = in[0].buffer == y->buffer ? 1 : 0;
    return is_same(&in[1 - other], y) ? &in[other] : NULL;
}

/* Makes step `last` compute f(x) by itself and removes the others. */
static sdlf_status replace(sdlf_plan *plan, sdlf_activation_function function, const sdlf_tensor *x, const int *steps,
                           int count)
{
    plan_step *last = &plan->steps[steps[count - 1]];
    sdlf_operation one = {.kind = SDLF_ACTIVATION_FORWARD,
                          .in = {*x},
                          .out = {last->operation.out[0]},
                          .activation = {.function = function}};
    if (plan_writes_between(plan, &one, steps[0], steps[count - 1])) return SDLF_OK;
    if (sdlf_operation_check(&one) != SDLF_OK || !sdlf_calculator_supports(last->calculator, &one)) return SDLF_OK;
    for (int i = 0; i < count - 1; i++) {
        plan->steps[steps[i]].dead = true;
        plan_join_groups(plan, plan->steps[steps[i]].node, last->node);
    }
    return plan_replace_operation(plan, steps[count - 1], &one);
}

static sdlf_status fuse_silu(sdlf_plan *plan, int i)
{
    const sdlf_tensor x = plan->steps[i].operation.in[0];
    int product = only_reader(plan, i);
    const sdlf_tensor *other = product >= 0 ? other_factor(plan, product, i) : NULL;
    if (other == NULL || !is_same(other, &x)) return SDLF_OK;
    return replace(plan, SDLF_SILU, &x, (int[]){i, product}, 2);
}

/* The step before `i` that halves x for no reader but `i`; -1: none. */
static int find_halving(const sdlf_plan *plan, const sdlf_tensor *half, const sdlf_tensor *x, int i)
{
    for (int j = plan_next_reader(plan, x->buffer, -1); j >= 0 && j < i; j = plan_next_reader(plan, x->buffer, j)) {
        const sdlf_tensor *whole = halved(plan, j);
        if (whole != NULL && is_same(whole, x) && is_same(&plan->steps[j].operation.out[0], half))
            return only_reader(plan, j) == i ? j : -1;
    }
    return -1;
}

/* Step `i` computes x / sqrt 2. */
static sdlf_status fuse_gelu(sdlf_plan *plan, int i, sdlf_tensor x)
{
    enum { SCALED, ERF, SUM, FIRST, LAST, STEPS };
    int step[STEPS] = {i};
    for (int j = ERF; j <= FIRST; j++) {
        step[j] = only_reader(plan, step[j - 1]);
        if (step[j] < 0) return SDLF_OK;
    }
    if (!is_activation(plan, step[ERF], SDLF_ERF) || operand_beside(plan, step[SUM], SDLF_BINARY_ADD, 1) == NULL)
        return SDLF_OK;
    const sdlf_tensor *other = other_factor(plan, step[FIRST], step[SUM]);
    if (other != NULL && !is_same(other, &x)) { /* (1 + erf) (x / 2) */
        step[LAST] = step[FIRST];
        step[FIRST] = find_halving(plan, other, &x, step[LAST]);
        return step[FIRST] < 0 ? SDLF_OK : replace(plan, SDLF_GELU, &x, step, STEPS);
    }
    step[LAST] = only_reader(plan, step[FIRST]);
    if (step[LAST] < 0) return SDLF_OK;
    bool taken;
    if (other != NULL) { /* ((1 + erf) x) / 2 */
        taken = halved(plan, step[LAST]) != NULL;
    } else { /* ((1 + erf) / 2) x */
        other = other_factor(plan, step[LAST], step[FIRST]);
        taken = halved(plan, step[FIRST]) != NULL && other != NULL && is_same(other, &x);
    }
    return taken ? replace(plan, SDLF_GELU, &x, step, STEPS) : SDLF_OK;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    if (is_activation(plan, i, SDLF_SIGMOID)) return fuse_silu(plan, i);
    const sdlf_tensor *x = operand_beside(plan, i, SDLF_BINARY_DIVIDE, sqrt(2));
    if (x == NULL) x = operand_beside(plan, i, SDLF_BINARY_MULTIPLY, sqrt(0.5));
    return x != NULL ? fuse_gelu(plan, i, *x) : SDLF_OK;
}

sdlf_status plan_fuse_activations(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; plan->options.mode == SDLF_INFER && i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse(plan, i);
    }
    return status;
}
