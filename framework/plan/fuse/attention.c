/* SPDX-License-Identifier: MIT */
/* Inference: fuses attention that a file expresses as several operations into one, which stores no scores:
 *
 *     matmul of q and k^T, [times a scalar], [a mask added, or a scalar where it selects], softmax along the keys, matmul with v
 *
 * If q or k is multiplied by a scalar only for this product, the scalar is folded into the scale. Operands and the
 * result that are only copied with permuted axes are read and written in place. */
#include "framework/plan/passes.h"

#include <math.h>

enum { MOST_STEPS = 16 };

typedef struct chain {
    sdlf_plan *plan;
    sdlf_operation fused;
    double scale;
    int64_t samples, heads;
    int step[MOST_STEPS],
        count; /* the steps to fuse besides the last; on overflow count is MOST_STEPS, and the rest is missing */
} chain;

static void take(chain *c, int step)
{
    if (c->count < MOST_STEPS) c->step[c->count++] = step;
}

/* The only reader of step i's output, if it reads all of it on the same calculator; else -1. */
static int next_of(const sdlf_plan *plan, int i)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    if (!plan_is_between(plan, y) || !sdlf_tensor_is_contiguous(y)) return -1;
    int reader = plan_next_reader(plan, y->buffer, i);
    return reader >= 0 && plan->steps[reader].calculator == plan->steps[i].calculator ? reader : -1;
}

/* True if x is all of step i's output, in the same order. */
static bool is_output_of(const sdlf_plan *plan, int i, const sdlf_tensor *x)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    return sdlf_tensor_present(x) && x->buffer == y->buffer && sdlf_tensor_is_contiguous(x) &&
           sdlf_tensor_count(x) == sdlf_tensor_count(y);
}

/* For an operation of one tensor *x and a scalar: the factor by which it multiplies x; 0: another operation. */
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

/* Views (...,a,b) as (N,H,a,b); its leading axes may be merged to N H or include axes of 1. False if impossible. */
static bool as_heads(const chain *c, sdlf_tensor *x)
{
    const int64_t wanted[2] = {c->samples, c->heads};
    int last = x->shape.rank - 1, found = 0, axes[2];
    if (last < 1) return false;
    for (int axis = 0; axis < last - 1; axis++) {
        if (x->shape.dim[axis] == 1) continue;
        if (found == 2) return false;
        axes[found++] = axis;
    }
    int64_t stride[4] = {0, 0, x->stride[last - 1], x->stride[last]};
    if (found == 1 && x->shape.dim[axes[0]] == c->samples * c->heads) {
        stride[1] = x->stride[axes[0]], stride[0] = c->heads * stride[1];
    } else {
        int next = 0;
        for (int i = 0; i < 2 && next < found; i++)
            if (x->shape.dim[axes[next]] == wanted[i]) stride[i] = x->stride[axes[next++]];
        int64_t held = 1;
        for (int i = 0; i < found; i++) held *= x->shape.dim[axes[i]];
        if (next < found || held != c->samples * c->heads) return false;
    }
    x->shape = sdlf_shape(c->samples, c->heads, x->shape.dim[last - 1], x->shape.dim[last]);
    for (int axis = 0; axis < 4; axis++) x->stride[axis] = stride[axis];
    return true;
}

/* Traces an operand back through steps that only copy it for step `reader`, for example with permuted axes, or multiply
 * it by a scalar: finds the earliest source with contiguous rows along `axis`. False: there is none. */
