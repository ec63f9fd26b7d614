/* SPDX-License-Identifier: MIT */
/* Sharing: what a plan finds in the memory of another plan of its model (sdlf_plan_options.share). */
#include "framework/plan/plan_internal.h"

#include <stdlib.h>
#include <string.h>

/* A device's work is in order within one calculator alone, and nothing would order what two plans queue. */
static sdlf_status check_space(const sdlf_plan *share, const sdlf_calculator *calculator)
{
    for (int i = 0; i < share->space_count; i++) {
        const plan_space *space = &share->spaces[i];
        if (strcmp(space->name, calculator->space) != 0 || strcmp(space->name, SDLF_HOST_SPACE) == 0) continue;
        if (space->calculator != calculator)
            return sdlf_fail(SDLF_ERROR_ARGUMENT,
                             "plan: the plan to share with uses another calculator in %s than this one", space->name);
    }
    return SDLF_OK;
}

sdlf_status plan_check_share(const sdlf_plan *plan)
{
    const sdlf_plan *share = plan->options.share;
    if (share == NULL) return SDLF_OK;
    if (share->model != plan->model)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the plan to share with is of another model ('%s', this is '%s')",
                         share->model->name, plan->model->name);
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->space_count && status == SDLF_OK; i++)
        status = check_space(share, plan->spaces[i].calculator);
    return status;
}

/* Which list a buffer is in: that of its parameter, or the last, of data. -1: it is nothing to share. */
static int list_of(const sdlf_plan *plan, const plan_buffer *buffer)
{
    if (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE) return buffer->parameter;
    return buffer->kind == BUFFER_DATA ? plan->model->parameter_count : -1;
}

sdlf_status plan_list_shared(sdlf_plan *plan)
{
    const sdlf_plan *share = plan->options.share;
    if (share == NULL) return SDLF_OK;
    size_t lists = (size_t)plan->model->parameter_count + 1, buffers = (size_t)share->buffer_count;
    plan->shared.first = calloc(lists, sizeof *plan->shared.first);
    plan->shared.next = calloc(buffers, sizeof *plan->shared.next);
    if (plan->shared.first == NULL || plan->shared.next == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for what it shares");
    for (int i = share->buffer_count - 1; i > 0; i--) { /* from behind, so that the lists are in order */
        int list = list_of(plan, &share->buffers[i]);
        if (list < 0) continue;
        plan->shared.next[i] = plan->shared.first[list];
        plan->shared.first[list] = i;
    }
    return SDLF_OK;
}

void plan_release_shared(sdlf_plan *plan)
{
    free(plan->shared.first);
    free(plan->shared.next);
    plan->shared.first = plan->shared.next = NULL;
}

/* Do the plan and the one that it shares with mean the same data by that number? */
static bool same_data(const sdlf_plan *plan, int data)
{
    const sdlf_plan *share = plan->options.share;
    if (data >= PLAN_FIRST_CONSTANT + share->options.constant_count) return false;
    return plan_data(plan, data)->data == plan_data(share, data)->data;
}

const plan_buffer *plan_shared_buffer(const sdlf_plan *plan, const plan_buffer *wanted)
{
    const sdlf_plan *share = plan->options.share;
    int list = list_of(plan, wanted);
    if (share == NULL || list < 0) return NULL;
    for (int i = plan->shared.first[list]; i != 0; i = plan->shared.next[i]) {
        const plan_buffer *buffer = &share->buffers[i];
        if (buffer->kind == wanted->kind && buffer->state == wanted->state && buffer->data == wanted->data &&
            buffer->dtype == wanted->dtype && buffer->bytes == wanted->bytes && buffer->memory != NULL &&
            buffer->space >= 0 && (wanted->kind != BUFFER_DATA || same_data(plan, wanted->data)) &&
            strcmp(share->spaces[buffer->space].name, plan->spaces[wanted->space].name) == 0)
            return buffer;
    }
    return NULL;
}
