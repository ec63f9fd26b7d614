/* SPDX-License-Identifier: MIT */
/* The placement pass: every buffer gets a memory space; where a step reads what was last written in another space, a
 * copy is inserted before it. Buffers that no step writes (controls, constant parameters) are instead loaded into every
 * space. */
#include "framework/plan/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct placing {
    sdlf_plan *plan;
    plan_step *old; /* the original steps; the plan's list is rebuilt */
    int old_count;
    int (*copy)[PLAN_MAX_SPACES]; /* of each original buffer, its copy in each space; 0: none yet */
    unsigned char *valid;         /* of each original buffer, the spaces that hold its current content (bits) */
    int *writer;                  /* of each original buffer, the node of the first placed step that writes it; -1 */
    int originals;
    plan_words *words; /* descriptions of the original buffers; NULL: not needed yet */
} placing;

/* The buffer that holds a copy of `buffer` in `space`; 0: out of memory. */
static int buffer_in(placing *p, int buffer, int space)
{
    sdlf_plan *plan = p->plan;
    if (plan->buffers[buffer].space < 0) {
        plan->buffers[buffer].space = space;
        p->copy[buffer][space] = buffer;
    }
    if (p->copy[buffer][space] != 0) return p->copy[buffer][space];
    plan_buffer original = plan->buffers[buffer];
    int copy = plan_new_buffer(plan, original.kind, original.dtype, original.bytes);
    if (copy == 0) return 0;
    original.space = space;
    original.source = buffer;
    plan->buffers[copy] = original;
    p->copy[buffer][space] = copy;
    return copy;
}

static sdlf_status append_step(placing *p, const plan_step *step)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *out = &step->operation.out[i];
        if (sdlf_tensor_present(out) && out->buffer < p->originals && p->writer[out->buffer] < 0)
            p->writer[out->buffer] = step->node;
    }
    return plan_append_step(p->plan, step);
}

/* Describes a buffer; if no rule names it, it is memory of the layer that writes it. NULL: out of memory. */
static char *describe(placing *p, int buffer)
{
    if (p->words == NULL) p->words = plan_name_buffers(p->plan);
    if (p->words == NULL) return NULL;
    plan_words words = p->words[buffer];
    if (words.name == NULL && p->writer[buffer] >= 0)
        words = (plan_words){"what is kept by ", p->plan->nodes[p->writer[buffer]].layer->name};
    if (words.name == NULL) words = (plan_words){"scratch ", "memory"};
    return plan_join_words(words);
}

static sdlf_status append_copy(placing *p, const plan_step *reader, int buffer, int from, int to)
{
    sdlf_plan *plan = p->plan;
    int source = buffer_in(p, buffer, from), destination = buffer_in(p, buffer, to);
    if (source == 0 || destination == 0) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    int64_t bytes = plan->buffers[buffer].bytes;
    bool up = plan_is_host_space(plan, from);
    plan_step step = {
        .operation = {.kind = SDLF_COPY},
        .calculator = plan->spaces[up ? to : from].calculator,
        .phase = SDLF_PHASE_COPY,
        .serves = reader->phase,
        .node = reader->node,
        .cost = {.flops = 0, .bytes = bytes},
    };
    step.operation.in[0] = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), NULL);
    step.operation.in[0].buffer = source;
    step.operation.out[0] = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), NULL);
    step.operation.out[0].buffer = destination;
    size_t length = strlen(plan->spaces[from].name) + strlen(plan->spaces[to].name) + 16;
    step.label = malloc(length);
    step.content = describe(p, buffer);
    sdlf_status status = SDLF_ERROR_MEMORY;
    if (step.label == NULL || step.content == NULL) {
        sdlf_fail(status, "plan: out of memory");
    } else {
        snprintf(step.label, length, "copy %s to %s", plan->spaces[from].name, plan->spaces[to].name);
        status = append_step(p, &step);
    }
    if (status == SDLF_OK) return SDLF_OK;
    free(step.label);
    free(step.content);
    return status;
}

