/* SPDX-License-Identifier: MIT */
/* Weights that are needed only until they have been prepacked, in host memory, where every step that reads them uses
 * its kernel's prepacked form: derived weights (with batch normalisation folded in, or in another dtype than the
 * model's), and those read from a file. Each is computed or read when parameters are loaded, right before it is
 * prepacked; all derived weights of the same operand index share one buffer. On a device they may be shared with other
 * plans. */
#include "framework/plan/passes.h"

#include <stdlib.h>

static bool is_worked_out(const plan_buffer *buffer)
{
    return buffer->kind == BUFFER_DERIVED || (buffer->kind == BUFFER_PARAMETER && buffer->dtype != SDLF_FLOAT32);
}

static bool is_deferred(const sdlf_plan *plan, const plan_buffer *buffer)
{
    return buffer->kind == BUFFER_PARAMETER && buffer->dtype == SDLF_FLOAT32 && plan->options.consume_parameters &&
           plan->model->source.file != NULL && buffer->source == (int)(buffer - plan->buffers);
}

static bool may_be_raw(const sdlf_plan *plan, const plan_buffer *buffer)
{
    if (buffer->first_use < 0 || buffer->space < 0 || buffer->alias >= 0) return false;
    if (plan->options.mode != SDLF_INFER || !plan_is_host_space(plan, buffer->space)) return false;
    return is_worked_out(buffer) || is_deferred(plan, buffer);
}

bool plan_is_prepacked(const sdlf_operation *op, int i)
{
    bool unread = sdlf_operation_type(op)->unread >> i & 1;
    return unread && sdlf_tensor_present(&op->in[i]) && sdlf_tensor_present(&op->prepared);
}

/* A buffer that is a different operand in different steps would need two buffers. */
static void inspect_step(sdlf_plan *plan, const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (!sdlf_tensor_present(&op->in[i])) continue;
        plan_buffer *buffer = &plan->buffers[op->in[i].buffer];
        bool elsewhere = buffer->operand != 0 && buffer->operand != i;
        buffer->raw = buffer->raw && plan_is_prepacked(op, i) && !elsewhere;
        buffer->operand = i;
    }
}

void plan_find_unpacked_weights(sdlf_plan *plan)
{
    int largest[SDLF_MAX_INPUTS] = {0}; /* of each operand */
    for (int i = 1; i < plan->buffer_count; i++) plan->buffers[i].raw = may_be_raw(plan, &plan->buffers[i]);
    for (int i = 0; i < plan->step_count; i++) inspect_step(plan, &plan->steps[i]);
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        int *most = &largest[buffer->operand];
        if (buffer->raw && is_worked_out(buffer) && (*most == 0 || buffer->bytes > plan->buffers[*most].bytes))
            *most = i;
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        plan_buffer *buffer = &plan->buffers[i];
        if (!buffer->raw || !is_worked_out(buffer)) continue;
        buffer->first_use = buffer->last_use = 0; /* between runs, when only outputs are live */
        if (i != largest[buffer->operand]) buffer->alias = largest[buffer->operand];
    }
}

/* The bytes of the weights that a step prepacks, and the step. */
typedef struct weights_of_step {
    int64_t bytes;
    int step;
} weights_of_step;

static int larger_first(const void *a, const void *b)
{
    const weights_of_step *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->step - y->step;
}

sdlf_status plan_order_preparing(const sdlf_plan *plan, int **steps, int *count)
{
    weights_of_step *list = malloc(((size_t)plan->step_count + 1) * sizeof *list);
    *count = 0;
    *steps = malloc(((size_t)plan->step_count + 1) * sizeof **steps);
    bool *listed =
        calloc((size_t)plan->buffer_count + 1, sizeof *listed); /* shared weights are prepacked by the first step */
    if (list == NULL || *steps == NULL || listed == NULL) {
        free(list);
        free(listed);
        free(*steps);
        *steps = NULL;
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for a list of its weights");
    }
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        if (!sdlf_tensor_present(&op->prepared) || listed[op->prepared.buffer]) continue;
        listed[op->prepared.buffer] = true;
        weights_of_step *last = &list[(*count)++];
        *last = (weights_of_step){.step = i};
        for (int j = 1; j < SDLF_MAX_INPUTS; j++) {
            if (plan_is_prepacked(op, j)) last->bytes += plan->buffers[op->in[j].buffer].bytes;
        }
    }
    qsort(list, (size_t)*count, sizeof *list, larger_first);
    for (int i = 0; i < *count; i++) (*steps)[i] = list[i].step;
    free(list);
    free(listed);
    return SDLF_OK;
}
