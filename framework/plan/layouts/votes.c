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

/* In training a calculator stores in 16 bits what its kernels take so; of convolutions and pooling that is asked. */
static void count_stored(layout_votes *votes, const plan_step *step)
{
    const sdlf_operation_class *type = sdlf_operation_class_of(step->operation.kind);
    votes->storage = sdlf_calculator_storage(step->calculator);
    if (votes->storage == SDLF_NONE || type->storage == 0 || type->channels_last == 0) return;
    sdlf_operation stored = sdlf_operation_stored(&step->operation, votes->storage);
    bool takes = sdlf_calculator_supports(step->calculator, &stored);
    votes->likers += takes;
    votes->asked += (double)step->cost.flops;
    if (takes) votes->liked += (double)step->cost.flops;
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
    if (options->no_fusion || options->keep_activations) return SDLF_OK;
    if (options->mode == SDLF_TRAIN && options->dtype != SDLF_FLOAT32) return SDLF_OK;
    for (int i = 0; i < plan->step_count; i++) {
        layout_votes *of = votes_of(*votes, plan->steps[i].calculator);
        (options->mode == SDLF_TRAIN ? count_stored : count_step)(of, &plan->steps[i]);
    }
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

sdlf_dtype layout_storage(const layout_votes *votes)
{
    for (; votes->calculator != NULL; votes++) {
        if (votes->storage != SDLF_NONE && layout_turns_all(votes, votes->calculator)) return votes->storage;
    }
    return SDLF_NONE;
}

bool layout_stores(const layout_votes *votes, const sdlf_calculator *calculator, sdlf_dtype storage)
{
    bool all = layout_turns_all(votes, calculator);
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    return all && votes->storage == storage;
}
