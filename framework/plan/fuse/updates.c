/* SPDX-License-Identifier: MIT */
/* Gradients that go straight into the update of their parameter, so that they are never stored: see
 * conv_update.c for what becomes what. */
#include "framework/plan/fuse/updates.h"

int plan_find_sgd(const sdlf_plan *plan, int producer, const sdlf_tensor *gradient)
{
    int buffer = gradient->buffer;
    if (plan->options.communicator != NULL) return -1; /* the ranks' gradients are added first */
    if (!sdlf_tensor_present(gradient) || plan->buffers[buffer].kind != BUFFER_ARENA) return -1;
    if (plan_count_readers(plan, buffer) != 1 || plan_count_writers(plan, buffer) != 1) return -1;
    int update = plan_next_reader(plan, buffer, producer);
    if (update < 0 || plan->steps[update].calculator != plan->steps[producer].calculator) return -1;
    const sdlf_operation *sgd = &plan->steps[update].operation;
    return sgd->kind == SDLF_SGD_UPDATE && !sdlf_tensor_present(&sgd->in[2]) ? update : -1;
}

bool plan_is_one_rule(const sdlf_operation *weights, const sdlf_operation *bias)
{
    return weights->sgd.momentum == bias->sgd.momentum && weights->sgd.nesterov == bias->sgd.nesterov &&
           weights->in[1].buffer == bias->in[1].buffer && weights->in[1].offset == bias->in[1].offset &&
           sdlf_tensor_present(&weights->out[1]) == sdlf_tensor_present(&bias->out[1]);
}

bool plan_may_update_at(const sdlf_plan *plan, int update, int to, int absorbed)
{
    int parameter = plan->steps[update].operation.out[0].buffer;
    int reader = plan_next_reader(plan, parameter, to);
    while (reader >= 0 && reader == absorbed) reader = plan_next_reader(plan, parameter, reader);
    return reader < 0 || reader >= update;
}

sdlf_status plan_fuse_updates(sdlf_plan *plan)
{
    if (plan->options.mode != SDLF_TRAIN) return SDLF_OK;
    sdlf_status status = SDLF_OK;
    for (int i = plan->forward_steps; i < plan->step_count && status == SDLF_OK; i++) {
        if (!plan->steps[i].dead) status = plan_fuse_conv_update(plan, i);
    }
    return status;
}
