/* SPDX-License-Identifier: MIT */
/* conv2d with its ReLU, and the max_pool2d behind it, as one operation where both lie channels last: what the
 * convolution makes is never stored. Inference only, after layouts were chosen; row-major ones were fused before, in
 * conv_pool.c. Where only a copy reads the result, and makes it row-major, that is what is made.
 *
 *   conv2d_forward x,w,b -> r;  max_pool2d_forward r -> y;  copy y -> row-major */
#include "framework/plan/passes.h"

/* The pooling behind convolution `i`, where it is the only reader; -1: none. */
static int pooling_behind(const sdlf_plan *plan, int i)
{
    const sdlf_operation *conv = &plan->steps[i].operation;
    const sdlf_tensor *r = &conv->out[0];
    if (conv->kind != SDLF_CONV2D_FORWARD || conv->conv2d.activation.function != SDLF_RELU || conv->algorithm != 0)
        return -1;
    if (sdlf_tensor_present(&conv->in[3]) || !sdlf_operation_is_channels_last(conv)) return -1;
    if (plan->buffers[r->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, r)) return -1;
    if (plan_count_writers(plan, r->buffer) != 1 || plan_count_readers(plan, r->buffer) != 1) return -1;
    int pool = plan_next_reader(plan, r->buffer, i);
    if (pool < 0 || plan->steps[pool].calculator != plan->steps[i].calculator) return -1;
    const sdlf_operation *pooling = &plan->steps[pool].operation;
    bool same = pooling->kind == SDLF_MAX_POOL2D_FORWARD && sdlf_operation_is_channels_last(pooling) &&
                sdlf_shape_equal(pooling->in[0].shape, r->shape);
    return same ? pool : -1;
}

/* The copy behind step `pool` that makes its result row-major, where it is the only reader; -1: none. */
static int copy_behind(const sdlf_plan *plan, int pool)
{
    const sdlf_tensor *y = &plan->steps[pool].operation.out[0];
    if (plan->buffers[y->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, y)) return -1;
    if (plan_count_writers(plan, y->buffer) != 1 || plan_count_readers(plan, y->buffer) != 1) return -1;
    int copy = plan_next_reader(plan, y->buffer, pool);
    if (copy < 0 || plan->steps[copy].calculator != plan->steps[pool].calculator) return -1;
    const sdlf_operation *op = &plan->steps[copy].operation;
    bool to_nhwc = op->kind == SDLF_COPY && op->in[0].dtype == op->out[0].dtype &&
                   sdlf_shape_equal(op->in[0].shape, y->shape) && sdlf_tensor_is_channels_last(&op->in[0]) &&
                   sdlf_tensor_is_contiguous(&op->out[0]);
    return to_nhwc ? copy : -1;
}

/* May the step be this operation? */
static bool suits(const sdlf_plan *plan, int i, const sdlf_operation *op)
{
    return sdlf_operation_check(op) == SDLF_OK && sdlf_calculator_supports(plan->steps[i].calculator, op);
}

static sdlf_status fuse(sdlf_plan *plan, int i, int pool)
{
    const sdlf_operation *conv = &plan->steps[i].operation, *pooling = &plan->steps[pool].operation;
    sdlf_operation fused = {
        .kind = SDLF_CONV2D_RELU_MAX_POOL_FORWARD,
        .in = {conv->in[0], conv->in[1], conv->in[2]},
        .out = {pooling->out[0]},
        .conv2d_pool = {.window = conv->conv2d.window,
                        .groups = conv->conv2d.groups,
                        .pool = pooling->pool2d.window,
                        .ties = pooling->pool2d.ties},
    };
    if (!suits(plan, i, &fused)) return SDLF_OK;
    int copy = copy_behind(plan, pool);
    sdlf_operation ending = fused;
    if (copy >= 0) ending.out[0] = plan->steps[copy].operation.out[0];
    if (copy >= 0 && suits(plan, i, &ending)) {
        plan->steps[copy].dead = true;
        fused = ending;
    }
    plan_join_groups(plan, plan->steps[i].node, plan->steps[pool].node);
    plan->steps[pool].dead = true;
    plan->steps[i].cost = sdlf_operation_cost(&fused);
    return plan_replace_operation(plan, i, &fused);
}

sdlf_status plan_fuse_conv_pool_nhwc(sdlf_plan *plan)
{
    if (plan->options.mode != SDLF_INFER || plan->options.no_fusion || plan->options.keep_activations) return SDLF_OK;
    sdlf_status status = plan_find_uses(plan);
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        int pool = pooling_behind(plan, i);
        if (pool >= 0) status = fuse(plan, i, pool);
    }
    plan_remove_dead_steps(plan);
    plan_uses_release(&plan->uses);
    plan_settle_groups(plan);
    return status;
}
