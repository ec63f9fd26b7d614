/* SPDX-License-Identifier: MIT */
/* An inference plan that takes over its model's parameters (options.consume_parameters): values that steps read only in
 * another form (prepacked for their kernel, with normalisations and scales folded in, in another dtype or on a device)
 * are freed as soon as they have been converted, each before the next one, so that only one exists twice at any time.
 * Values that steps read in place are kept. */
#include "framework/plan/passes.h"

#include <stdlib.h>

int plan_source_parameters(const sdlf_plan *plan, const plan_buffer *buffer, int parameter[PLAN_FOLDED])
{
    if (buffer->kind == BUFFER_PARAMETER) parameter[0] = buffer->parameter;
    if (buffer->kind != BUFFER_DERIVED) return buffer->kind == BUFFER_PARAMETER;
    if (buffer->weight_only > 0) {
        parameter[0] = plan->weight_only[buffer->weight_only - 1].weight;
        return 1;
    }
    if (buffer->integers > 0) {
        const plan_integers *w = &plan->integers[buffer->integers - 1];
        parameter[0] = w->weight;
        parameter[1] = buffer->source == w->bias_sums ? w->bias : buffer->source == w->multipliers ? w->factors : -1;
        return parameter[1] >= 0 ? 2 : 1;
    }
    const bool weights = buffer->source == plan->folds[buffer->fold].folded_weight;
    int count = 0, f = buffer->fold;
    do {
        const plan_fold *fold = &plan->folds[f];
        const int part[] = {fold->scale, fold->shift,    fold->mean,
                            fold->bias,  fold->variance, weights ? fold->weight : -1};
        for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
            if (part[i] >= 0) parameter[count++] = part[i];
        f = fold->next - 1;
    } while (f >= 0);
    return count;
}

/* Marks every buffer that a step reads unpacked, or writes. */
static void mark_read(const plan_step *step, bool *read)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (sdlf_tensor_present(&op->in[i]) && !plan_is_prepacked(op, i)) read[op->in[i].buffer] = true;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (sdlf_tensor_present(&op->out[i])) read[op->out[i].buffer] = true;
    }
}

/* Records that the parameters from which the buffer is computed are read at that time. Times come in order. */
static void note_time(const sdlf_plan *plan, const plan_buffer *buffer, int *after, int time)
{
    int parameter[PLAN_FOLDED];
    for (int i = plan_source_parameters(plan, buffer, parameter) - 1; i >= 0; i--) after[parameter[i]] = time;
}

/* True if it is the model's own memory. */
static bool is_in_place(const sdlf_plan *plan, const plan_buffer *buffer)
{
    return buffer->kind == BUFFER_PARAMETER && buffer->memory != NULL && !plan_is_copy_of_model(plan, buffer);
}

static void find_taken(const sdlf_plan *plan, const int *steps, int count, const bool *read, int *after)
{
    for (int p = 0; p < plan->model->parameter_count; p++) after[p] = PLAN_KEEPS;
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->memory != NULL && !buffer->raw && !is_in_place(plan, buffer)) note_time(plan, buffer, after, i);
    }
    for (int i = 0; i < count; i++) {
        const sdlf_operation *op = &plan->steps[steps[i]].operation;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
            const plan_buffer *buffer = plan_is_prepacked(op, j) ? &plan->buffers[op->in[j].buffer] : NULL;
            if (buffer != NULL && (buffer->raw || is_in_place(plan, buffer)))
                note_time(plan, buffer, after, plan->buffer_count + i);
        }
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        if (read[i] && is_in_place(plan, &plan->buffers[i])) after[plan->buffers[i].parameter] = PLAN_KEEPS;
    }
}

sdlf_status plan_find_taken(const sdlf_plan *plan, const int *steps, int count, int **after)
{
    bool *read = calloc((size_t)plan->buffer_count + 1, sizeof *read);
    *after = calloc((size_t)plan->model->parameter_count + 1, sizeof **after);
    if (read == NULL || *after == NULL) {
        free(read);
        free(*after);
        *after = NULL;
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its parameters' list");
    }
    for (int i = 0; i < plan->step_count; i++) mark_read(&plan->steps[i], read);
    find_taken(plan, steps, count, read, *after);
    free(read);
    return SDLF_OK;
}

void plan_take_after(sdlf_plan *plan, const int *after, int buffer, int time)
{
    int parameter[PLAN_FOLDED];
    for (int i = plan_source_parameters(plan, &plan->buffers[buffer], parameter) - 1; i >= 0; i--) {
        int p = parameter[i];
        if (after[p] != time) continue;
        plan->taken = plan->taken || plan->model->source.file == NULL;
        model_drop_values(plan->model, p);
    }
}
