/* SPDX-License-Identifier: MIT */
/* Inference: the epilogue of an integer_matmul is computed with its accumulators:
 *
 *     sums, a copy to float32, times a scalar or one per column [plus a bias] [relu, clip] [quantize]
 *
 * as in dynamically quantised networks (MatMulInteger, Cast, Mul, Add), and QLinearMatMul. The fused operation takes
 * the place of the last of them, since the factor may be computed after the sums. */
#include "framework/plan/fuse/qdq_operands.h"

#include <math.h>

enum { MOST_STEPS = 6 };

typedef struct chain {
    sdlf_plan *plan;
    sdlf_operation fused;
    int step[MOST_STEPS], count; /* the steps to fuse, in order */
    int64_t columns;
    sdlf_activation activation;
} chain;

/* The only reader of the chain's result so far; NULL: none, or it is on another calculator. */
static const sdlf_operation *next_of(const chain *all, int *step)
{
    const sdlf_plan *plan = all->plan;
    int last = all->step[all->count - 1];
    const sdlf_tensor *y = &plan->steps[last].operation.out[0];
    int reader = plan_is_between(plan, y) ? plan_next_reader(plan, y->buffer, last) : -1;
    if (reader < 0 || all->count == MOST_STEPS || plan->steps[reader].calculator != plan->steps[last].calculator)
        return NULL;
    *step = reader;
    const sdlf_operation *op = &plan->steps[reader].operation;
    return sdlf_tensor_is_contiguous(&op->out[0]) && plan_covers_buffer(plan, &op->out[0]) ? op : NULL;
}

/* For an operand broadcast over all but the last axis: sets *line to its one value, or one per column. */
static bool of_columns(const chain *all, const sdlf_tensor *x, sdlf_tensor *line)
{
    int last = x->shape.rank - 1;
    if (x->dtype != SDLF_FLOAT32 || plan_count_writers(all->plan, x->buffer) > 1) return false;
    for (int i = 0; i < last; i++)
        if (x->shape.dim[i] > 1 && x->stride[i] != 0) return false;
    bool one = last < 0 || x->shape.dim[last] == 1 || x->stride[last] == 0;
    if (!one && (x->shape.dim[last] != all->columns || x->stride[last] != 1)) return false;
    *line = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(one ? 1 : all->columns), NULL);
    line->buffer = x->buffer, line->offset = x->offset;
    return true;
}

/* y = the chain's result op a per-column operand, or op a scalar. */
static bool with_columns(const chain *all, const sdlf_operation *op, sdlf_binary_function function, sdlf_tensor *line,
                         double *number)
{
    int before = all->plan->steps[all->step[all->count - 1]].operation.out[0].buffer;
    if (op->kind != SDLF_BINARY || op->binary.function != function) return false;
    bool second = sdlf_tensor_present(&op->in[0]) && op->in[0].buffer == before;
    const sdlf_tensor *mine = &op->in[second ? 0 : 1], *other = &op->in[second ? 1 : 0];
    if (!sdlf_tensor_present(mine) || mine->buffer != before || !sdlf_tensor_is_contiguous(mine) ||
        sdlf_tensor_count(mine) != sdlf_tensor_count(&op->out[0]))
        return false;
    *line = (sdlf_tensor){0};
    *number = op->binary.scalar;
    if (sdlf_tensor_present(other) && other->buffer == before) return false; /* a square */
    return sdlf_tensor_present(other) ? of_columns(all, other, line) : isfinite(*number);
}

static void take(chain *all, int step, const sdlf_operation *op)
{
    all->step[all->count++] = step;
    all->fused.out[0] = op->out[0];
}

static bool take_factor(chain *all)
{
    int step = -1;
    double number;
    const sdlf_operation *op = next_of(all, &step);
    if (op == NULL || op->kind != SDLF_COPY || op->out[0].dtype != SDLF_FLOAT32 ||
        !sdlf_tensor_is_contiguous(&op->in[0]))
        return false;
    take(all, step, op);
    op = next_of(all, &step);
    if (op == NULL || !with_columns(all, op, SDLF_BINARY_MULTIPLY, &all->fused.in[4], &number)) return false;
    all->fused.integer_matmul.scale = (float)number;
    take(all, step, op);
    return true;
}

static void take_bias(chain *all)
{
    int step = -1;
    double number;
    sdlf_tensor bias;
    const sdlf_operation *op = next_of(all, &step);
    if (op == NULL || !with_columns(all, op, SDLF_BINARY_ADD, &bias, &number) || !sdlf_tensor_present(&bias)) return;
    all->fused.in[5] = bias;
    take(all, step, op);
}

static void take_activation(chain *all)
{
    int step = -1;
    const sdlf_operation *op = next_of(all, &step);
    if (op == NULL || op->kind != SDLF_ACTIVATION_FORWARD) return;
    if (op->activation.function != SDLF_RELU && op->activation.function != SDLF_CLIP) return;
    all->activation = op->activation;
    take(all, step, op);
}

/* Takes a following quantize if its scale can go into the factor. */
static void take_rounding(chain *all, quantized_target *to)
{
    int last = all->step[all->count - 1];
    quantized_target found = plan_quantized_target(all->plan, last);
    bool plain = !sdlf_tensor_present(&all->fused.in[4]) && !sdlf_tensor_present(&all->fused.in[5]);
    if (found.step < 0 || all->count == MOST_STEPS || (found.scale != 1 && !plain)) return;
    *to = found;
    all->fused.integer_matmul.scale /= found.scale;
    take(all, found.step, &all->plan->steps[found.step].operation);
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    const sdlf_shape shape = op->out[0].shape;
    if (op->kind != SDLF_INTEGER_MATMUL || op->out[0].dtype != SDLF_INT32) return SDLF_OK;
    chain all = {.plan = plan, .fused = *op, .step = {i}, .count = 1, .columns = shape.dim[shape.rank - 1]};
    quantized_target to = {.scale = 1, .step = -1};
    if (!take_factor(&all)) return SDLF_OK;
    take_bias(&all);
    take_activation(&all);
    take_rounding(&all, &to);
    if (!plan_quantized_bound(&all.activation, &to)) return SDLF_OK;
    sdlf_integer_matmul_options *o = &all.fused.integer_matmul;
    o->low = to.low, o->high = to.high, o->y_zero = to.zero;
    all.fused.out[0] = sdlf_tensor_reshape(all.fused.out[0], shape);
    int last = all.step[all.count - 1];
    if (!plan_quantized_is_taken(plan, last, &all.fused)) return SDLF_OK;
    for (int j = 0; j < all.count - 1; j++) {
        plan->steps[all.step[j]].dead = true;
        plan_join_groups(plan, plan->steps[all.step[j]].node, plan->steps[last].node);
    }
    return plan_replace_operation(plan, last, &all.fused);
}

sdlf_status plan_fuse_integer_products(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.dtype != SDLF_FLOAT32) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++)
        if (!plan->steps[i].dead) status = fuse(plan, i);
    return status;
}
