/* SPDX-License-Identifier: MIT */
/* Buffers that a plan shares with another plan of its model (sdlf_plan_options.reuse). */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

/* Operations are ordered only within one calculator; nothing would order the work that two plans queue on a device. */
static sdlf_status check_space(const sdlf_plan *reuse, const sdlf_calculator *calculator)
{
    for (int i = 0; i < reuse->space_count; i++) {
        const plan_space *space = &reuse->spaces[i];
        if (strcmp(space->name, calculator->space) != 0 || strcmp(space->name, SDLF_HOST_SPACE) == 0) continue;
        if (space->calculator != calculator)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the plan to reuse uses another calculator in %s than this one",
                             space->name);
    }
    return SDLF_OK;
}

sdlf_status plan_check_reuse(const sdlf_plan *plan)
{
    const sdlf_plan *reuse = plan->options.reuse;
    if (reuse == NULL) return SDLF_OK;
    if (reuse->model != plan->model)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the plan to reuse is of another model ('%s', this is '%s')",
                         reuse->model->name, plan->model->name);
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->space_count && status == SDLF_OK; i++)
        status = check_space(reuse, plan->spaces[i].calculator);
    return status;
}

/* The list of a buffer: its parameter's, or the last, for data and the loss scale. -1: the buffer is not reused. */
static int list_of(const sdlf_plan *plan, const plan_buffer *buffer)
{
    if (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE) return buffer->parameter;
    return buffer->kind == BUFFER_DATA || buffer->kind == BUFFER_SCALE ? plan->model->parameter_count : -1;
}

sdlf_status plan_list_reused(sdlf_plan *plan)
{
    const sdlf_plan *reuse = plan->options.reuse;
    if (reuse == NULL) return SDLF_OK;
    size_t lists = (size_t)plan->model->parameter_count + 1, buffers = (size_t)reuse->buffer_count;
    plan->reused.first = calloc(lists, sizeof *plan->reused.first);
    plan->reused.next = calloc(buffers, sizeof *plan->reused.next);
    if (plan->reused.first == NULL || plan->reused.next == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for what it reuses");
    for (int i = reuse->buffer_count - 1; i > 0; i--) { /* from the back, so that lists are in order */
        int list = list_of(plan, &reuse->buffers[i]);
        if (list < 0) continue;
        plan->reused.next[i] = plan->reused.first[list];
        plan->reused.first[list] = i;
    }
    return SDLF_OK;
}

void plan_release_reused(sdlf_plan *plan)
{
    free(plan->reused.first);
    free(plan->reused.next);
    plan->reused.first = plan->reused.next = NULL;
}

/* True if the data with that index is the same in this plan and the one that it reuses. */
static bool same_data(const sdlf_plan *plan, int data)
{
    const sdlf_plan *reuse = plan->options.reuse;
    if (data >= PLAN_FIRST_CONSTANT + reuse->options.constant_count) return false;
    return plan_data(plan, data)->data == plan_data(reuse, data)->data;
}

const plan_buffer *plan_reused_buffer(const sdlf_plan *plan, const plan_buffer *wanted)
{
    const sdlf_plan *reuse = plan->options.reuse;
    int list = list_of(plan, wanted);
    if (reuse == NULL || list < 0) return NULL;
    for (int i = plan->reused.first[list]; i != 0; i = plan->reused.next[i]) {
        const plan_buffer *buffer = &reuse->buffers[i];
        if (buffer->kind == wanted->kind && buffer->state == wanted->state && buffer->data == wanted->data &&
            buffer->dtype == wanted->dtype && buffer->bytes == wanted->bytes && buffer->memory != NULL &&
            buffer->space >= 0 && (wanted->kind != BUFFER_DATA || same_data(plan, wanted->data)) &&
            strcmp(reuse->spaces[buffer->space].name, plan->spaces[wanted->space].name) == 0)
            return buffer;
    }
    return NULL;
}
