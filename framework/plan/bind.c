/* SPDX-License-Identifier: MIT */
/* The binding pass: allocates arenas, gives every operand its address, and loads parameters and constants. */
#include "framework/plan/passes.h"

#include <sdlf/machine.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/heap.h"
#include "framework/machine/size.h"

/* ---- memory ---- */

static sdlf_status allocate_arena(sdlf_plan *plan, plan_space *space)
{
    if (space->bytes == 0) return SDLF_OK;
    sdlf_status status = SDLF_OK;
    if (space->calculator != NULL) {
        status = space->calculator->type->allocate(space->calculator, space->bytes, &space->arena);
    } else {
        space->arena = sdlf_heap_allocate(space->bytes);
        if (space->arena == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    }
    return sdlf_fail_context(status, "plan of '%s', batch %lld: %.1f MB in the memory of %s", plan->model->name,
                             (long long)plan->options.batch, (double)space->bytes / 1e6, space->name);
}

/* The largest buffer in the host's arenas; 0: there is none. */
static int largest_buffer(const sdlf_plan *plan)
{
    int largest = 0;
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        bool here = buffer->first_use >= 0 && buffer->offset >= 0 && plan_is_host_space(plan, buffer->space);
        if (here && (largest == 0 || buffer->bytes > plan->buffers[largest].bytes)) largest = i;
    }
    return largest;
}

/* Checks host memory; a device's allocator reports its own shortage. If there is not enough, the message names the
 * largest buffer. */
static sdlf_status check_memory(const sdlf_plan *plan)
{
    int64_t bytes = 0;
    for (int i = 0; i < plan->space_count; i++)
        if (plan_is_host_space(plan, i)) bytes += plan->spaces[i].bytes;
    char what[400];
    int length =
        snprintf(what, sizeof what, "plan of '%.80s', batch %lld", plan->model->name, (long long)plan->options.batch);
    sdlf_status status = sdlf_machine_check(bytes, what);
    int largest = status == SDLF_ERROR_MEMORY ? largest_buffer(plan) : 0;
    plan_words *words = largest > 0 ? plan_name_buffers(plan) : NULL;
    if (words != NULL && words[largest].name != NULL) {
        snprintf(what + length, sizeof what - (size_t)length, ", with %s for the %s%.160s",
                 size_show(plan->buffers[largest].bytes).text, words[largest].what, words[largest].name);
        status = sdlf_machine_check(bytes, what);
    }
    free(words);
    return status;
}

/* Lists the control buffers: at most one of each control per space. */
static void list_controls(sdlf_plan *plan)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        if (plan->buffers[i].kind == BUFFER_CONTROL) plan->control_buffers[plan->control_buffer_count++] = i;
    }
}

static sdlf_status bind_buffer(sdlf_plan *plan, plan_buffer *buffer)
{
    if (buffer->first_use < 0 || buffer->space < 0 || buffer->bytes == 0) return SDLF_OK;
    if (buffer->offset >= 0) {
        buffer->memory = (char *)plan->spaces[buffer->space].arena + buffer->offset;
        return SDLF_OK;
    }
    if (buffer->raw) return SDLF_OK; /* read on demand */
    if (buffer->kind == BUFFER_DATA && plan_is_host_space(plan, buffer->space)) {
        buffer->memory = plan_data(plan, buffer->data)->data;
        return SDLF_OK;
    }
    bool of_model = buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE;
    sdlf_parameter *parameter = of_model ? &plan->model->parameters[buffer->parameter] : NULL;
    if (parameter != NULL && plan_is_host_space(plan, buffer->space)) {
        sdlf_status status = model_fetch_values(plan->model, buffer->parameter);
        if (status != SDLF_OK) return status;
        buffer->memory =
            buffer->kind == BUFFER_PARAMETER ? parameter->value.data : parameter->state[buffer->state].data;
        return SDLF_OK;
    }
    const plan_buffer *reused = plan_reused_buffer(plan, buffer);
    if (reused == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the plan to reuse holds no %s in %s",
                         parameter != NULL ? parameter->name : "such data", plan->spaces[buffer->space].name);
    buffer->memory = reused->memory;
    return SDLF_OK;
}

