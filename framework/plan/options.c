/* SPDX-License-Identifier: MIT */
/* A plan's options: fills in defaults and rejects invalid combinations. */
#include "framework/plan/passes.h"

#include <math.h>

/* Rejects lists that have a count but no pointer. */
static sdlf_status check_lists(const sdlf_plan_options *options)
{
    const char *missing = NULL;
    if (options->placement_count > 0 && options->placement == NULL) missing = "placement";
    if (options->constant_count > 0 && options->constants == NULL) missing = "constants";
    if (options->feed != NULL && options->feed->samples == NULL) missing = "feed->samples";
    if (options->feed != NULL && options->feed->labels == NULL) missing = "feed->labels";
    if (missing != NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: options->%s is NULL", missing);
    for (int i = 0; i < options->placement_count; i++) {
        if (options->placement[i].layer == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: options->placement[%d].layer is NULL", i);
    }
    for (int i = 0; i < options->constant_count; i++) {
        if (options->constants[i].input == NULL)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: options->constants[%d].input is NULL", i);
    }
    return SDLF_OK;
}

/* Defaults of loss scaling, which inference ignores. */
static sdlf_status complete_loss_scale(sdlf_plan_options *options)
{
    sdlf_loss_scale_rule *rule = &options->loss_scale_rule;
    if (options->mode != SDLF_TRAIN) options->loss_scale = 0;
    if (options->loss_scale == SDLF_LOSS_SCALE_DYNAMIC) {
        options->loss_scale = 65536;
        if (rule->interval == 0) rule->interval = 2000;
    }
    if (rule->growth == 0) rule->growth = 2;
    if (rule->backoff == 0) rule->backoff = 0.5f;
    if (!(options->loss_scale >= 0) || isinf(options->loss_scale))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: loss_scale must be a number from 0, not %g",
                         (double)options->loss_scale);
    if (options->loss_scale > 0 && options->gradients_only)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: loss_scale is for updates, which gradients_only leaves out");
    return SDLF_OK;
}

/* Batch, calculators and dtype. */
static sdlf_status complete_basics(sdlf_plan_options *options)
{
    if (options->batch < 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: batch must be at least 1, not %lld", (long long)options->batch);
    if (options->batch > INT32_MAX)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: batch must be at most %d, not %lld", INT32_MAX,
                         (long long)options->batch);
    if (options->forward == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: no calculator was given");
    if (options->backward == NULL) options->backward = options->forward;
    if (options->dtype == SDLF_NONE) options->dtype = SDLF_FLOAT32;
    if (options->dtype != SDLF_FLOAT32 && options->dtype != SDLF_FLOAT64)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: dtype must be float32 or float64, not %s",
                         sdlf_dtype_name(options->dtype));
    return SDLF_OK;
}

/* Options of training other than the optimizer's update. */
static sdlf_status complete_rules(sdlf_plan_options *options)
{
    if (!(options->clip_norm >= 0) || isinf(options->clip_norm))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: clip_norm must be a number from 0, not %g", options->clip_norm);
    if (!(options->label_smoothing >= 0 && options->label_smoothing < 1))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: label smoothing must be in [0, 1), not %g",
                         options->label_smoothing);
    if (!(options->ema >= 0 && options->ema < 1))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: ema must be in [0, 1), not %g", options->ema);
    if (options->lookahead_share == 0) options->lookahead_share = 0.5;
    if (options->lookahead < 0 || !(options->lookahead_share > 0 && options->lookahead_share <= 1))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "plan: lookahead must be 0 or more and its share in (0, 1], not %d and %g", options->lookahead,
                         options->lookahead_share);
    if (options->accumulate && (options->mode != SDLF_TRAIN || options->gradients_only || options->feed != NULL))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: accumulate is for training plans without a feed that update");
    sdlf_status status = complete_loss_scale(options);
    if (status != SDLF_OK) return status;
    if (options->eval_mode && (options->mode != SDLF_TRAIN || !options->gradients_only))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: eval_mode is for training plans with gradients_only");
    return SDLF_OK;
}

/* Options for this rank's share of the training. */
static sdlf_status complete_ranks(sdlf_plan_options *options)
{
    if (!(options->rank_fraction >= 0) || isinf(options->rank_fraction) || options->first_sample < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: rank_fraction %g and first_sample %lld must not be below 0",
                         options->rank_fraction, (long long)options->first_sample);
    options->shard_states = options->shard_states && options->communicator != NULL && options->mode == SDLF_TRAIN;
    if (options->shard_states && (options->ema > 0 || options->lookahead > 0 || options->gradients_only))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: shard_states is for updates, and without ema and lookahead");
    bool narrow = options->gradient_dtype == SDLF_FLOAT16 || options->gradient_dtype == SDLF_BFLOAT16;
    if (!narrow && options->gradient_dtype != SDLF_NONE)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: gradient_dtype must be float16 or bfloat16, not %s",
                         sdlf_dtype_name(options->gradient_dtype));
    if (options->sync_batch_norm && options->communicator != NULL &&
        (options->samples_that_count < 0 || options->samples_of_all < 1 ||
         options->samples_that_count > options->samples_of_all))
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "plan: sync_batch_norm: expected samples_that_count of 0 to samples_of_all, found %lld of %lld",
            (long long)options->samples_that_count, (long long)options->samples_of_all);
    return SDLF_OK;
}

static sdlf_status complete_optimizer(sdlf_plan_options *options)
{
    sdlf_status status = sdlf_optimizer_complete(&options->optimizer);
    if (status != SDLF_OK) return status;
    if (plan_state_count(options) > 3)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the states of %s, ema and lookahead are more than 3",
                         options->optimizer.type->name);
    if (options->shard_states && options->optimizer.type->form != SDLF_UPDATE_PLAIN)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: shard_states: %s cannot update a shard of a parameter",
                         options->optimizer.type->name);
    if (options->shard_states && options->communicator->type->allgather_begin == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "plan: shard_states: communicator '%s' cannot share parameters",
                         options->communicator->type->name);
    return SDLF_OK;
}

sdlf_status plan_complete_options(sdlf_plan_options *options)
{
    sdlf_status status = complete_basics(options);
    if (status == SDLF_OK) status = complete_rules(options);
    if (status == SDLF_OK) status = complete_ranks(options);
    if (status != SDLF_OK) return status;
    if (options->consume_parameters && options->mode != SDLF_INFER)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: consume_parameters is for inference: training changes them");
    status = check_lists(options);
    return status == SDLF_OK ? complete_optimizer(options) : status;
}
