/* SPDX-License-Identifier: MIT */
/* Creating, measuring and freeing plans. */
#include "framework/plan/passes.h"

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
    for (int i = 0; i < plan->weight_only_count; i++) plan_release_scales(&plan->weight_only[i]);
    free(plan->weight_only);
    free(plan->tickets);
    free(plan->loss_layers);
    free(plan->rates);
    free(plan->index_bounds);
    free(plan->constants);
    free(plan->states);
    free(plan);
}

/* Describes the parameters, whose values are drawn where the plan keeps them, or in the model if some have values. */
static sdlf_status describe(sdlf_model *model, const sdlf_plan_options *options, bool outline)
{
    uint64_t seed = options->seed != 0 ? options->seed : 1;
    bool some = model_valued_count(model) > 0;
    sdlf_status status = model_describe(model);
    return status == SDLF_OK && !outline ? model_allocate(model, some ? &seed : NULL) : status;
}

/* Values that were read for a plan whose creation failed are again left to their file. */
static void defer_values(sdlf_model *model)
{
    for (int i = 0; i < model->parameter_count; i++) model_drop_values(model, i);
}

/* Runs all passes except binding; allocates no memory for buffers. */
static sdlf_status make_plan(sdlf_plan **result, sdlf_model *model, const sdlf_plan_options *options, bool outline)
{
    bool from_file = model->source.file != NULL && model->status == SDLF_OK && options->consume_parameters;
    sdlf_status status = from_file ? SDLF_OK : sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    sdlf_plan_options complete = *options;
    status = plan_complete_options(&complete);
    if (status == SDLF_OK && complete.consume_parameters && !outline && model->users > 0)
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
        plan_build_graph,
        plan_lower,
        plan_find_index_bounds,
        plan_sync_norms,
        plan_fuse,
        plan_check_support,
        plan_choose,
        plan_choose_layouts,
        plan_store_rows,
        plan_fuse_stored,
        plan_order_multi_tensor,
        plan_bucket_gradients,
        plan_place,
        plan_assign_offsets,
        plan_make_listing,
    };
    for (size_t i = 0; i < sizeof passes / sizeof passes[0] && status == SDLF_OK; i++) status = passes[i](plan);
    if (status != SDLF_OK) {
        sdlf_plan_free(plan);
        return status;
    }
    plan_fit_lists(plan);
    plan->options.feed = NULL;
    plan->options.placement = NULL; /* the caller's, no longer needed */
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
        if (options->consume_parameters) {
            model_mark_consumed(model);
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
        model_mark_consumed(model);
    else if (builds && model->built)
        model_truncate_parameters(model, valued); /* the next plan draws the rest, including those that were taken */
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
