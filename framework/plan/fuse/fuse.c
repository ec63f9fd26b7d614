/* SPDX-License-Identifier: MIT */
/* The fusion pass. Rules match operations and buffers, never layers, so they serve every layer that lowers to
 * these operations; a rule asks the calculator whether it supports the fused operation, and changes nothing if
 * not. */
#include "framework/plan/passes.h"

sdlf_status plan_fuse(sdlf_plan *plan)
{
    if (plan->options.no_fusion || plan->options.keep_activations) return SDLF_OK;
    static sdlf_status (*const rules[])(sdlf_plan *) = {
        plan_fuse_values,              /* constants become parameters */
        plan_fuse_transposed_operands, /* permuted matrices */
        plan_fuse_permuted_rows,       /* before attention, which absorbs the remaining copies */
        plan_fuse_attention,           /* after it: keys are read in place */
        plan_fuse_qdq_nodes,           /* before epilogues, which would absorb its rounding */
        plan_fold_norms,               /* before epilogues: folding exposes more fusions */
        plan_merge_branches,           /* after it: branches are convolutions; before epilogues, which absorb the sum */
        plan_fuse_rectified_pools,     /* before epilogues, which would absorb its ReLU */
        plan_fuse_activations,         /* before epilogues, which absorb them */
        plan_fuse_epilogues,           /* residual adds, then activations */
        plan_fuse_qdq_integers,        /* after epilogues: GEMMs and convolutions have their activations */
        plan_fuse_integer_products,    /* likewise: their multipliers and biases */
        plan_fuse_weight_only,         /* GEMMs with integer weights and float activations */
        plan_fold_scales,              /* after these, whose scales are no weights */
        plan_fuse_epilogues,           /* those that a scale blocked */
        plan_fuse_feed,                /* labels with the batch's indices */
        plan_fuse_loss,                /* forward and backward */
        plan_fuse_norm_backward,       /* with the activation after it */
        plan_fuse_declared,            /* after epilogues: operations have their activations and residuals */
    };
    sdlf_status status = SDLF_OK;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && status == SDLF_OK; i++) {
        status = plan_find_uses(plan);
        if (status == SDLF_OK) status = rules[i](plan);
        plan_remove_dead_steps(plan);
    }
    plan_uses_release(&plan->uses);
    plan_settle_groups(plan);
    return status;
}

sdlf_status plan_fuse_stored(sdlf_plan *plan)
{
    if (plan->options.no_fusion || plan->options.keep_activations) return SDLF_OK;
    static sdlf_status (*const in_training[])(sdlf_plan *) = {
        plan_fuse_epilogues, plan_fuse_norm_backward,
        plan_fuse_epilogues, /* activations whose gradients no longer read the input */
        plan_fuse_gradient_sums, NULL};
    static sdlf_status (*const in_inference[])(sdlf_plan *) = {
        plan_fuse_copies,    /* contents are read where they were copied from */
        plan_fuse_epilogues, /* residuals that such a copy blocked */
        plan_fuse_declared, NULL};
    sdlf_status (*const *rules)(sdlf_plan *) = plan->options.mode == SDLF_TRAIN ? in_training : in_inference;
    sdlf_status status = SDLF_OK;
    for (int i = 0; rules[i] != NULL && status == SDLF_OK; i++) {
        status = plan_find_uses(plan);
        if (status == SDLF_OK) status = rules[i](plan);
        plan_remove_dead_steps(plan);
    }
    plan_uses_release(&plan->uses);
    plan_settle_groups(plan);
    for (int i = 0; i < plan->step_count; i++) plan->steps[i].cost = sdlf_operation_cost(&plan->steps[i].operation);
    return status;
}
