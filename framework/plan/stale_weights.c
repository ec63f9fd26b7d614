/* SPDX-License-Identifier: MIT */
/* Checks whether the weights that a plan keeps are still those of its model. */
#include "framework/plan/passes.h"

#include <stdatomic.h>

static bool writes_parameter(const sdlf_plan *plan, const sdlf_operation *operation)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *out = &operation->out[i];
        if (sdlf_tensor_present(out) && plan->buffers[out->buffer].kind == BUFFER_PARAMETER) return true;
    }
    return false;
}

/* True if the step has prepacked model weights. (Prepacked operands may be data too, such as sparse matrices.) */
static bool has_prepared_weights(const sdlf_plan *plan, const sdlf_operation *operation)
{
    unsigned packed = sdlf_tensor_present(&operation->prepared) ? sdlf_operation_type(operation)->packed : 0;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!(packed >> i & 1) || !sdlf_tensor_present(&operation->in[i])) continue;
        buffer_kind kind = plan->buffers[operation->in[i].buffer].kind;
        if (kind == BUFFER_PARAMETER || kind == BUFFER_DERIVED) return true;
    }
    return false;
}

void plan_note_weights(sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        bool writes = (!plan_step_moves(step) || step->gathers) && writes_parameter(plan, &step->operation);
        plan->changes_parameters = plan->changes_parameters || writes;
        plan->changes_forward = plan->changes_forward || (writes && i < plan->forward_steps);
        plan->keeps_weights = plan->keeps_weights || has_prepared_weights(plan, &step->operation);
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        bool copy = buffer->kind == BUFFER_PARAMETER && plan_is_copy_of_model(plan, buffer);
        plan->keeps_weights =
            plan->keeps_weights || (buffer->memory != NULL && (copy || buffer->kind == BUFFER_DERIVED));
    }
    if (plan->options.mode != SDLF_INFER) plan->keeps_weights = false; /* its trained parameters are its own */
}

void plan_note_changes(sdlf_plan *plan, bool forward_alone)
{
    if (forward_alone ? plan->changes_forward : plan->changes_parameters) model_note_change(plan->model);
}

bool sdlf_plan_is_current(const sdlf_plan *plan)
{
    if (plan == NULL) return false;
    return !plan->keeps_weights || plan->loaded == atomic_load_explicit(&plan->model->changes, memory_order_relaxed);
}

sdlf_status plan_check_weights(const sdlf_plan *plan)
{
    if (sdlf_plan_is_current(plan)) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_ARGUMENT,
        "network '%s': its parameters have changed since this plan took them; call sdlf_plan_load_parameters "
        "before it runs",
        plan->model->name);
}