/* Ensures that `space` holds the current content of the buffer. */
static sdlf_status make_valid(placing *p, const plan_step *reader, int buffer, int space)
{
    sdlf_plan *plan = p->plan;
    if (plan->buffers[buffer].constant || (p->valid[buffer] & 1u << space)) return SDLF_OK;
    int from = -1, host = -1;
    for (int i = 0; i < plan->space_count; i++) {
        if (plan_is_host_space(plan, i)) host = i;
        if (from < 0 && (p->valid[buffer] & 1u << i)) from = i;
    }
    if (from < 0) { /* never written: an input, a state; it is placed where it is first used */
        if (buffer_in(p, buffer, space) == 0) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
        p->valid[buffer] = (unsigned char)(1u << plan->buffers[buffer].space);
        from = plan->buffers[buffer].space;
        if (from == space) return SDLF_OK;
    }
    if (host < 0) host = plan_named_space(plan, SDLF_HOST_SPACE, NULL);
    if (host < 0) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "plan: more than %d memory spaces", PLAN_MAX_SPACES);
    if (host >= 0 && (p->valid[buffer] & 1u << host)) from = host;
    if (from != host && space != host) { /* between two devices: via the host */
        sdlf_status status = append_copy(p, reader, buffer, from, host);
        if (status != SDLF_OK) return status;
        p->valid[buffer] |= (unsigned char)(1u << host);
        from = host;
    }
    sdlf_status status = append_copy(p, reader, buffer, from, space);
    p->valid[buffer] |= (unsigned char)(1u << space);
    return status;
}

static sdlf_status place_step(placing *p, plan_step step)
{
    sdlf_plan *plan = p->plan;
    int space = plan_space_of(plan, step.calculator);
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        sdlf_tensor *in = &step.operation.in[i];
        if (!sdlf_tensor_present(in)) continue;
        sdlf_status status = make_valid(p, &step, in->buffer, space);
        if (status != SDLF_OK) return status;
        in->buffer = buffer_in(p, in->buffer, space);
        if (in->buffer == 0) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    }
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        sdlf_tensor *out = &step.operation.out[i];
        if (!sdlf_tensor_present(out)) continue;
        int buffer = out->buffer;
        bool partial = p->valid[buffer] != 0 && !plan_covers_buffer(plan, out);
        if (plan_output_is_updated(&step.operation, i) || partial) {
            sdlf_status status = make_valid(p, &step, buffer, space);
            if (status != SDLF_OK) return status;
        }
        out->buffer = buffer_in(p, buffer, space);
        if (out->buffer == 0) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
        p->valid[buffer] = (unsigned char)(1u << space);
    }
    return append_step(p, &step);
}

/* Places each parameter or state that steps write where it is written last; a run starts with its content there. */
static void home_written_buffers(placing *p)
{
    sdlf_plan *plan = p->plan;
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            if (!sdlf_tensor_present(&op->out[j])) continue;
            plan_buffer *buffer = &plan->buffers[op->out[j].buffer];
            bool kept = buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE ||
                        buffer->kind == BUFFER_SCALE || op->out[j].buffer == plan->metrics.buffer;
            if (kept) buffer->space = plan_space_of(plan, p->old[i].calculator);
        }
    }
    for (int i = 1; i < p->originals; i++) {
        int space = plan->buffers[i].space;
        if (space < 0) continue;
        p->copy[i][space] = i;
        p->valid[i] = (unsigned char)(1u << space);
    }
}

sdlf_status plan_place(sdlf_plan *plan)
{
    placing p = {.plan = plan, .old = plan->steps, .old_count = plan->step_count, .originals = plan->buffer_count};
    p.copy = calloc((size_t)plan->buffer_count, sizeof *p.copy);
    p.valid = calloc((size_t)plan->buffer_count, sizeof *p.valid);
    p.writer = malloc((size_t)plan->buffer_count * sizeof *p.writer);
    int forward = plan->forward_steps;
    plan->steps = NULL;
    plan->step_count = plan->step_capacity = 0;
    sdlf_status status = SDLF_OK;
    for (int i = 0; p.writer != NULL && i < p.originals; i++) p.writer[i] = -1;
    if (p.copy == NULL || p.valid == NULL || p.writer == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    if (status == SDLF_OK) home_written_buffers(&p);
    for (int i = 0; i < p.old_count && status == SDLF_OK; i++) {
        if (i == forward) plan->forward_steps = plan->step_count;
        status = place_step(&p, p.old[i]);
    }
    if (forward == p.old_count) plan->forward_steps = plan->step_count;
    free(p.copy);
    free(p.valid);
    free(p.writer);
    free(p.words);
    free(p.old);
    return status;
}
