/* SPDX-License-Identifier: MIT */
/* conv2d, ReLU and max_pool2d as one operation. Forward, the convolution's output is never stored: a byte a pooled
 * element (which window positions hold a positive maximum) replaces it. Backward, pooling, ReLU and convolution are one
 * kernel that visits only those positions.
 *
 *   forward   conv2d_forward x,w,b -> a;  activation_forward a -> r;  max_pool2d_forward r -> y
 *   backward  max_pool2d_backward r,y,dy -> dr;  activation_backward r,dr -> da;
 *             conv2d_backward_weights x,da -> dw,db;  conv2d_backward_input da,w -> dx (if wanted) */
#include "framework/plan/passes.h"

typedef struct chain {
    int conv, relu, pool;                               /* steps; always there */
    int pool_back, relu_back, weights_back, input_back; /* -1: none */
} chain;

static bool is_kind(const sdlf_plan *plan, int step, sdlf_operation_kind kind)
{
    return step >= 0 && plan->steps[step].operation.kind == kind;
}

static bool is_temporary(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return plan->buffers[tensor->buffer].kind == BUFFER_ARENA && plan_covers_buffer(plan, tensor) &&
           plan_count_writers(plan, tensor->buffer) == 1;
}

static bool match_forward(const sdlf_plan *plan, int i, chain *found)
{
    const sdlf_operation *conv = &plan->steps[i].operation;
    if (conv->kind != SDLF_CONV2D_FORWARD || conv->conv2d.activation.function != SDLF_IDENTITY) return false;
    if (sdlf_tensor_present(&conv->in[3]) || !is_temporary(plan, &conv->out[0])) return false;
    if (plan_count_readers(plan, conv->out[0].buffer) != 1) return false;
    int relu = plan_next_reader(plan, conv->out[0].buffer, i);
    if (!is_kind(plan, relu, SDLF_ACTIVATION_FORWARD)) return false;
    const sdlf_operation *activation = &plan->steps[relu].operation;
    if (activation->activation.function != SDLF_RELU || !is_temporary(plan, &activation->out[0])) return false;
    int pool = plan_next_reader(plan, activation->out[0].buffer, relu);
    if (!is_kind(plan, pool, SDLF_MAX_POOL2D_FORWARD)) return false;
    const sdlf_tensor *pooled = &plan->steps[pool].operation.in[0];
    if (!sdlf_shape_equal(pooled->shape, conv->out[0].shape)) return false; /* reshaped in between */
    *found = (chain){i, relu, pool, -1, -1, -1, -1};
    sdlf_calculator *calculator = plan->steps[i].calculator;
    return plan->steps[relu].calculator == calculator && plan->steps[pool].calculator == calculator;
}

/* The backward half. False: there is one, and it has another form. */
static bool match_backward(const sdlf_plan *plan, chain *found)
{
    int r = plan->steps[found->relu].operation.out[0].buffer;
    int readers = plan_count_readers(plan, r);
    if (readers == 1) return true; /* inference: only the pooling reads it */
    int pool = plan_next_reader(plan, r, found->pool);
    int relu = plan_next_reader(plan, r, pool);
    if (readers != 3 || !is_kind(plan, pool, SDLF_MAX_POOL2D_BACKWARD) ||
        !is_kind(plan, relu, SDLF_ACTIVATION_BACKWARD))
        return false;
    const sdlf_tensor *dr = &plan->steps[pool].operation.out[0];
    const sdlf_tensor *da = &plan->steps[relu].operation.out[0];
    if (!is_temporary(plan, dr) || !is_temporary(plan, da)) return false;
    if (plan_count_readers(plan, dr->buffer) != 1 || plan_next_reader(plan, dr->buffer, pool) != relu) return false;
    found->pool_back = pool;
    found->relu_back = relu;
    int users = plan_count_readers(plan, da->buffer);
    for (int i = plan_next_reader(plan, da->buffer, relu); i >= 0; i = plan_next_reader(plan, da->buffer, i)) {
        if (is_kind(plan, i, SDLF_CONV2D_BACKWARD_WEIGHTS)) found->weights_back = i;
        if (is_kind(plan, i, SDLF_CONV2D_BACKWARD_INPUT)) found->input_back = i;
    }
    sdlf_calculator *calculator = plan->steps[pool].calculator;
    if (plan->steps[relu].calculator != calculator) return false;
    return users == (found->weights_back >= 0) + (found->input_back >= 0) && users > 0;
}

