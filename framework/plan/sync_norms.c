/* SPDX-License-Identifier: MIT */
/* Batch normalisation over the batch of all ranks. A pass after lowering, before any fusion: each batch_norm2d_forward
 * and _backward of training is replaced by operations that every calculator has, with sums over all ranks between them;
 * layers and kernels are unaware of it.
 *
 *   forward    mean = all(sum x / n);  variance = all(sum (x - mean)^2 / n);  y = batch_norm2d_infer of these
 *   backward   dweight, dbias: this rank's, which are added as other gradients are;
 *              a = all(dbias / n);  b = all(dweight / n);  dx = weight / std (dy - a - xhat b)
 *
 * n is the number of elements of a channel over all ranks, all(..) the sum over ranks. Forward uses two all-reduces,
 * where one of x and x^2 would do: with a mean far from 0, the cancellation would cost more than a message does. */
#include "framework/plan/passes.h"

#include <stdlib.h>

typedef struct norm {
    sdlf_plan *plan;
    const plan_step *step; /* the original step */
    sdlf_shape rows;       /* x as (N,C,HW) */
    double share;          /* weight of one element in a mean over all ranks; 0: this rank has no samples */
    double count;          /* elements of a channel, over all ranks */
    sdlf_status status;    /* of all so far: nothing is emitted after a failure */
} norm;

static const sdlf_tensor none = {.dtype = SDLF_NONE};

static void emit(norm *n, const sdlf_operation *operation)
{
    const plan_step *step = n->step;
    if (n->status == SDLF_OK) n->status = plan_emit(n->plan, step->node, step->phase, step->calculator, operation);
}

static sdlf_tensor new_buffer(norm *n, sdlf_shape shape)
{
    sdlf_tensor made = none;
    sdlf_dtype dtype = n->step->operation.in[0].dtype;
    if (n->status == SDLF_OK) n->status = plan_new_tensor(n->plan, BUFFER_ARENA, dtype, shape, &made);
    return made;
}

/* y = a op b, or a op scalar if b is absent; if y is absent, into a new tensor of a's shape. */
static sdlf_tensor binary(norm *n, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b, double scalar,
                          sdlf_tensor y)
{
    if (!sdlf_tensor_present(&y)) y = new_buffer(n, a.shape);
    emit(n, &(sdlf_operation){
                .kind = SDLF_BINARY, .in = {a, b}, .out = {y}, .binary = {.function = function, .scalar = scalar}});
    return y;
}

/* One value per channel, broadcast to the shape of x's rows. */
static sdlf_tensor over_rows(const norm *n, sdlf_tensor channels)
{
    return sdlf_tensor_broadcast(sdlf_tensor_reshape(channels, sdlf_shape(n->rows.dim[1], 1)), n->rows);
}

static sdlf_tensor reduce(norm *n, sdlf_reduction function, sdlf_tensor x, int axis)
{
    sdlf_tensor y = new_buffer(n, sdlf_shape_without(x.shape, axis));
    emit(n,
         &(sdlf_operation){.kind = SDLF_REDUCE, .in = {x}, .out = {y}, .reduce = {.function = function, .axis = axis}});
    return y;
}

static void sum_over_ranks(norm *n, sdlf_tensor part)
{
    const plan_sum sum = {.buffer = part.buffer,
                          .calculator = n->step->calculator,
                          .serves = n->step->phase,
                          .node = n->step->node,
                          .number = n->plan->bucket_count++,
                          .what = "statistics"};
    if (n->status == SDLF_OK) n->status = plan_append_sum(n->plan, &sum, false);
    if (n->status == SDLF_OK) n->status = plan_append_sum(n->plan, &sum, true);
}

/* The mean of rows, or of their squares, over all ranks, written to `mean` (C). */
static sdlf_tensor mean_of(norm *n, sdlf_reduction function, sdlf_tensor rows, sdlf_tensor mean)
{
    sdlf_tensor each = reduce(n, function, rows, 2), sum = reduce(n, SDLF_REDUCE_SUM, each, 0);
    mean = binary(n, SDLF_BINARY_MULTIPLY, sum, none, n->share, mean);
    sum_over_ranks(n, mean);
    return mean;
}

/* running += momentum (now - running) */
static void run_on(norm *n, sdlf_tensor running, sdlf_tensor now, double factor)
{
    double momentum = (double)n->step->operation.batch_norm.momentum;
    sdlf_tensor kept = binary(n, SDLF_BINARY_MULTIPLY, running, none, 1 - momentum, none);
    sdlf_tensor added = binary(n, SDLF_BINARY_MULTIPLY, now, none, momentum * factor, none);
    binary(n, SDLF_BINARY_ADD, kept, added, 0, running);
}

