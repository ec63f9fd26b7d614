/* SPDX-License-Identifier: MIT */
/* Decides which calculators of a plan get channels-last activations: each is asked for its own operations, since the
 * preference of one kind of hardware implies nothing for another. */
#include "framework/plan/layouts/layouts.h"

#include <stdlib.h>
#include <string.h>

static layout_votes *votes_of(layout_votes *votes, const sdlf_calculator *calculator)
{
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    votes->calculator = calculator;
    return votes;
}

sdlf_operation layout_stored(const sdlf_plan *plan, const sdlf_operation *operation, sdlf_dtype storage)
{
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    sdlf_operation stored = sdlf_operation_stored(operation, storage);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        bool weights = type->channels_last != 0 && type->float32_beside >> i & 1;
        if (weights && plan->options.mode == SDLF_INFER) stored.in[i] = operation->in[i];
    }
    return stored;
}

/* A calculator is asked for convolutions and pooling; other operations it would store count if its kernels support
 * that. Operations that were fused before layouts are chosen do not count: they were chosen for the layout they have. */
static void count_stored(const sdlf_plan *plan, layout_votes *votes, const plan_step *step)
{
    const sdlf_operation_class *type = sdlf_operation_type(&step->operation);
    if (type->storage == 0 || type->channels_last == 0 || step->operation.kind == SDLF_FUSED) return;
    votes->flops_asked += (double)step->cost.flops;
    sdlf_dtype storage = sdlf_calculator_storage(step->calculator, &step->operation, plan->options.mode == SDLF_TRAIN);
    if (storage == SDLF_NONE) return;
    votes->storage = storage;
    sdlf_operation stored = layout_stored(plan, &step->operation, storage);
    bool takes = sdlf_calculator_supports(step->calculator, &stored);
    votes->preferring += takes;
    if (takes) votes->flops_preferring += (double)step->cost.flops;
}

bool layout_is_preferred(const sdlf_plan *plan, const plan_step *step)
{
    const sdlf_tensor *weights = &step->operation.in[1];
    sdlf_operation asked = step->operation;
    bool constant = sdlf_tensor_present(weights) && plan->buffers[weights->buffer].constant;
    if (plan->options.mode == SDLF_INFER && constant && sdlf_calculator_slot(step->calculator, &asked)->prepare != NULL)
        asked.prepared = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(1), NULL);
    return sdlf_calculator_prefers_channels_last(step->calculator, &asked);
}

/* True if a single operation repays the conversion of its input and output: in host memory, where a conversion is a copy
 * without a kernel launch, and if it performs enough FLOPs for each converted element. */
static bool repays_conversions(const plan_step *step)
{
    enum { FLOPS_OF_AN_ELEMENT = 8 };
    const sdlf_operation *op = &step->operation;
    double elements = (double)(sdlf_tensor_count(&op->in[0]) + sdlf_tensor_count(&op->out[0]));
    return sdlf_calculator_is_on_host(step->calculator) && (double)step->cost.flops >= FLOPS_OF_AN_ELEMENT * elements;
}

static void count_step(const sdlf_plan *plan, layout_votes *votes, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(step->calculator, op);
    sdlf_operation nhwc = sdlf_operation_channels_last(op);
    bool likes = layout_is_preferred(plan, step);
    votes->preferring += likes;
    votes->repaying |= likes && repays_conversions(step);
    if (!slot->channels_last || !slot->prefers_channels_last || !sdlf_calculator_supports(step->calculator, &nhwc))
        return;
    votes->flops_asked += (double)step->cost.flops;
    if (likes) votes->flops_preferring += (double)step->cost.flops;
}

/* In training everything that computes is asked: gradients are two thirds of a convolution's work, and the rest of the
 * network pays for conversions too. */
static void count_trained(const sdlf_plan *plan, layout_votes *votes, const plan_step *step)
{
    (void)plan;
    sdlf_operation nhwc = sdlf_operation_channels_last(&step->operation);
    bool likes = sdlf_calculator_prefers_channels_last(step->calculator, &step->operation) &&
                 sdlf_calculator_supports(step->calculator, &nhwc);
    votes->flops_asked += (double)step->cost.flops;
    votes->preferring += likes;
    if (likes) votes->flops_preferring += (double)step->cost.flops;
}

/* In training all of its operations become channels last, or none; and only if those that prefer it are most of the
 * work. */
static void decide_trained(layout_votes *votes)
{
    for (; votes->calculator != NULL; votes++) {
        if (4 * votes->flops_preferring < 3 * votes->flops_asked) votes->preferring = 0;
    }
}

static void count_all(const sdlf_plan *plan, layout_votes *votes,
                      void (*count)(const sdlf_plan *plan, layout_votes *votes, const plan_step *step))
{
    for (int i = 0; i < plan->step_count; i++) count(plan, votes_of(votes, plan->steps[i].calculator), &plan->steps[i]);
}

sdlf_status layout_count_votes(const sdlf_plan *plan, layout_votes **votes)
{
    const sdlf_plan_options *options = &plan->options;
    size_t most = 2 * (size_t)options->placement_count + 2; /* upper bound on the calculators */
    *votes = calloc(most + 1, sizeof **votes);
    if (*votes == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    if (options->no_fusion || options->keep_activations) return SDLF_OK;
    if (options->dtype == SDLF_FLOAT32) count_all(plan, *votes, count_stored);
    if (layout_storage(*votes) != SDLF_NONE) return SDLF_OK;
    memset(*votes, 0, (most + 1) * sizeof **votes);
    count_all(plan, *votes, options->mode == SDLF_TRAIN ? count_trained : count_step);
    if (options->mode == SDLF_TRAIN) decide_trained(*votes);
    return SDLF_OK;
}

bool layout_uses_nhwc(const layout_votes *votes, const sdlf_calculator *calculator)
{
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    return votes->preferring > 1 || votes->repaying;
}

bool layout_uses_nhwc_everywhere(const layout_votes *votes, const sdlf_calculator *calculator)
{
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    return (votes->preferring > 1 || votes->repaying) && 2 * votes->flops_preferring >= votes->flops_asked;
}

sdlf_dtype layout_storage(const layout_votes *votes)
{
    for (; votes->calculator != NULL; votes++) {
        if (votes->storage != SDLF_NONE && layout_uses_nhwc_everywhere(votes, votes->calculator)) return votes->storage;
    }
    return SDLF_NONE;
}

bool layout_stores(const layout_votes *votes, const sdlf_calculator *calculator, sdlf_dtype storage)
{
    bool all = layout_uses_nhwc_everywhere(votes, calculator);
    while (votes->calculator != NULL && votes->calculator != calculator) votes++;
    return all && votes->storage == storage;
}