static sdlf_operation make_forward(const sdlf_plan *plan, const chain *found)
{
    const sdlf_operation *conv = &plan->steps[found->conv].operation;
    const sdlf_operation *pool = &plan->steps[found->pool].operation;
    return (sdlf_operation){
        .kind = SDLF_CONV2D_RELU_MAX_POOL_FORWARD,
        .in = {conv->in[0], conv->in[1], conv->in[2]},
        .out = {pool->out[0]},
        .conv2d_pool = {.window = conv->conv2d.window,
                        .groups = conv->conv2d.groups,
                        .pool = pool->pool2d.window,
                        .ties = pool->pool2d.ties},
    };
}

static sdlf_operation make_backward(const sdlf_plan *plan, const chain *found, const sdlf_operation *forward,
                                    sdlf_tensor mask)
{
    sdlf_operation fused = {
        .kind = SDLF_CONV2D_RELU_MAX_POOL_BACKWARD,
        .in = {forward->in[0], forward->in[1], plan->steps[found->pool_back].operation.in[2], mask},
        .conv2d_pool = forward->conv2d_pool,
    };
    if (found->weights_back >= 0) {
        fused.out[0] = plan->steps[found->weights_back].operation.out[0];
        fused.out[1] = plan->steps[found->weights_back].operation.out[1];
    }
    if (found->input_back >= 0) fused.out[2] = plan->steps[found->input_back].operation.out[0];
    return fused;
}

static sdlf_status fuse(sdlf_plan *plan, const chain *found)
{
    sdlf_operation forward = make_forward(plan, found);
    const plan_step *conv = &plan->steps[found->conv];
    bool trains = found->pool_back >= 0;
    sdlf_tensor mask = {.dtype = SDLF_NONE};
    if (trains) {
        sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, SDLF_UINT8, forward.out[0].shape, &mask);
        if (status != SDLF_OK) return status;
        forward.out[1] = mask;
    }
    if (sdlf_operation_check(&forward) != SDLF_OK || !sdlf_calculator_supports(conv->calculator, &forward))
        return SDLF_OK;
    if (trains) {
        int last = found->weights_back > found->input_back ? found->weights_back : found->input_back;
        const plan_step *backward_step = &plan->steps[last];
        sdlf_operation backward = make_backward(plan, found, &forward, mask);
        if (found->weights_back >= 0 && found->input_back >= 0 &&
            plan->steps[found->weights_back].calculator != plan->steps[found->input_back].calculator)
            return SDLF_OK;
        if (backward_step->calculator != plan->steps[found->pool_back].calculator) return SDLF_OK;
        if (sdlf_operation_check(&backward) != SDLF_OK ||
            !sdlf_calculator_supports(backward_step->calculator, &backward))
            return SDLF_OK;
        const int old[] = {found->pool_back, found->relu_back, found->weights_back, found->input_back};
        for (int i = 0; i < 4; i++) {
            if (old[i] >= 0 && old[i] != last) plan->steps[old[i]].dead = true;
        }
        sdlf_status status = plan_replace_operation(plan, last, &backward);
        if (status != SDLF_OK) return status;
    }
    plan->steps[found->relu].dead = true;
    plan->steps[found->pool].dead = true;
    plan_join_groups(plan, conv->node, plan->steps[found->relu].node);
    plan_join_groups(plan, conv->node, plan->steps[found->pool].node);
    return plan_replace_operation(plan, found->conv, &forward);
}

sdlf_status plan_fuse_conv_pool(sdlf_plan *plan)
{
    for (int i = 0; i < plan->forward_steps; i++) {
        chain found;
        if (plan->steps[i].dead || !match_forward(plan, i, &found) || !match_backward(plan, &found)) continue;
        sdlf_status status = fuse(plan, &found);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}
