/* SPDX-License-Identifier: MIT */
/* Lowering of gradient accumulation over several batches: sums with pinned memory, and the means that the updates
 * read. */
#include "framework/plan/lower/lower.h"

sdlf_status plan_emit_sums(sdlf_plan *plan, int index)
{
    const plan_node *node = &plan->nodes[index];
    sdlf_status status = SDLF_OK;
    for (int i = node->first_parameter; i < node->first_parameter + node->parameter_count && status == SDLF_OK; i++) {
        sdlf_tensor *gradient = &plan->gradients[i], sum;
        if (!sdlf_tensor_present(gradient)) continue;
        status = plan_new_tensor(plan, BUFFER_PINNED, gradient->dtype, gradient->shape, &sum);
        const sdlf_operation add = {
            .kind = SDLF_BINARY, .in = {sum, *gradient}, .out = {sum}, .binary = {.function = SDLF_BINARY_ADD}};
        if (status == SDLF_OK) status = plan_emit(plan, index, SDLF_PHASE_BACKWARD, node->backward, &add);
        *gradient = sum;
    }
    return status;
}

/* mean = sum / batches; then sum = 0. */
static sdlf_status emit_mean(sdlf_plan *plan, int index, sdlf_tensor *gradient)
{
    const plan_node *node = &plan->nodes[index];
    sdlf_tensor sum = *gradient, share = plan_control_tensor(plan, CONTROL_SHARE);
    if (!sdlf_tensor_present(&share)) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    sdlf_status status = plan_new_tensor(plan, BUFFER_ARENA, sum.dtype, sum.shape, gradient);
    const sdlf_operation scale = {.kind = SDLF_BINARY,
                                  .in = {sum, sdlf_tensor_broadcast(share, sum.shape)},
                                  .out = {*gradient},
                                  .binary = {.function = SDLF_BINARY_MULTIPLY}};
    const sdlf_operation clear = {.kind = SDLF_FILL, .out = {sum}};
    if (status == SDLF_OK) status = plan_emit(plan, index, SDLF_PHASE_UPDATE, node->backward, &scale);
    return status == SDLF_OK ? plan_emit(plan, index, SDLF_PHASE_UPDATE, node->backward, &clear) : status;
}

sdlf_status plan_lower_means(sdlf_plan *plan)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        for (int j = 0; j < node->parameter_count; j++) {
            sdlf_tensor *gradient = &plan->gradients[node->first_parameter + j];
            sdlf_status status = sdlf_tensor_present(gradient) ? emit_mean(plan, i, gradient) : SDLF_OK;
            if (status != SDLF_OK) return status;
        }
    }
    return SDLF_OK;
}
