/* A plan for inference that takes its model's parameters (options.take_parameters): values that no step reads but in the form that
 * their kernel likes best are freed as soon as they are in it, each before the next is made ready, so that one alone is ever there
 * twice. Values that steps read as they are, and those in other memory than the host's, stay. */
#include "framework/plan/passes.h"

#include <stdlib.h>

#include "framework/heap.h"

/* The parameter that the buffer holds, or whose weights it holds with normalisation folded in; -1: it holds something else. */
static int parameter_of(const sdlf_plan *plan, const plan_buffer *buffer)
{
    if (buffer->kind == BUFFER_PARAMETER) return buffer->parameter;
    const plan_fold *fold = buffer->kind == BUFFER_DERIVED ? &plan->folds[buffer->fold] : NULL;
    return fold != NULL && buffer->source == fold->folded_weight ? fold->weight : -1;
}

static bool is_made_ready(const sdlf_operation *op)
{
    return sdlf_tensor_present(&op->prepared) && op->in[0].layout != SDLF_CSR; /* of these, the matrix is */
}

/* Mark every buffer that a step reads, or writes, as it is. */
static void mark_read(const plan_step *step, bool *read)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (sdlf_tensor_present(&op->in[i]) && !(i == 1 && is_made_ready(op))) read[op->in[i].buffer] = true;
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        if (sdlf_tensor_present(&op->out[i])) read[op->out[i].buffer] = true;
    }
}

/* The vectors of a fold are read whenever its weight is worked out. */
static void keep_vectors(const plan_fold *fold, int *after)
{
    const int vector[] = {fold->bias, fold->scale, fold->shift, fold->mean, fold->variance};
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        if (vector[i] >= 0) after[vector[i]] = PLAN_KEEPS;
    }
}

static void find_taken(const sdlf_plan *plan, const bool *read, int *after)
{
    for (int p = 0; p < plan->model->parameter_count; p++) after[p] = PLAN_KEEPS;
    for (int i = 0; i < plan->step_count; i++) {
        const sdlf_operation *op = &plan->steps[i].operation;
        int p = is_made_ready(op) ? parameter_of(plan, &plan->buffers[op->in[1].buffer]) : -1;
        if (p >= 0) after[p] = i;
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        int p = parameter_of(plan, buffer);
        bool used = buffer->memory != NULL;
        if (p >= 0 && used && (read[i] || !plan_is_host_space(plan, buffer->space))) after[p] = PLAN_KEEPS;
    }
    for (int i = 0; i < plan->fold_count; i++) keep_vectors(&plan->folds[i], after);
}

sdlf_status plan_find_taken(const sdlf_plan *plan, int **after)
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
    find_taken(plan, read, *after);
    free(read);
    return SDLF_OK;
}

void plan_take_after(sdlf_plan *plan, const int *after, int step)
{
    int p = parameter_of(plan, &plan->buffers[plan->steps[step].operation.in[1].buffer]);
    if (p < 0 || after[p] != step) return;
    sdlf_tensor *value = &plan->model->parameters[p].value;
    sdlf_heap_discard(value->data, sdlf_tensor_bytes(value));
    sdlf_tensor_release(value, NULL);
    plan->taken = true;
}