static bool take_operand(chain *c, int reader, sdlf_tensor *x, int axis, bool takes_factor)
{
    const sdlf_plan *plan = c->plan;
    chain taken = *c;
    sdlf_tensor source = *x, found = {.dtype = SDLF_NONE};
    if (!as_heads(c, &source)) return false;
    for (int writer;; reader = writer) {
        if (source.stride[axis] == 1 || source.shape.dim[axis] == 1) found = source, taken = *c;
        writer = plan_first_writer(plan, source.buffer);
        if (writer < 0 || writer >= reader || next_of(plan, writer) != reader) break;
        const sdlf_operation *op = &plan->steps[writer].operation;
        const sdlf_tensor *from = &op->in[0];
        double factor = op->kind == SDLF_COPY ? 1 : takes_factor ? factor_of(op, &from) : 0;
        sdlf_tensor before = source;
        if (factor == 0 || from->dtype != source.dtype) break;
        if (op->kind == SDLF_COPY) {
            if (!sdlf_shape_equal(from->shape, op->out[0].shape) || !plan_view_source(from, &op->out[0], &before))
                break;
        } else {
            if (!sdlf_tensor_is_contiguous(from)) break;
            before.buffer = from->buffer;
            before.offset += from->offset;
        }
        c->scale *= factor;
        take(c, writer);
        source = before;
    }
    *c = taken, *x = found;
    return sdlf_tensor_present(&found);
}

/* Takes q and k from the product of step `i`. */
static bool take_product(chain *c, int i)
{
    const sdlf_operation *op = &c->plan->steps[i].operation;
    if (op->kind != SDLF_MATMUL || op->matmul.transpose_a || op->out[0].shape.rank > 4) return false;
    const sdlf_shape *scores = &op->out[0].shape;
    c->heads = scores->rank > 2 ? scores->dim[scores->rank - 3] : 1;
    c->samples = scores->rank > 3 ? scores->dim[0] : 1;
    bool transposed = op->matmul.transpose_b;
    sdlf_tensor q = op->in[0], k = op->in[1];
    if (!take_operand(c, i, &q, 3, true) || !take_operand(c, i, &k, transposed ? 3 : 2, true)) return false;
    c->fused.in[0] = q, c->fused.in[1] = transposed ? k : sdlf_tensor_transpose(k, 2, 3);
    take(c, i);
    return true;
}

/* The mask that a step adds to step i's output; NULL: it does something else. */
static const sdlf_tensor *added_mask(const sdlf_plan *plan, int i, const sdlf_operation *op)
{
    bool sum = op->kind == SDLF_BINARY && op->binary.function == SDLF_BINARY_ADD;
    if (!sum && (op->kind != SDLF_ADD || op->add.activation.function != SDLF_IDENTITY)) return NULL;
    int scores = is_output_of(plan, i, &op->in[0]) ? 0 : 1;
    return is_output_of(plan, i, &op->in[scores]) && sdlf_tensor_present(&op->in[1 - scores]) ? &op->in[1 - scores]
                                                                                              : NULL;
}

/* The condition by which a step replaces step i's output by a scalar; NULL: it does something else. */
static const sdlf_tensor *chosen_mask(chain *c, int i, const sdlf_operation *op)
{
    if (op->kind != SDLF_SELECT) return NULL;
    int scores = is_output_of(c->plan, i, &op->in[1]) ? 1 : 2;
    const sdlf_tensor *number = &op->in[3 - scores];
    if (!is_output_of(c->plan, i, &op->in[scores]) || !sdlf_tensor_present(number)) return NULL;
    for (int axis = 0; axis < number->shape.rank; axis++)
        if (number->shape.dim[axis] > 1 && number->stride[axis] != 0) return NULL;
    sdlf_tensor *unseen = &c->fused.in[4];
    *unseen = sdlf_tensor_view(number->dtype, sdlf_shape(1), NULL);
    unseen->buffer = number->buffer, unseen->offset = number->offset;
    c->fused.attention.mask_hides = scores == 2;
    return &op->in[0];
}

