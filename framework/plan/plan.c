/* SPDX-License-Identifier: MIT */
/* Making, measuring and freeing plans. */
#include "framework/plan/passes.h"

#include <math.h>
#include <stdlib.h>

#include "framework/heap.h"
#include "framework/require.h"

void sdlf_plan_free(sdlf_plan *plan)
{
    if (plan == NULL) return;
    plan_discard_recordings(plan);
    plan_release_marks(plan);
    plan_release_stages(plan);
    plan_unpin_memory(plan);
    if (plan->bound) model_stop_using(plan->model, plan_uses_states(plan));
    for (int i = 0; i < plan->space_count; i++) {
        plan_space *space = &plan->spaces[i];
        if (space->calculator != NULL && space->arena != NULL)
            space->calculator->type->deallocate(space->calculator, space->arena);
        else
            sdlf_heap_free(space->arena);
    }
    for (int i = 0; i < plan->step_count; i++) {
        free(plan->steps[i].label);
        free(plan->steps[i].content);
    }
    for (int i = 0; i < plan->node_count; i++) {
        free(plan->nodes[i].group_name);
        free(plan->nodes[i].group_type);
    }
    plan_uses_release(&plan->uses);
    plan_release_reused(plan);
    plan_release_listing(plan);
    free(plan->steps);
    free(plan->buffers);
    free(plan->values);
    free(plan->saved);
    free(plan->gradients);
    free(plan->nodes);
    free(plan->folds);
    for (int i = 0; i < plan->integers_count; i++) free(plan->integers[i].scale);
    free(plan->integers);
    for (int i = 0; i < plan->packed_count; i++) plan_release_scales(&plan->packed[i]);
    free(plan->packed);
    free(plan->tickets);
    free(plan->loss_layers);
    free(plan->rates);
    free(plan->index_bounds);
    free(plan->constants);
    free(plan->states);
    free(plan);
}

/* What is announced, and not there. */
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

/* Defaults of loss scaling, which inference takes no notice of. */
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

static sdlf_status check_options(sdlf_plan_options *options)
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
    sdlf_status scaling = complete_loss_scale(options);
    if (scaling != SDLF_OK) return scaling;
    if (options->eval_mode && (options->mode != SDLF_TRAIN || !options->gradients_only))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: eval_mode is for training plans with gradients_only");
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
    if (options->take_parameters && options->mode != SDLF_INFER)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: take_parameters is for inference: training changes them");
    sdlf_status status = check_lists(options);
    if (status == SDLF_OK) status = sdlf_optimizer_complete(&options->optimizer);
    if (status == SDLF_OK && plan_state_count(options) > 3)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the states of %s, ema and lookahead are more than 3",
                         options->optimizer.type->name);
    if (status == SDLF_OK && options->shard_states && options->optimizer.type->form != SDLF_UPDATE_PLAIN)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: shard_states: %s cannot update a shard of a parameter",
                         options->optimizer.type->name);
    if (status == SDLF_OK && options->shard_states && options->communicator->type->allgather_begin == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "plan: shard_states: communicator '%s' cannot share parameters",
                         options->communicator->type->name);
    return status;
}

/* Parameters whose values are drawn where the plan keeps them; beside some that have values, here. */
static sdlf_status describe(sdlf_model *model, const sdlf_plan_options *options, bool outline)
{
    uint64_t seed = options->seed != 0 ? options->seed : 1;
    bool some = model_valued_count(model) > 0;
    sdlf_status status = model_describe(model);
    return status == SDLF_OK && !outline ? model_allocate(model, some ? &seed : NULL) : status;
}

/* Values that were read for a plan that could not be made are in their file as before. */
static void defer_values(sdlf_model *model)
{
    for (int i = 0; i < model->parameter_count; i++) model_drop_values(model, i);
}

