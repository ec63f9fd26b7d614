/* SPDX-License-Identifier: MIT */
/* Averages kept beside the weights: the slow weights of Lookahead (https://arxiv.org/abs/1907.08610) and the moving
 * average, built from operations that every calculator has. */
#include "framework/plan/lower/lower.h"

static const sdlf_tensor none = {.dtype = SDLF_NONE};

/* Creates a tensor for an operation's result. */
static sdlf_status new_buffer(sdlf_plan *plan, sdlf_dtype dtype, sdlf_shape shape, sdlf_tensor *tensor)
{
    return plan_new_tensor(plan, BUFFER_ARENA, dtype, shape, tensor);
}

/* to = from + share (towards - from); `to` may be `from`. */
static sdlf_status emit_approach(sdlf_plan *plan, int index, sdlf_tensor from, sdlf_tensor towards, double share,
                                 sdlf_tensor to)
{
    sdlf_tensor difference, part;
    sdlf_status status = new_buffer(plan, from.dtype, from.shape, &difference);
    if (status == SDLF_OK) status = new_buffer(plan, from.dtype, from.shape, &part);
    if (status == SDLF_OK) status = plan_emit_binary(plan, index, SDLF_BINARY_SUBTRACT, towards, from, 0, difference);
    if (status == SDLF_OK) status = plan_emit_binary(plan, index, SDLF_BINARY_MULTIPLY, difference, none, share, part);
    return status == SDLF_OK ? plan_emit_binary(plan, index, SDLF_BINARY_ADD, from, part, 0, to) : status;
}

/* moved = slow + share (weight - slow); when the step is due, slow = weight = moved. */
static sdlf_status emit_lookahead(sdlf_plan *plan, int index, sdlf_tensor weight, sdlf_tensor slow)
{
    sdlf_tensor moved;
    sdlf_status status = new_buffer(plan, weight.dtype, weight.shape, &moved);
    if (status == SDLF_OK) status = emit_approach(plan, index, slow, weight, plan->options.lookahead_share, moved);
    if (status == SDLF_OK) status = plan_emit_select(plan, index, plan->due, moved, slow);
    return status == SDLF_OK ? plan_emit_select(plan, index, plan->due, moved, weight) : status;
}

sdlf_status plan_emit_averages(sdlf_plan *plan, int index, int parameter)
{
    const sdlf_plan_options *options = &plan->options;
    int state = options->optimizer.type->state_count(&options->optimizer);
    const sdlf_tensor weight = plan_parameter_tensor(plan, parameter);
    sdlf_tensor average = none, slow = none;
    if (options->ema > 0) average = plan_state_tensor(plan, parameter, state++);
    if (options->lookahead > 0) slow = plan_state_tensor(plan, parameter, state);
    if (sdlf_tensor_present(&average) != (options->ema > 0) || sdlf_tensor_present(&slow) != (options->lookahead > 0))
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    sdlf_status status = options->lookahead > 0 ? emit_lookahead(plan, index, weight, slow) : SDLF_OK;
    if (status != SDLF_OK || options->ema <= 0) return status;
    return emit_approach(plan, index, average, weight, 1 - options->ema, average);
}

/* plan->due = (step mod lookahead) == lookahead - 1, emitted before its readers. */
sdlf_status plan_lower_lookahead(sdlf_plan *plan)
{
    const double every = (double)plan->options.lookahead;
    sdlf_tensor place;
    if (plan->options.lookahead == 0 || plan->options.gradients_only) return SDLF_OK;
    sdlf_status status = new_buffer(plan, SDLF_INT64, sdlf_shape(1), &place);
    if (status == SDLF_OK) status = new_buffer(plan, SDLF_BOOL, sdlf_shape(1), &plan->due);
    const sdlf_operation steps[] = {{.kind = SDLF_BINARY,
                                     .in = {plan_control_tensor(plan, CONTROL_STEP)},
                                     .out = {place},
                                     .binary = {.function = SDLF_BINARY_MODULO, .scalar = every}},
                                    {.kind = SDLF_BINARY,
                                     .in = {place},
                                     .out = {plan->due},
                                     .binary = {.function = SDLF_BINARY_EQUAL, .scalar = every - 1}}};
    for (int i = 0; i < 2 && status == SDLF_OK; i++)
        status = plan_emit(plan, plan->node_count - 1, SDLF_PHASE_BACKWARD, plan->options.backward, &steps[i]);
    return status;
}
