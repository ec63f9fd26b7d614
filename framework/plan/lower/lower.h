/* SPDX-License-Identifier: MIT */
/* What the files of the lowering pass share. */
#ifndef SDLF_FRAMEWORK_PLAN_LOWER_LOWER_H
#define SDLF_FRAMEWORK_PLAN_LOWER_LOWER_H

#include "framework/plan/passes.h"
#include "framework/sink.h"

/* Where the operations go that a layer emits. */
typedef struct plan_sink {
    layer_sink base;
    sdlf_plan *plan;
    int node;
    sdlf_phase phase;
    sdlf_calculator *calculator;
} plan_sink;
plan_sink plan_make_sink(sdlf_plan *plan, int node, sdlf_phase phase, sdlf_calculator *calculator);

int plan_count_present(const sdlf_tensor *tensors, int count);

/* Tensors of a layer; absent where it has fewer. */
typedef struct plan_operands {
    sdlf_tensor input[SDLF_MAX_LAYER_INPUTS], output[SDLF_MAX_LAYER_OUTPUTS];
    sdlf_tensor parameter[SDLF_MAX_LAYER_PARAMETERS], parameter_gradient[SDLF_MAX_LAYER_PARAMETERS];
    sdlf_tensor saved[SDLF_MAX_LAYER_SAVED];
} plan_operands;

/* What a layer's forward and backward see alike, in `operands`, which are absent before. */
sdlf_layer_context plan_make_context(sdlf_plan *plan, int index, plan_sink *sink, plan_operands *operands);

sdlf_tensor plan_parameter_tensor(const sdlf_plan *plan, int parameter);

/* Backward passes in reverse order, each with its updates. */
sdlf_status plan_lower_training(sdlf_plan *plan);

/* Accumulated gradients (accumulate.c): those of a node's parameters are added to sums, which then are the gradients;
 * and, before the updates, the means of them, and sums of 0. */
sdlf_status plan_emit_sums(sdlf_plan *plan, int index);
sdlf_status plan_lower_means(sdlf_plan *plan);

/* Loss scaling (loss_scale.c): plan->loss_gradient, before the backward pass, with or without a scale; and, behind it,
 * the check of the gradients and plan->factor, plan->clip, plan->steps_taken and plan->taken_step, if they are scaled. */
sdlf_status plan_lower_loss_gradient(sdlf_plan *plan);
sdlf_status plan_lower_loss_scale(sdlf_plan *plan);

/* The learning rates of parameters that have their own: plan->rates. */
sdlf_status plan_lower_rates(sdlf_plan *plan);

/* A state of a parameter, of which a rank may have its part; absent: no memory. */
sdlf_tensor plan_state_tensor(sdlf_plan *plan, int parameter, int state);

/* What is kept of weights beside them (averages.c): when Lookahead's step is due, and, after the update of a parameter,
 * Lookahead's step and that of the moving average. */
sdlf_status plan_lower_lookahead(sdlf_plan *plan);
sdlf_status plan_emit_averages(sdlf_plan *plan, int index, int parameter);

/* One operation of the update phase, on the node's calculator: y = a op b, or, where b is absent, a op scalar. */
sdlf_status plan_emit_binary(sdlf_plan *plan, int index, sdlf_binary_function function, sdlf_tensor a, sdlf_tensor b,
                             double scalar, sdlf_tensor y);

/* to = condition ? a : to, where the condition is one bool. */
sdlf_status plan_emit_select(sdlf_plan *plan, int index, sdlf_tensor condition, sdlf_tensor a, sdlf_tensor to);

/* What stands in for an update, or for its rate, by the optimizer's form (forms.c). */
sdlf_status plan_emit_orthogonal(sdlf_plan *plan, int index, const sdlf_operation *update);
sdlf_status plan_emit_trust(sdlf_plan *plan, int index, sdlf_operation *update);

/* The updates of one node's parameters, where it has gradients. */
sdlf_status plan_emit_updates(sdlf_plan *plan, int index);

/* Gradient clipping, if there is any: the tensor plan->squares, of each gradient's sum of squares; and, of it and
 * plan->factor, if that is there, scale = min(1, max_norm / norm of all gradients together): the tensor plan->clip, which
 * updates then read. */
sdlf_status plan_lower_squares(sdlf_plan *plan);
sdlf_status plan_lower_clipping(sdlf_plan *plan);

#endif