/* Everything but memory. */
static sdlf_status make_plan(sdlf_plan **result, sdlf_model *model, const sdlf_plan_options *options, bool outline)
{
    bool from_file = model->source.file != NULL && model->status == SDLF_OK && options->take_parameters;
    sdlf_status status = from_file ? SDLF_OK : sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    sdlf_plan_options complete = *options;
    status = check_options(&complete);
    if (status == SDLF_OK && complete.take_parameters && !outline && model->users > 0)
        status = sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the parameters of '%s' cannot be taken: another plan uses them",
                           model->name);
    if (status == SDLF_OK && complete.shard_states && model->shards != complete.communicator->rank_count)
        status =
            sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: shard_states: the model's states are whole; a trainer divides them");
    if (status == SDLF_OK && !model->built) status = describe(model, &complete, outline);
    if (status != SDLF_OK) return status;
    sdlf_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan->model = model;
    plan->options = complete;
    plan->loss_value = -1;
    if (options->feed != NULL) plan->feed = (plan_feed){.present = true, .feed = *options->feed};
    static sdlf_status (*const passes[])(sdlf_plan *) = {
        plan_build_graph,  plan_lower,          plan_find_index_bounds,
        plan_sync_norms,   plan_fuse,           plan_check_support,
        plan_choose,       plan_choose_layouts, plan_store_rows,
        plan_fuse_stored,  plan_fuse_copies,    plan_line_up_parameters,
        plan_add_sums,     plan_place,          plan_lay_out,
        plan_make_listing,
    };
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && status == SDLF_OK; i++) status = passes[i](plan);
    if (status != SDLF_OK) {
        sdlf_plan_free(plan);
        return status;
    }
    plan_fit_lists(plan);
    plan->options.feed = NULL;
    plan->options.placement = NULL; /* the caller's, read by now */
    plan->options.constants = NULL;
    plan->options.states = NULL;
    plan->options.conv_algorithm = plan->options.gemm_algorithm = NULL;
    plan->options.choices = NULL;
    *result = plan;
    return SDLF_OK;
}

sdlf_status sdlf_plan_create(sdlf_plan **plan, sdlf_model *model, const sdlf_plan_options *options)
{
    SDLF_REQUIRE(plan);
    *plan = NULL;
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(options);
    bool builds = !model->built;
    int valued = builds ? model_valued_count(model) : 0;
    sdlf_status status = make_plan(plan, model, options, false);
    if (status == SDLF_OK) {
        (*plan)->draws = builds && valued == 0;
        status = plan_bind(*plan);
        (*plan)->draws = false;
    }
    if (status == SDLF_OK) {
        if (model->source.file != NULL) (*plan)->taken = true;
        if (options->take_parameters) {
            model_give_away(model);
            sdlf_heap_trim();
        }
        return SDLF_OK;
    }
    bool taken = *plan != NULL && (*plan)->taken;
    sdlf_plan_free(*plan);
    *plan = NULL;
    if (model->source.file != NULL)
        defer_values(model);
    else if (taken && !(builds && valued == 0))
        model_give_away(model);
    else if (builds && model->built)
        model_truncate_parameters(model, valued); /* the next plan draws the rest, and those of them that were taken */
    return status;
}

sdlf_status sdlf_plan_outline(sdlf_plan **plan, sdlf_model *model, const sdlf_plan_options *options)
{
    SDLF_REQUIRE(plan);
    *plan = NULL;
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(options);
    return make_plan(plan, model, options, true);
}

sdlf_status sdlf_plan_measure(sdlf_memory_info *memory, sdlf_model *model, const sdlf_plan_options *options)
{
    SDLF_REQUIRE(memory);
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(options);
    sdlf_plan *plan;
    *memory = (sdlf_memory_info){0};
    sdlf_status status = make_plan(&plan, model, options, true);
    if (status != SDLF_OK) return status;
    *memory = sdlf_plan_memory(plan);
    sdlf_plan_free(plan);
    return SDLF_OK;
}
