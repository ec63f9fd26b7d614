/* Weights that are wanted only until they have been made ready: those that the plan works out itself in the host's memory (with batch
 * normalisation folded in, or in another dtype than the model's), where every step that reads them has them in the form that its
 * kernel likes best, and so leaves them unread. Each is worked out when parameters are loaded, right before it is made ready, and all
 * in one room. On a device other plans may share them. */
#include "framework/plan/passes.h"

static bool is_worked_out(const sdlf_plan *plan, const plan_buffer *buffer)
{
    if (buffer->first_use < 0 || buffer->space < 0 || buffer->alias >= 0) return false;
    if (plan->options.mode != SDLF_INFER || !plan_is_host_space(plan, buffer->space)) return false;
    return buffer->kind == BUFFER_DERIVED || (buffer->kind == BUFFER_PARAMETER && buffer->dtype != SDLF_FLOAT32);
}

static void look_at_step(sdlf_plan *plan, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    bool made_ready = sdlf_tensor_present(&op->prepared) && op->in[0].layout != SDLF_CSR; /* of these, the matrix is */
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        bool ready = i == 1 && made_ready;
        if (sdlf_tensor_present(&op->in[i]) && !ready) plan->buffers[op->in[i].buffer].raw = false;
    }
}

void plan_find_raw_weights(sdlf_plan *plan)
{
    int largest = 0;
    for (int i = 1; i < plan->buffer_count; i++) plan->buffers[i].raw = is_worked_out(plan, &plan->buffers[i]);
    for (int i = 0; i < plan->step_count; i++) look_at_step(plan, &plan->steps[i]);
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->raw && (largest == 0 || buffer->bytes > plan->buffers[largest].bytes)) largest = i;
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        if (!buffer->raw) continue;
        buffer->first_use = buffer->last_use = 0; /* between runs, when nothing but outputs is there */
        if (i != largest) buffer->alias = largest;
    }
}