/* Takes the steps from the product `i` to the softmax along the keys. Returns the softmax, or -1. */
static int take_scores(chain *c, int i)
{
    const sdlf_plan *plan = c->plan;
    const sdlf_tensor *x;
    int next = next_of(plan, i);
    double factor = next >= 0 ? factor_of(&plan->steps[next].operation, &x) : 0;
    if (factor != 0 && is_output_of(plan, i, x)) {
        c->scale *= factor;
        take(c, i = next);
        next = next_of(plan, i);
    }
    const sdlf_tensor *mask = next >= 0 ? added_mask(plan, i, &plan->steps[next].operation) : NULL;
    if (mask == NULL && next >= 0) mask = chosen_mask(c, i, &plan->steps[next].operation);
    if (mask != NULL) {
        c->fused.in[3] = *mask;
        if (!as_heads(c, &c->fused.in[3])) return -1;
        take(c, i = next);
        next = next_of(plan, i);
    }
    if (next < 0 || !is_output_of(plan, i, &plan->steps[next].operation.in[0])) return -1;
    const sdlf_operation *op = &plan->steps[next].operation;
    int last = op->in[0].shape.rank - 1;
    bool along_keys = op->kind == SDLF_SOFTMAX_FORWARD && op->softmax.axis == last &&
                      op->in[0].shape.dim[last] == c->fused.in[1].shape.dim[2];
    return along_keys ? next : -1;
}

/* Takes the product with v after the softmax; -1: none. */
static int take_values(chain *c, int softmax)
{
    const sdlf_plan *plan = c->plan;
    int last = next_of(plan, softmax);
    const sdlf_operation *op = last >= 0 ? &plan->steps[last].operation : NULL;
    if (op == NULL || op->kind != SDLF_MATMUL || op->matmul.transpose_a || op->matmul.transpose_b) return -1;
    sdlf_tensor p = op->in[0], v = op->in[1];
    if (!is_output_of(plan, softmax, &p) || !as_heads(c, &p) || p.shape.dim[3] != c->fused.in[1].shape.dim[2])
        return -1;
    take(c, softmax);
    c->fused.out[0] = op->out[0];
    if (!as_heads(c, &c->fused.out[0]) || !take_operand(c, last, &v, 3, false)) return -1;
    c->fused.in[2] = v;
    return last;
}

/* If the only reader of step last's result is a permuting copy, redirects the result to its destination. Returns the copy, or `last`. */
static int take_copy(chain *c, int last)
{
    const sdlf_plan *plan = c->plan;
    int next = next_of(plan, last);
    const sdlf_operation *copy = next >= 0 ? &plan->steps[next].operation : NULL;
    sdlf_tensor *y = &c->fused.out[0], placed = *y;
    if (copy == NULL || copy->kind != SDLF_COPY || copy->out[0].dtype != y->dtype ||
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
    if (placed.shape.dim[3] > 1 && placed.stride[3] != 1) return last;
    take(c, last);
    *y = placed;
    return next;
}

/* True if every operand still holds at the last step what was read before: none is produced by a removed step, or written twice. */
static bool keeps_operands(const chain *c)
{
    for (int i = 0; i < 5; i++) {
        if (!sdlf_tensor_present(&c->fused.in[i])) continue;
        int buffer = c->fused.in[i].buffer, writer = plan_first_writer(c->plan, buffer);
        if (plan_count_writers(c->plan, buffer) > 1) return false;
        for (int s = 0; s < c->count; s++)
            if (c->step[s] == writer) return false;
    }
    return c->count < MOST_STEPS;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    chain c = {.plan = plan, .fused = {.kind = SDLF_ATTENTION_FORWARD}, .scale = 1};
    if (!take_product(&c, i)) return SDLF_OK;
    int softmax = take_scores(&c, i), last = softmax >= 0 ? take_values(&c, softmax) : -1;
    if (last < 0) return SDLF_OK;
    last = take_copy(&c, last);
    c.fused.attention.scale = c.scale;
    if (!keeps_operands(&c) || sdlf_operation_check(&c.fused) != SDLF_OK ||
        !sdlf_calculator_supports(plan->steps[last].calculator, &c.fused))
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