static void forward(norm *n)
{
    const sdlf_operation *op = &n->step->operation;
    sdlf_tensor x = sdlf_tensor_reshape(op->in[0], n->rows), inverse = op->out[2];
    sdlf_tensor mean = mean_of(n, SDLF_REDUCE_SUM, x, op->out[1]);
    sdlf_tensor off = binary(n, SDLF_BINARY_SUBTRACT, x, over_rows(n, mean), 0, none);
    sdlf_tensor variance = mean_of(n, SDLF_REDUCE_SUM_SQUARES, off, none);
    run_on(n, op->out[3], mean, 1);
    run_on(n, op->out[4], variance, n->count > 1 ? n->count / (n->count - 1) : 1);
    sdlf_tensor above = binary(n, SDLF_BINARY_ADD, variance, none, (double)op->batch_norm.epsilon, none);
    sdlf_tensor root = new_buffer(n, above.shape), one = new_buffer(n, above.shape);
    emit(n, &(sdlf_operation){
                .kind = SDLF_ACTIVATION_FORWARD, .in = {above}, .out = {root}, .activation = {.function = SDLF_SQRT}});
    emit(n, &(sdlf_operation){.kind = SDLF_FILL, .out = {one}, .fill = {.value = 1}});
    binary(n, SDLF_BINARY_DIVIDE, one, root, 0, inverse);
    emit(n, &(sdlf_operation){.kind = SDLF_BATCH_NORM2D_INFER,
                              .in = {op->in[0], op->in[1], op->in[2], mean, variance},
                              .out = {op->out[0]},
                              .batch_norm = {.epsilon = op->batch_norm.epsilon}});
}

static void backward(norm *n)
{
    const sdlf_operation *op = &n->step->operation;
    sdlf_operation local = *op;
    local.out[0] = none;
    emit(n, &local);
    if (!sdlf_tensor_present(&op->out[0])) return;
    sdlf_tensor inverse = op->in[3], channels = inverse, dy = sdlf_tensor_reshape(op->in[4], n->rows);
    sdlf_tensor both = new_buffer(n, sdlf_shape(2, channels.shape.dim[0]));
    sdlf_tensor a = sdlf_tensor_reshape(sdlf_tensor_narrow(both, 0, 0, 1), channels.shape);
    sdlf_tensor b = sdlf_tensor_reshape(sdlf_tensor_narrow(both, 0, 1, 1), channels.shape);
    binary(n, SDLF_BINARY_MULTIPLY, op->out[2], none, 1 / n->count, a);
    binary(n, SDLF_BINARY_MULTIPLY, op->out[1], none, 1 / n->count, b);
    sum_over_ranks(n, both);
    if (n->share == 0) { /* a rank without samples does not contribute to the means either */
        emit(n, &(sdlf_operation){.kind = SDLF_FILL, .out = {op->out[0]}});
        return;
    }
    sdlf_tensor slope = binary(n, SDLF_BINARY_MULTIPLY, b, inverse, 0, none);
    sdlf_tensor one = new_buffer(n, channels.shape);
    emit(n, &(sdlf_operation){.kind = SDLF_FILL, .out = {one}, .fill = {.value = 1}});
    sdlf_tensor part = new_buffer(n, op->in[0].shape); /* a + xhat b */
    emit(n, &(sdlf_operation){
                .kind = SDLF_BATCH_NORM2D_INFER, .in = {op->in[0], slope, a, op->in[2], one}, .out = {part}});
    sdlf_tensor rest = binary(n, SDLF_BINARY_SUBTRACT, dy, sdlf_tensor_reshape(part, n->rows), 0, none);
    sdlf_tensor factor = binary(n, SDLF_BINARY_MULTIPLY, op->in[1], inverse, 0, none);
    binary(n, SDLF_BINARY_MULTIPLY, rest, over_rows(n, factor), 0, sdlf_tensor_reshape(op->out[0], n->rows));
}

/* Appends the original step, or its replacement. */
static sdlf_status append(sdlf_plan *plan, const plan_step *step)
{
    sdlf_operation_kind kind = step->operation.kind;
    if (kind != SDLF_BATCH_NORM2D_FORWARD && kind != SDLF_BATCH_NORM2D_BACKWARD) return plan_append_step(plan, step);
    const sdlf_plan_options *options = &plan->options;
    sdlf_shape shape = step->operation.in[0].shape;
    int64_t area = sdlf_shape_span(shape, 2, shape.rank);
    norm n = {.plan = plan,
              .step = step,
              .rows = sdlf_shape(shape.dim[0], shape.dim[1], area),
              .count = (double)options->samples_of_all * (double)area};
    n.share = options->samples_that_count > 0 ? 1 / n.count : 0;
    if (kind == SDLF_BATCH_NORM2D_FORWARD)
        forward(&n);
    else
        backward(&n);
    return n.status;
}

sdlf_status plan_sync_norms(sdlf_plan *plan)
{
    if (plan->options.communicator == NULL || plan->options.mode != SDLF_TRAIN || !plan->options.sync_batch_norm)
        return SDLF_OK;
    plan_step *old = plan->steps;
    int count = plan->step_count, first_backward = plan->forward_steps;
    plan->steps = NULL;
    plan->step_count = plan->step_capacity = 0;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        if (i == first_backward) plan->forward_steps = plan->step_count;
        status = append(plan, &old[i]);
    }
    if (first_backward == count) plan->forward_steps = plan->step_count;
    free(old); /* steps own nothing yet */
    return status;
}
