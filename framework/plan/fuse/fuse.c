/* SPDX-License-Identifier: MIT */
/* The fusing pass. Rules look at operations and buffers, never at layers, so they serve every layer that describes
 * itself in these operations; a rule asks the calculator whether it takes the fused operation, and changes nothing if
 * not. */
#include "framework/plan/passes.h"

sdlf_status plan_fuse(sdlf_plan *plan)
{
    if (plan->options.no_fusion || plan->options.keep_activations) return SDLF_OK;
    static sdlf_status (*const rules[])(sdlf_plan *) = {
        plan_fuse_values,              /* constants are parameters from then on */
        plan_fuse_transposed_operands, /* matrices in another order */
        plan_fuse_permuted_rows,       /* before attention, which takes in the copies that are left */
        plan_fuse_attention,           /* behind it: keys are read where they lie */
        plan_fuse_qdq_nodes,           /* before epilogues, which would take its rounding */
        plan_fold_norms,               /* before epilogues: what is folded away can be fused further */
        plan_fuse_rectified_pools,     /* before epilogues, which would take its ReLU */
        plan_fuse_activations,         /* before epilogues, which take it in */
        plan_fuse_epilogues,           /* residual adds, then activations */
        plan_fuse_qdq_integers,        /* after them: products have their activations */
        plan_fuse_integer_products,    /* likewise: what they are multiplied by, and their biases */
        plan_fuse_weight_only,         /* products whose weights are integers, and nothing else is */
        plan_fold_scales,              /* behind these, whose scales are no weights */
        plan_fuse_epilogues,           /* what a scale stood before */
        plan_fuse_feed,                /* labels with the batch's indices */
        plan_fuse_loss,                /* forward and backward */
        plan_fuse_norm_backward,       /* with the activation behind it */
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
        plan_fuse_epilogues, /* activations whose input is no longer read by their gradients */
        plan_fuse_gradient_sums, NULL};
    static sdlf_status (*const in_inference[])(sdlf_plan *) = {
        plan_fuse_copies,    /* contents read where they are copied from */
        plan_fuse_epilogues, /* residuals that such a copy stood before */
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
