/* SPDX-License-Identifier: MIT */
/* Initial values, for a model that has not been built before its plan is made: every parameter is drawn where the plan
 * keeps it, by the calculator that computes there, and then copied to the model. The values do not depend on the
 * calculator: the operations give the same bits everywhere. Optimizer states start at zero.
 *
 * Parameters whose space has no calculator, that are kept in another type than the model's float32, or whose
 * initializer is not a single operation, are drawn on the host and loaded. */
#include "framework/plan/passes.h"

#include <stdlib.h>

#include <sdlf/random.h>

#include "framework/initializer.h"

static uint64_t seed_of(const sdlf_plan *plan)
{
    return plan->options.seed != 0 ? plan->options.seed : 1;
}

/* Draws a buffer with its space's calculator, if that supports it. */
static sdlf_status draw_buffer(sdlf_plan *plan, const plan_buffer *buffer, bool *drawn)
{
    sdlf_calculator *calculator = plan->spaces[buffer->space].calculator;
    const sdlf_parameter_spec *spec = &plan->model->parameters[buffer->parameter].spec;
    sdlf_operation operation = {.kind = SDLF_FILL};
    sdlf_status status = SDLF_OK;
    *drawn = false;
    if (buffer->kind == BUFFER_PARAMETER)
        status = sdlf_initializer_operation(&operation, spec, seed_of(plan), sdlf_parameter_stream(buffer->parameter));
    sdlf_shape shape = spec->shape;
    if (buffer->kind == BUFFER_STATE) /* which may be only a shard */
        shape = sdlf_shape(buffer->bytes / (int64_t)sdlf_dtype_size(buffer->dtype));
    operation.out[0] = sdlf_tensor_view(buffer->dtype, shape, buffer->memory);
    if (status != SDLF_OK || calculator == NULL || buffer->dtype != SDLF_FLOAT32 ||
        !sdlf_calculator_supports(calculator, &operation) ||
        (buffer->kind == BUFFER_PARAMETER && !sdlf_initializer_is_drawn(spec)))
        return status;
    *drawn = true;
    return sdlf_calculator_run(calculator, &operation);
}

/* Draws all that can be drawn; by[p] becomes a buffer that then holds parameter p, or stays 0. `all`: nothing remains
 * to be loaded. */
static sdlf_status draw_buffers(sdlf_plan *plan, int *by, bool *all)
{
    *all = true;
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        bool drawn, parameter = buffer->kind == BUFFER_PARAMETER;
        if (buffer->memory == NULL || !(parameter || buffer->kind == BUFFER_STATE)) continue;
        if (plan_is_passing_copy(plan, buffer)) continue; /* refilled in every run */
        sdlf_status status = draw_buffer(plan, buffer, &drawn);
        if (status != SDLF_OK)
            return sdlf_fail_context(status, "parameter %s", plan->model->parameters[buffer->parameter].name);
        *all = *all && drawn;
        if (drawn && parameter && by[buffer->parameter] == 0) by[buffer->parameter] = i;
    }
    return SDLF_OK;
}

/* Stores a parameter's values in the model: from the buffer `by`, or, if that is 0, drawn here. */
static sdlf_status store_value(sdlf_plan *plan, int index, int by)
{
    sdlf_parameter *parameter = &plan->model->parameters[index];
    if (by != 0) return plan_download(plan, by, 0, parameter->value.data, sdlf_tensor_bytes(&parameter->value));
    return sdlf_fail_context(
        sdlf_initialize(&parameter->value, &parameter->spec, seed_of(plan), sdlf_parameter_stream(index)),
        "parameter %s", parameter->name);
}

sdlf_status plan_draw_parameters(sdlf_plan *plan, bool keep)
{
    int count = plan->model->parameter_count;
    int *by = calloc((size_t)count + 1, sizeof *by);
    if (by == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its parameters' list");
    bool all;
    sdlf_status status = draw_buffers(plan, by, &all);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
    for (int p = 0; p < count && keep && status == SDLF_OK; p++) status = store_value(plan, p, by[p]);
    if (status == SDLF_OK) status = all ? plan_prepare_parameters(plan) : sdlf_plan_load_parameters(plan);
    free(by);
    return status;
}