sdlf_tensor plan_bound(const sdlf_plan *plan, sdlf_tensor tensor)
{
    char *memory = plan->buffers[tensor.buffer].memory;
    tensor.data = memory != NULL ? memory + tensor.offset : NULL;
    return tensor;
}

static void bind_operation(const sdlf_plan *plan, sdlf_operation *op)
{
    for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
        if (sdlf_tensor_present(&op->in[j])) op->in[j] = plan_bound(plan, op->in[j]);
    }
    for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
        if (sdlf_tensor_present(&op->out[j])) op->out[j] = plan_bound(plan, op->out[j]);
    }
    if (sdlf_tensor_present(&op->workspace)) op->workspace = plan_bound(plan, op->workspace);
    if (sdlf_tensor_present(&op->prepared)) op->prepared = plan_bound(plan, op->prepared);
}

static void bind_steps(sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) bind_operation(plan, &plan->steps[i].operation);
    plan_give_step_hints(plan);
    if (plan->feed.present) bind_operation(plan, &plan->feed.shuffle);
}

/* Uploads a feed's data and constants, once, to the devices that hold a copy. */
static sdlf_status load_data(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 1; i < plan->buffer_count && status == SDLF_OK; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind != BUFFER_DATA || buffer->offset < 0) continue;
        status = plan_upload(plan, i, 0, plan_data(plan, buffer->data)->data, buffer->bytes);
    }
    return status;
}

static int present_states(const sdlf_model *model)
{
    int most = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        for (int s = most; s < 3; s++) {
            if (sdlf_tensor_present(&model->parameters[i].state[s])) most = s + 1;
        }
    }
    return most;
}

bool plan_uses_states(const sdlf_plan *plan)
{
    return plan->options.mode == SDLF_TRAIN && !plan->options.gradients_only;
}

int plan_state_count(const sdlf_plan_options *options)
{
    return options->optimizer.type->state_count(&options->optimizer) + (options->ema > 0) + (options->lookahead > 0);
}

sdlf_status plan_bind(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan_uses_states(plan)) {
        int wanted = plan_state_count(&plan->options);
        int present = present_states(plan->model); /* more than wanted: another plan may be using them */
        status = sdlf_model_require_states(plan->model, wanted > present ? wanted : present);
        if (status != SDLF_OK) return status;
    }
    status = check_memory(plan);
    if (status != SDLF_OK) return status;
    for (int i = 0; i < plan->space_count; i++) {
        status = allocate_arena(plan, &plan->spaces[i]);
        if (status != SDLF_OK) return status;
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        status = bind_buffer(plan, &plan->buffers[i]);
        if (status != SDLF_OK) return status;
    }
    bind_steps(plan);
    list_controls(plan);
    plan_note_weights(plan);
    status = plan_pin_memory(plan);
    if (status != SDLF_OK) return status;
    plan->bound = true;
    model_start_using(plan->model, plan_uses_states(plan));
    plan_prepare_recordings(plan);
    status = plan_prepare_marks(plan);
    if (status == SDLF_OK) status = load_data(plan); /* before parameters, from which weights are prepacked */
    if (plan->options.consume_parameters) sdlf_heap_trim();
    if (status == SDLF_OK) status = plan->draws ? plan_draw_parameters(plan, true) : sdlf_plan_load_parameters(plan);
    if (status == SDLF_OK) status = plan_prepare_stages(plan);
    double one = plan->options.communicator != NULL ? plan->options.rank_fraction : 1;
    if (status == SDLF_OK) status = plan_set_control(plan, CONTROL_ONE, one);
    if (status == SDLF_OK) status = sdlf_plan_set_step_number(plan, 0);
    if (status == SDLF_OK) status = sdlf_plan_clear_metrics(plan);
    if (status == SDLF_OK) status = plan_clear_sums(plan);
    if (status == SDLF_OK) status = plan_begin_loss_scale(plan);
    return status == SDLF_OK ? plan_warm_up(plan) : status;
}
