/* SPDX-License-Identifier: MIT */
/* Inference: attention that a file has as several operations is one, which stores no scores:
 *
 *     matmul of q and k^T, [times a number], [a mask added], softmax along the keys, matmul with v
 *
 * Numbers that q or k alone are multiplied by join the scale, and operands that are only copied, with their axes in another order, are read
 * and written where they lie. */
#include "framework/plan/passes.h"

#include <math.h>

enum { MOST_STEPS = 12 };

typedef struct chain {
    sdlf_plan *plan;
    sdlf_operation fused;
    double scale;
    int step[MOST_STEPS], count; /* those that it takes, beside the last */
} chain;

/* The only step that reads what step `i` makes, all of it; -1: there is none, or it is on another calculator. */
static int next_of(const sdlf_plan *plan, int i)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    if (!plan_is_between(plan, y) || !plan_covers_buffer(plan, y) || !sdlf_tensor_is_contiguous(y)) return -1;
    int reader = plan_next_reader(plan, y->buffer, i);
    return reader >= 0 && plan->steps[reader].calculator == plan->steps[i].calculator ? reader : -1;
}

/* Is x all that step `i` makes, row by row? */
static bool is_output_of(const sdlf_plan *plan, int i, const sdlf_tensor *x)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    return sdlf_tensor_present(x) && x->buffer == y->buffer && sdlf_tensor_is_contiguous(x) &&
           sdlf_tensor_count(x) == sdlf_tensor_count(y);
}

/* With one operand x and a number: the factor that x is multiplied by; 0: it is something else. */
static double factor_of(const sdlf_operation *op, const sdlf_tensor **x)
{
    if (op->kind != SDLF_BINARY) return 0;
    bool first = sdlf_tensor_present(&op->in[0]), divides = op->binary.function == SDLF_BINARY_DIVIDE;
    *x = &op->in[first ? 0 : 1];
    if (sdlf_tensor_present(&op->in[first ? 1 : 0]) || (divides && !first)) return 0;
    if (!divides && op->binary.function != SDLF_BINARY_MULTIPLY) return 0;
    double factor = divides ? 1 / op->binary.scalar : op->binary.scalar;
    return isfinite(factor) ? factor : 0;
}

/* (...,a,b) as (N,H,a,b); false: it has more axes. */
static bool as_heads(sdlf_tensor *x)
{
    int added = 4 - x->shape.rank;
    if (added < 0) return false;
    for (int axis = 3; axis >= 0; axis--) {
        x->shape.dim[axis] = axis < added ? 1 : x->shape.dim[axis - added];
        x->stride[axis] = axis < added ? 0 : x->stride[axis - added];
    }
    x->shape.rank = 4;
    return true;
}

/* An operand as it was before steps that only copy it for step `reader`, with its axes in another order, say, or multiply it by a number:
 * the earliest whose rows, along `axis`, have no gaps. False: there is none. */
static bool take_operand(chain *c, int reader, sdlf_tensor *x, int axis, bool takes_factor)
{
    const sdlf_plan *plan = c->plan;
    chain taken = *c;
    sdlf_tensor source = *x, found = {.dtype = SDLF_NONE};
    for (int writer = reader;; reader = writer) {
        if (source.stride[axis] == 1 || source.shape.dim[axis] == 1) found = source, taken = *c;
        writer = plan_first_writer(plan, source.buffer);
        if (writer < 0 || writer >= reader || next_of(plan, writer) != reader || !is_output_of(plan, writer, &source))
            break;
        const sdlf_operation *op = &plan->steps[writer].operation;
        const sdlf_tensor *from = &op->in[0];
        double factor = op->kind == SDLF_COPY ? 1 : takes_factor ? factor_of(op, &from) : 0;
        sdlf_tensor before = *from;
        if (factor == 0 || c->count == MOST_STEPS || before.dtype != source.dtype || !as_heads(&before) ||
            !sdlf_shape_equal(before.shape, source.shape))
            break;
        c->scale *= factor;
        c->step[c->count++] = writer;
        source = before;
    }
    *c = taken, *x = found;
    return sdlf_tensor_present(&found);
}

/* q and k of the product of step `i`. */
static bool take_product(chain *c, int i)
{
    const sdlf_operation *op = &c->plan->steps[i].operation;
    if (op->kind != SDLF_MATMUL || op->matmul.transpose_a) return false;
    sdlf_tensor q = op->in[0], k = op->in[1];
    if (!as_heads(&q) || !as_heads(&k)) return false;
    if (!take_operand(c, i, &q, 3, true) || !take_operand(c, i, &k, op->matmul.transpose_b ? 3 : 2, true)) return false;
    c->fused.in[0] = q, c->fused.in[1] = op->matmul.transpose_b ? k : sdlf_tensor_transpose(k, 2, 3);
    return true;
}

