/* Inference: a 1x1 convolution and the depthwise one that alone reads it as one operation, where the calculator takes it. What lies
 * between them, several times as large as what comes and goes in networks for small devices, is never stored.
 *
 *   conv2d_forward x, w, bias -> h, 1x1;  conv2d_forward h, depthwise, depthwise_bias -> y, a group a channel
 *
 * Weights and biases must be constant: a calculator may make them ready once. Where an algorithm was asked for, the two stay apart. */
#include "framework/plan/passes.h"

static bool is_constant(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || plan->buffers[tensor->buffer].constant;
}

/* No residual, and weights as the calculator wants to find them. */
static bool is_plain(const sdlf_plan *plan, const sdlf_operation *conv)
{
    return conv->kind == SDLF_CONV2D_FORWARD && conv->algorithm == 0 && !sdlf_tensor_present(&conv->in[3]) &&
           is_constant(plan, &conv->in[1]) && is_constant(plan, &conv->in[2]);
}

static bool is_pointwise(const sdlf_operation *conv)
{
    const sdlf_window2d *window = &conv->conv2d.window;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 1 || window->stride[i] != 1) return false;
        if (window->padding_before[i] != 0 || window->padding_after[i] != 0) return false;
    }
    return conv->conv2d.groups == 1;
}

static bool is_depthwise(const sdlf_operation *conv)
{
    return conv->conv2d.groups == conv->in[0].shape.dim[1] && conv->in[1].shape.dim[0] == conv->conv2d.groups;
}

static sdlf_status fuse(sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    const sdlf_operation *first = &step->operation;
    if (!is_plain(plan, first) || !is_pointwise(first)) return SDLF_OK;
    const sdlf_tensor *middle = &first->out[0];
    if (plan->buffers[middle->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, middle) ||
        plan_count_readers(plan, middle->buffer) != 1 || plan_count_writers(plan, middle->buffer) != 1)
        return SDLF_OK;
    int reader = plan_next_reader(plan, middle->buffer, i);
    if (reader < 0 || plan->steps[reader].calculator != step->calculator) return SDLF_OK;
    const sdlf_operation *second = &plan->steps[reader].operation;
    if (!is_plain(plan, second) || second->in[0].buffer != middle->buffer || !is_depthwise(second) ||
        !sdlf_shape_equal(second->in[0].shape, middle->shape))
        return SDLF_OK;
    sdlf_operation pair = {.kind = SDLF_CONV2D_POINTWISE_DEPTHWISE_FORWARD,
                           .in = {first->in[0], first->in[1], second->in[1], first->in[2], second->in[2]},
                           .out = {second->out[0]},
                           .conv2d_pair = {.window = second->conv2d.window,
                                           .between = first->conv2d.activation,
                                           .activation = second->conv2d.activation}};
    if (sdlf_operation_check(&pair) != SDLF_OK || !sdlf_calculator_supports(step->calculator, &pair)) return SDLF_OK;
    plan->steps[i].dead = true;
    plan_join_groups(plan, step->node, plan->steps[reader].node);
    return plan_replace_operation(plan, reader, &pair);
}

sdlf_status plan_fuse_conv_pair(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.conv_algorithm != NULL) return SDLF_OK;
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse(plan, i);
    }
    return status;
}
