/* SPDX-License-Identifier: MIT */
/* Shared by the files of the lowering pass. */
#ifndef SDLF_FRAMEWORK_PLAN_LOWER_LOWER_H
#define SDLF_FRAMEWORK_PLAN_LOWER_LOWER_H

#include "framework/plan/passes.h"
#include "framework/sink.h"

/* Receives the operations that a layer emits. */
typedef struct plan_sink {
    layer_sink base;
    sdlf_plan *plan;
    int node;
    sdlf_phase phase;
    sdlf_calculator *calculator;
} plan_sink;
plan_sink plan_make_sink(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator);

int plan_count_present(const sdlf_tensor *tensors, int count);

/* Tensors of a layer; those that it does not have are absent. */
typedef struct plan_operands {
    sdlf_tensor input[SDLF_MAX_LAYER_INPUTS], output[SDLF_MAX_LAYER_OUTPUTS];
    sdlf_tensor parameter[SDLF_MAX_LAYER_PARAMETERS], parameter_gradient[SDLF_MAX_LAYER_PARAMETERS];
    sdlf_tensor saved[SDLF_MAX_LAYER_SAVED];
} plan_operands;

/* The context common to a layer's forward and backward, filled into `operands`, which must be absent before. */
sdlf_layer_context plan_make_context(sdlf_plan *plan, int index, plan_sink *sink, plan_operands *operands);

sdlf_tensor plan_parameter_tensor(const sdlf_plan *plan, int parameter);

/* Emits the backward passes in reverse order, each with its updates. */
sdlf_status plan_lower_training(sdlf_plan *plan);

/* Gradient accumulation (accumulate.c): plan_emit_sums adds the gradients of a node's parameters to sums, which then
 * serve as the gradients; plan_lower_means, before the updates, computes their means and zeroes the sums. */
sdlf_status plan_emit_sums(sdlf_plan *plan, int index);
sdlf_status plan_lower_means(sdlf_plan *plan);

/* Loss scaling (loss_scale.c): plan->loss_gradient, before the backward pass, with or without a scale; and after it, if
 * gradients are scaled, their check and plan->factor, plan->clip, plan->steps_taken and plan->taken_step. */
sdlf_status plan_lower_loss_gradient(sdlf_plan *plan);
sdlf_status plan_lower_loss_scale(sdlf_plan *plan);

/* The learning rates of parameters that have their own: plan->rates. */
sdlf_status plan_lower_rates(sdlf_plan *plan);

/* A state of a parameter, of which a rank may hold only its shard; absent: out of memory. */
sdlf_tensor plan_state_tensor(sdlf_plan *plan, int parameter, int state);

/* Averages kept beside the weights (averages.c): whether Lookahead's step is due; and, after the update of a parameter,
 * the steps of Lookahead and of the moving average. */
sdlf_status plan_lower_lookahead(sdlf_plan *plan);
sdlf_status plan_emit_averages(sdlf_plan *plan, int index, int parameter);

/* Emits one operation of the update phase on the node's calculator: y = a op b, or, if b is absent, a op scalar. */
sdlf_status plan_emit_binary(sdlf_plan *plan, int index, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                             double scalar, sdlf_tensor y);

/* Emits to = condition ? a : to, where the condition is one bool. */
sdlf_status plan_emit_select(sdlf_plan *plan, int index, sdlf_tensor condition, sdlf_tensor a, sdlf_tensor to);

/* Replacements of an update, or of its rate, by the optimizer's form (forms.c). */
sdlf_status plan_emit_orthogonal(sdlf_plan *plan, int index, const sdlf_operation *update);
sdlf_status plan_emit_trust(sdlf_plan *plan, int index, sdlf_operation *update);

/* The updates of one node's parameters, if it has gradients. */
sdlf_status plan_emit_updates(sdlf_plan *plan, int index);

/* Gradient clipping, if enabled: the tensor plan->squares of each gradient's sum of squares; and, from it and
 * plan->factor, if present, scale = min(1, max_norm / norm of all gradients together), the tensor plan->clip that the
 * updates read. */
sdlf_status plan_lower_squares(sdlf_plan *plan);
sdlf_status plan_lower_clipping(sdlf_plan *plan);

#endif
