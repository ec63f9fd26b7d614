/* Which calculators of a plan want activations channels last: each is asked for its own operations, since what suits one kind of
 * hardware says nothing of another. */
#include "framework/plan/layouts/layouts.h"

#include <stdlib.h>

static layout_votes *votes_of(layout_votes *votes, const sdlf_calculator *calculator)
{
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    votes->calculator = calculator;
    return votes;
}

static void count_step(layout_votes *votes, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_kernel_slot *slot = &step->calculator->type->kernel[op->kind];
    sdlf_operation turned = sdlf_operation_channels_last(op);
    bool likes = sdlf_calculator_likes_channels_last(step->calculator, op);
    votes->likers += likes;
    if (!slot->channels_last || !slot->likes_channels_last || !sdlf_calculator_supports(step->calculator, &turned))
        return;
    votes->asked += (double)step->cost.flops;
    if (likes) votes->liked += (double)step->cost.flops;
}

sdlf_status layout_count_votes(const sdlf_plan *plan, layout_votes **votes)
{
    const sdlf_plan_options *options = &plan->options;
    size_t most = 2 * (size_t)options->placement_count + 2; /* calculators that there can be */
    *votes = calloc(most + 1, sizeof **votes);
    if (*votes == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    if (options->mode != SDLF_INFER || options->no_fusion || options->keep_activations) return SDLF_OK;
    for (int i = 0; i < plan->step_count; i++) count_step(votes_of(*votes, plan->steps[i].calculator), &plan->steps[i]);
    return SDLF_OK;
}

bool layout_turns(const layout_votes *votes, const sdlf_calculator *calculator)
{
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    return votes->likers > 1;
}

bool layout_turns_all(const layout_votes *votes, const sdlf_calculator *calculator)
{
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    return votes->likers > 1 && 2 * votes->liked >= votes->asked;
}
