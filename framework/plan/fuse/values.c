/* SPDX-License-Identifier: MIT */
/* Inference: the output of a layer `value` is its parameter, read in place. Otherwise every run would copy it, for
 * example the whole table of an embedding, of which a gather then reads some rows. A value of another type, such as
 * bytes or indices, is converted when parameters are loaded, if the calculator computes in host memory. */
#include "framework/plan/passes.h"

#include <string.h>

/* True if x is all of its buffer, contiguous. */
static bool is_whole(const sdlf_plan *plan, const sdlf_tensor *x)
{
    return x->offset == 0 && sdlf_tensor_is_contiguous(x) && plan_covers_buffer(plan, x);
}

static bool is_copy_of_parameter(const sdlf_plan *plan, const plan_step *step)
{
    const sdlf_tensor *from = &step->operation.in[0], *to = &step->operation.out[0];
    return step->operation.kind == SDLF_COPY && plan->buffers[from->buffer].kind == BUFFER_PARAMETER &&
           plan->buffers[to->buffer].kind == BUFFER_ARENA &&
           (from->dtype == to->dtype || strcmp(step->calculator->space, SDLF_HOST_SPACE) == 0) &&
           sdlf_shape_equal(from->shape, to->shape) && is_whole(plan, from) && is_whole(plan, to) &&
           plan_count_writers(plan, to->buffer) == 1;
}

static sdlf_status read_parameter(sdlf_plan *plan, int step)
{
    int copy = plan->steps[step].operation.out[0].buffer, parameter = plan->steps[step].operation.in[0].buffer;
    sdlf_tensor converted = plan->steps[step].operation.out[0];
    sdlf_status status = SDLF_OK;
    if (converted.dtype != plan->buffers[parameter].dtype) {
        int source = plan->buffers[parameter].parameter;
        status = plan_new_tensor(plan, BUFFER_PARAMETER, converted.dtype, converted.shape, &converted);
        if (status != SDLF_OK) return status;
        parameter = converted.buffer;
        plan->buffers[parameter].parameter = source;
        plan->buffers[parameter].constant = true;
    }
    for (int reader = plan_next_reader(plan, copy, step); reader >= 0 && status == SDLF_OK;
         reader = plan_next_reader(plan, copy, reader)) {
        sdlf_operation operation = plan->steps[reader].operation;
        for (int i = 0; i < SDLF_MAX_INPUTS; i++)
            if (sdlf_tensor_present(&operation.in[i]) && operation.in[i].buffer == copy)
                operation.in[i].buffer = parameter;
        status = plan_replace_operation(plan, reader, &operation);
    }
    plan->steps[step].dead = status == SDLF_OK;
    return status;
}

sdlf_status plan_fuse_values(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; plan->options.mode == SDLF_INFER && i < plan->step_count && status == SDLF_OK; i++)
        if (!plan->steps[i].dead && is_copy_of_parameter(plan, &plan->steps[i])) status = read_parameter(plan, i);
    return status;
}
