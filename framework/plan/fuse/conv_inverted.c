/* SPDX-License-Identifier: MIT */
/* Inference: an inverted residual block as one operation, where the calculator takes it: a 1x1 convolution, the
 * depthwise one that is the only one to read it, and the 1x1 convolution that is the only one to read that, with its
 * residual. All that goes through memory is what enters the block and what leaves it.
 *
 *   conv2d_forward x, w, bias -> h, 1x1;  conv2d_forward h, depthwise, depthwise_bias -> z, a group a channel;
 *   conv2d_forward z, project, project_bias, residual -> y, 1x1
 *
 * Of depthwise separable convolutions only the last two of these. Weights and biases must be constant: a calculator may
 * make them ready once. Where an algorithm was asked for, they stay apart. */
#include "framework/plan/fuse/conv_chain.h"

static const sdlf_operation *at(const sdlf_plan *plan, int step)
{
    return &plan->steps[step].operation;
}

static bool has_residual(const sdlf_operation *conv)
{
    return sdlf_tensor_present(&conv->in[3]);
}

/* Put the operation in the place of the last of these steps, and the others into its group, if the calculator takes
 * it. */
static sdlf_status replace(sdlf_plan *plan, const int *steps, int count, const sdlf_operation *block)
{
    const int last = steps[count - 1];
    if (sdlf_operation_check(block) != SDLF_OK || !sdlf_calculator_supports(plan->steps[last].calculator, block))
        return SDLF_OK;
    for (int i = 0; i + 1 < count; i++) {
        plan->steps[steps[i]].dead = true;
        plan_join_groups(plan, plan->steps[steps[i]].node, plan->steps[steps[i + 1]].node);
    }
    return plan_replace_operation(plan, last, block);
}

/* A depthwise convolution without a residual, and a pointwise one behind it. */
static int separable_behind(const sdlf_plan *plan, int i)
{
    if (!conv_chain_is_plain(plan, at(plan, i)) || !conv_chain_is_depthwise(at(plan, i)) || has_residual(at(plan, i)))
        return -1;
    int last = conv_chain_next(plan, i);
    return last >= 0 && conv_chain_is_pointwise(at(plan, last)) ? last : -1;
}

static sdlf_operation block_of(const sdlf_operation *filter, const sdlf_operation *last)
{
    return (sdlf_operation){.kind = SDLF_CONV2D_INVERTED_RESIDUAL_FORWARD,
                            .in = {filter->in[0],
                                   filter->in[1],
                                   last->in[1],
                                   {.dtype = SDLF_NONE},
                                   {.dtype = SDLF_NONE},
                                   filter->in[2],
                                   last->in[2],
                                   last->in[3]},
                            .out = {last->out[0]},
                            .conv2d_inverted = {.window = filter->conv2d.window,
                                                .filtered = filter->conv2d.activation,
                                                .activation = last->conv2d.activation}};
}

static sdlf_status fuse_three(sdlf_plan *plan, int i)
{
    const sdlf_operation *first = at(plan, i);
    if (!conv_chain_is_plain(plan, first) || !conv_chain_is_pointwise(first) || has_residual(first)) return SDLF_OK;
    int filter = conv_chain_next(plan, i), last = filter < 0 ? -1 : separable_behind(plan, filter);
    if (last < 0) return SDLF_OK;
    sdlf_operation block = block_of(at(plan, filter), at(plan, last));
    block.in[0] = first->in[0];
    block.in[3] = first->in[1];
    block.in[4] = first->in[2];
    block.conv2d_inverted.expanded = first->conv2d.activation;
    return replace(plan, (const int[]){i, filter, last}, 3, &block);
}

static sdlf_status fuse_two(sdlf_plan *plan, int i)
{
    int last = separable_behind(plan, i);
    if (last < 0) return SDLF_OK;
    sdlf_operation block = block_of(at(plan, i), at(plan, last));
    return replace(plan, (const int[]){i, last}, 2, &block);
}

sdlf_status plan_fuse_conv_inverted(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan->options.mode != SDLF_INFER || plan->options.conv_algorithm != NULL) return SDLF_OK;
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse_three(plan, i);
    }
    for (int i = 0; i < plan->forward_steps && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = fuse_two(plan, i);
    }
    return status;
}
