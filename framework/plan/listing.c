/* SPDX-License-Identifier: MIT */
/* The lines of a plan's listings: one for each layer, or group of fused layers. Built once, when the plan is
 * made. */
#include "framework/plan/passes.h"

#include <stdlib.h>
#include <string.h>

#include "framework/input_layer.h"

/* True if this node has a line. Inputs, dead nodes and nodes fused into an earlier one have none. */
static bool is_listed(const plan_node *nodes, int index)
{
    const plan_node *node = &nodes[index];
    return node->live && node->group == index && node->layer->type != &sdlf_input_layer_class;
}

/* Links the members of each group and the steps of each line, in order. */
static sdlf_status make_chains(sdlf_plan *plan)
{
    plan_listing *listing = &plan->listing;
    size_t nodes = (size_t)plan->node_count + 1, steps = (size_t)plan->step_count + 1;
    listing->line = malloc(nodes * sizeof *listing->line);
    listing->entry = malloc(nodes * sizeof *listing->entry);
    listing->next_step = malloc(steps * sizeof *listing->next_step);
    if (listing->line == NULL || listing->entry == NULL || listing->next_step == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its listing");
    for (int i = 0; i < plan->node_count; i++) {
        int group = plan->nodes[i].group; /* its first member */
        listing->entry[i] = (plan_entry){.line = -1, .next_member = -1, .last_member = i, .first_step = -1};
        if (group == i) continue;
        listing->entry[listing->entry[group].last_member].next_member = i;
        listing->entry[group].last_member = i;
    }
    for (int i = plan->step_count - 1; i >= 0; i--) {
        plan_entry *entry = &listing->entry[plan->steps[i].node];
        listing->next_step[i] = entry->first_step;
        entry->first_step = i;
    }
    return SDLF_OK;
}

/* "conv2d+relu+max_pool2d"; NULL for a group of one. */
static sdlf_status join_names(sdlf_plan *plan, int group, bool types, char **joined)
{
    const plan_entry *entry = plan->listing.entry;
    size_t length = 1;
    if (entry[group].next_member < 0) return SDLF_OK;
    for (int i = group; i >= 0; i = entry[i].next_member) {
        const sdlf_layer *layer = plan->nodes[i].layer;
        length += strlen(types ? layer->type->name : layer->name) + 1;
    }
    *joined = malloc(length);
    if (*joined == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for names");
    char *end = *joined;
    for (int i = group; i >= 0; i = entry[i].next_member) {
        const char *name = types ? plan->nodes[i].layer->type->name : plan->nodes[i].layer->name;
        if (i != group) *end++ = '+';
        memcpy(end, name, strlen(name) + 1);
        end += strlen(name);
    }
    return SDLF_OK;
}

sdlf_status plan_make_listing(sdlf_plan *plan)
{
    sdlf_status status = make_chains(plan);
    for (int i = 0; i < plan->node_count && status == SDLF_OK; i++) {
        plan_node *node = &plan->nodes[i];
        if (node->group != i) continue;
        status = join_names(plan, i, false, &node->group_name);
        if (status == SDLF_OK) status = join_names(plan, i, true, &node->group_type);
        if (!is_listed(plan->nodes, i)) continue;
        plan->listing.entry[i].line = plan->listing.count;
        plan->listing.line[plan->listing.count++] = i;
    }
    return status;
}

void plan_release_listing(sdlf_plan *plan)
{
    free(plan->listing.line);
    free(plan->listing.entry);
    free(plan->listing.next_step);
}

/* ---- lines ---- */

int sdlf_plan_layer_count(const sdlf_plan *plan)
{
    if (plan == NULL) return 0;
    return plan->listing.count;
}

int sdlf_plan_layer_of(const sdlf_plan *plan, const char *layer)
{
    if (plan == NULL || layer == NULL) return -1;
    for (int i = plan_find_node(plan, layer, 0); i >= 0; i = plan_find_node(plan, layer, i + 1)) {
        int line = plan->listing.entry[plan->nodes[i].group].line;
        if (line >= 0) return line;
    }
    return -1;
}

/* Adds a step's cost and time to its layer's line. */
static void add_step(const sdlf_plan *plan, const plan_step *step, sdlf_layer_info *info)
{
    bool forward = step->phase == SDLF_PHASE_FORWARD;
    sdlf_cost *cost = forward ? &info->forward_cost : &info->backward_cost;
    cost->flops += step->cost.flops;
    cost->bytes += step->cost.bytes;
    *(forward ? &info->forward_seconds : &info->backward_seconds) += step->seconds;
    *(forward ? &info->forward : &info->backward) = step->calculator->type->name;
    if (forward) info->offset = plan_arena_offset(plan, &step->operation.out[0]);
}

sdlf_layer_info sdlf_plan_layer_info(const sdlf_plan *plan, int index)
{
    if (plan == NULL) return (sdlf_layer_info){0};
    const plan_listing *listing = &plan->listing;
    if (index < 0 || index >= listing->count) return (sdlf_layer_info){.offset = -1};
    int first = listing->line[index];
    const plan_node *node = &plan->nodes[first], *last = &plan->nodes[listing->entry[first].last_member];
    const sdlf_tensor *output = &plan->values[last->first_value].tensor; /* the last member's output is the group's */
    sdlf_layer_info info = {
        .layer = node->group_name != NULL ? node->group_name : node->layer->name,
        .type = node->group_type != NULL ? node->group_type : node->layer->type->name,
        .forward = node->forward->type->name,
        .shape = output->shape,
        .dtype = output->dtype,
        .offset = -1,
    };
    for (int i = first; i >= 0; i = listing->entry[i].next_member) info.parameters += plan->nodes[i].parameter_elements;
    for (int i = listing->entry[first].first_step; i >= 0; i = listing->next_step[i]) {
        if (!plan_step_moves(&plan->steps[i])) add_step(plan, &plan->steps[i], &info);
    }
    return info;
}