/* The steps from the scores to the softmax; the softmax, or -1. */
static int take_scores(chain *c, int i)
{
    const sdlf_plan *plan = c->plan;
    const sdlf_tensor *x;
    c->step[c->count++] = i;
    int next = next_of(plan, i);
    double factor = next >= 0 ? factor_of(&plan->steps[next].operation, &x) : 0;
    if (factor != 0 && is_output_of(plan, i, x)) {
        c->scale *= factor;
        c->step[c->count++] = i = next;
        next = next_of(plan, i);
    }
    const sdlf_operation *op = next >= 0 ? &plan->steps[next].operation : NULL;
    if (op != NULL && op->kind == SDLF_BINARY && op->binary.function == SDLF_BINARY_ADD) {
        int scores = is_output_of(plan, i, &op->in[0]) ? 0 : 1;
        if (!is_output_of(plan, i, &op->in[scores]) || !sdlf_tensor_present(&op->in[1 - scores])) return -1;
        c->fused.in[3] = op->in[1 - scores];
        if (!as_heads(&c->fused.in[3])) return -1;
        c->step[c->count++] = i = next;
        next = next_of(plan, i);
    }
    if (next < 0 || !is_output_of(plan, i, &plan->steps[next].operation.in[0])) return -1;
    op = &plan->steps[next].operation;
    return op->kind == SDLF_SOFTMAX_FORWARD && op->softmax.axis == op->in[0].shape.rank - 1 ? next : -1;
}

/* The product with v behind the softmax; -1: none. */
static int take_values(chain *c, int softmax)
{
    const sdlf_plan *plan = c->plan;
    int last = next_of(plan, softmax);
    const sdlf_operation *op = last >= 0 ? &plan->steps[last].operation : NULL;
    if (op == NULL || op->kind != SDLF_MATMUL || op->matmul.transpose_a || op->matmul.transpose_b ||
        !is_output_of(plan, softmax, &op->in[0]) || op->in[1].buffer == plan->steps[softmax].operation.out[0].buffer)
        return -1;
    c->step[c->count++] = softmax;
    sdlf_tensor v = op->in[1];
    c->fused.out[0] = op->out[0];
    if (!as_heads(&v) || !as_heads(&c->fused.out[0]) || !take_operand(c, last, &v, 3, false)) return -1;
    c->fused.in[2] = v;
    return last;
}

/* Where only a copy reads the result of step `last`, with its axes in another order: where that copies it to. The copy, or `last`. */
static int take_copy(chain *c, int last)
{
    const sdlf_plan *plan = c->plan;
    int next = next_of(plan, last);
    const sdlf_operation *copy = next >= 0 ? &plan->steps[next].operation : NULL;
    sdlf_tensor *y = &c->fused.out[0], placed = *y;
    if (copy == NULL || copy->kind != SDLF_COPY || copy->out[0].dtype != y->dtype || c->count == MOST_STEPS ||
        sdlf_tensor_count(&copy->in[0]) != sdlf_tensor_count(y))
        return last;
    for (int axis = 0; axis < 4; axis++) {
        int found = -1;
        for (int i = 0; i < copy->in[0].shape.rank; i++)
            if (copy->in[0].shape.dim[i] == y->shape.dim[axis] && copy->in[0].stride[i] == y->stride[axis]) found = i;
        if (found < 0 && y->shape.dim[axis] > 1) return last;
        placed.stride[axis] = found < 0 ? 0 : copy->out[0].stride[found];
    }
    placed.buffer = copy->out[0].buffer, placed.offset = copy->out[0].offset;
    c->step[c->count++] = last;
    *y = placed;
    return next;
}

/* Does an operand hold the same at step `last` as where it was read? */
static bool keeps_operands(const chain *c)
{
    for (int i = 0; i < 4; i++)
        if (sdlf_tensor_present(&c->fused.in[i]) && plan_count_writers(c->plan, c->fused.in[i].buffer) > 1)
            return false;
    return true;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    chain c = {.plan = plan, .fused = {.kind = SDLF_ATTENTION_FORWARD}, .scale = 1};
    if (!take_product(&c, i)) return SDLF_OK;
    int softmax = take_scores(&c, i), last = softmax >= 0 ? take_values(&c, softmax) : -1;
    if (last < 0 || !keeps_operands(&c)) return SDLF_OK;
    last = take_copy(&c, last);
    c.fused.attention.scale = (float)c.scale;
    if (sdlf_operation_check(&c.fused) != SDLF_OK || !sdlf_calculator_supports(plan->steps[last].calculator, &c.fused))
        return SDLF_OK;
    for (int s = 0; s < c.count; s++) {
        plan->steps[c.step[s]].dead = true;
        plan_join_groups(plan, plan->steps[c.step[s]].node, plan->steps[last].node);
    }
    return plan_replace_operation(plan, last, &c.fused);
}

sdlf_status plan_fuse_attention(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.state_count > 0) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++)
        if (!plan->steps[i].dead) status = fuse(plan, i);
    return status;
}
