/* SPDX-License-Identifier: MIT */
#include "framework/plan/fuse/conv_chain.h"

static bool is_constant(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || plan->buffers[tensor->buffer].constant;
}

bool conv_chain_is_plain(const sdlf_plan *plan, const sdlf_operation *operation)
{
    return operation->kind == SDLF_CONV2D_FORWARD && operation->algorithm == 0 &&
           is_constant(plan, &operation->in[1]) && is_constant(plan, &operation->in[2]);
}

bool conv_chain_is_pointwise(const sdlf_operation *conv)
{
    const sdlf_window2d *window = &conv->conv2d.window;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 1 || window->stride[i] != 1) return false;
        if (window->padding_before[i] != 0 || window->padding_after[i] != 0) return false;
    }
    return conv->conv2d.groups == 1;
}

bool conv_chain_is_depthwise(const sdlf_operation *conv)
{
    return conv->conv2d.groups == conv->in[0].shape.dim[1] && conv->in[1].shape.dim[0] == conv->conv2d.groups;
}

int conv_chain_next(const sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    const sdlf_tensor *made = &step->operation.out[0];
    if (plan->buffers[made->buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, made) ||
        plan_count_readers(plan, made->buffer) != 1 || plan_count_writers(plan, made->buffer) != 1)
        return -1;
    int reader = plan_next_reader(plan, made->buffer, i);
    if (reader < 0 || plan->steps[reader].calculator != step->calculator) return -1;
    const sdlf_operation *next = &plan->steps[reader].operation;
    bool reads = conv_chain_is_plain(plan, next) && next->in[0].buffer == made->buffer &&
                 (!sdlf_tensor_present(&next->in[3]) || next->in[3].buffer != made->buffer);
    return reads && sdlf_shape_equal(next->in[0].shape, made->shape) ? reader : -1;
}
