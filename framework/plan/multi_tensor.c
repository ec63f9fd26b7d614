/* SPDX-License-Identifier: MIT */
/* Makes small per-parameter steps of a training plan adjacent, so that a calculator that fuses operations computes many
 * tensors in one launch (multi-tensor): weight conversions move to the start of the step, updates follow one another.
 * Updates of large tensors stay in place: a launch costs little beside them, and the gradient's memory is freed
 * sooner. */
#include "framework/plan/passes.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 1 << 20 };

typedef enum step_place { PLACE_FIRST, PLACE_HERE, PLACE_LATER } step_place;

static bool is_parameter(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    return plan->buffers[tensor->buffer].kind == BUFFER_PARAMETER;
}

static step_place place_of(const sdlf_plan *plan, int index)
{
    const plan_step *step = &plan->steps[index];
    const sdlf_operation *op = &step->operation;
    if (step->calculator->type->run_together == NULL) return PLACE_HERE;
    bool to_nhwc = op->out[0].shape.rank == 4 && !sdlf_tensor_is_contiguous(&op->in[0]);
    if (op->kind == SDLF_COPY && index < plan->forward_steps && (to_nhwc || op->in[0].dtype != op->out[0].dtype))
        return is_parameter(plan, &op->in[0]) && plan_count_writers(plan, op->out[0].buffer) == 1 ? PLACE_FIRST
                                                                                                  : PLACE_HERE;
    if (sdlf_operation_type(op)->updates && is_parameter(plan, &op->out[0]) &&
        sdlf_tensor_bytes(&op->out[0]) <= SMALL_BYTES)
        return plan_next_reader(plan, op->out[0].buffer, index) < 0 ? PLACE_LATER : PLACE_HERE;
    return PLACE_HERE;
}

/* Writes the steps in their new order. Updates are deferred to be adjacent, but no more than a calculator is offered at
 * once: so few gradients are live at a time, however deep the network. */
static void put_in_order(sdlf_plan *plan, const step_place *place, plan_step *ordered)
{
    int waiting[PLAN_MAX_FUSED_ALIKE], waiting_count = 0, count = 0;
    for (int i = 0; i < plan->step_count; i++) {
        if (place[i] == PLACE_FIRST) ordered[count++] = plan->steps[i];
    }
    for (int i = 0; i < plan->step_count; i++) {
        if (place[i] == PLACE_HERE) ordered[count++] = plan->steps[i];
        if (place[i] == PLACE_LATER) waiting[waiting_count++] = i;
        if (waiting_count < PLAN_MAX_FUSED_ALIKE && i + 1 < plan->step_count) continue;
        for (int w = 0; w < waiting_count; w++) ordered[count++] = plan->steps[waiting[w]];
        waiting_count = 0;
    }
    memcpy(plan->steps, ordered, (size_t)count * sizeof *ordered);
}

static sdlf_status reorder(sdlf_plan *plan)
{
    if (plan->step_count == 0) return SDLF_OK;
    step_place *place = malloc((size_t)plan->step_count * sizeof *place);
    plan_step *ordered = malloc((size_t)plan->step_count * sizeof *ordered);
    sdlf_status status = SDLF_OK;
    if (place != NULL && ordered != NULL) {
        for (int i = 0; i < plan->step_count; i++) place[i] = place_of(plan, i);
        put_in_order(plan, place, ordered);
    } else {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its steps");
    }
    free(place);
    free(ordered);
    return status;
}

sdlf_status plan_order_multi_tensor(sdlf_plan *plan)
{
    const sdlf_plan_options *options = &plan->options;
    if (options->mode != SDLF_TRAIN || options->no_fusion || options->keep_activations) return SDLF_OK;
    sdlf_status status = plan_find_uses(plan);
    if (status == SDLF_OK) status = reorder(plan);
    plan_uses_release(&plan->uses);
    return status;
}
