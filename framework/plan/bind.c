/* The binding pass: arenas are allocated, every operand gets its address, parameters and constants are loaded. */
#include "framework/plan/plan_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/heap.h"

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

static sdlf_status bind_buffer(sdlf_plan *plan, plan_buffer *buffer)
{
    if (buffer->first_use < 0 || buffer->space < 0) return SDLF_OK;
    if (buffer->offset >= 0) {
        buffer->memory = (char *)plan->spaces[buffer->space].arena + buffer->offset;
        return SDLF_OK;
    }
    if (buffer->kind == BUFFER_DATA && plan_is_host_space(plan, buffer->space)) {
        buffer->memory = plan_data(plan, buffer->data)->data;
        return SDLF_OK;
    }
    sdlf_parameter *parameter = buffer->kind == BUFFER_DATA ? NULL : &plan->model->parameters[buffer->parameter];
    if (parameter != NULL && plan_is_host_space(plan, buffer->space)) {
        buffer->memory =
            buffer->kind == BUFFER_PARAMETER ? parameter->value.data : parameter->state[buffer->state].data;
        return SDLF_OK;
    }
    const plan_buffer *shared = plan_shared_buffer(plan, buffer);
    if (shared == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: the plan to share with holds no %s in %s",
                         parameter != NULL ? parameter->name : "such data", plan->spaces[buffer->space].name);
    const sdlf_plan *share = plan->options.share;
    const sdlf_calculator *own = plan->spaces[buffer->space].calculator;
    const sdlf_calculator *other = share->spaces[shared->space].calculator;
    if (own != other) /* nothing would order what the two queue */
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "plan: the plan to share with uses another calculator in %s than this one",
                         plan->spaces[buffer->space].name);
    buffer->memory = shared->memory;
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
    if (plan->feed.present) bind_operation(plan, &plan->feed.shuffle);
}

/* ---- transfers ---- */

sdlf_status plan_upload(sdlf_plan *plan, int buffer, const void *host, int64_t bytes)
{
    const plan_buffer *target = &plan->buffers[buffer];
    if (target->memory == NULL || target->memory == host) return SDLF_OK;
    if (plan_is_host_space(plan, target->space)) {
        memcpy(target->memory, host, (size_t)bytes);
        return SDLF_OK;
    }
    sdlf_calculator *calculator = plan->spaces[target->space].calculator;
    return calculator->type->upload(calculator, target->memory, host, bytes);
}

sdlf_status plan_download(sdlf_plan *plan, int buffer, void *host, int64_t bytes)
{
    const plan_buffer *source = &plan->buffers[buffer];
    if (source->memory == NULL || source->memory == host) return SDLF_OK;
    if (plan_is_host_space(plan, source->space)) {
        memcpy(host, source->memory, (size_t)bytes);
        return SDLF_OK;
    }
    sdlf_calculator *calculator = plan->spaces[source->space].calculator;
    return calculator->type->download(calculator, host, source->memory, bytes);
}

sdlf_status plan_set_control(sdlf_plan *plan, plan_control control, double value)
{
    if (plan->control[control] == 0) return SDLF_OK;
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind != BUFFER_CONTROL || buffer->control != (int)control) continue;
        union {
            float f;
            double d;
            int64_t i;
        } bits;
        if (buffer->dtype == SDLF_INT64)
            bits.i = (int64_t)value;
        else if (buffer->dtype == SDLF_FLOAT32)
            bits.f = (float)value;
        else
            bits.d = value;
        sdlf_status status = plan_upload(plan, i, &bits, buffer->bytes);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* ---- parameters ---- */

static sdlf_tensor *model_tensor(const sdlf_plan *plan, const plan_buffer *buffer)
{
    sdlf_parameter *parameter = &plan->model->parameters[buffer->parameter];
    return buffer->kind == BUFFER_PARAMETER ? &parameter->value : &parameter->state[buffer->state];
}

/* Does the buffer hold a copy of a model's tensor? (And not one that another plan keeps.) */
static bool is_copy_of_model(const sdlf_plan *plan, const plan_buffer *buffer)
{
    return (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE) && buffer->offset >= 0 &&
           buffer->memory != NULL && buffer->memory != model_tensor(plan, buffer)->data;
}

/* Move every copy of a parameter or state between plan and model, through `staging` in the plan's dtype. */
static sdlf_status transfer_parameters(sdlf_plan *plan, bool load, void *staging)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (!is_copy_of_model(plan, buffer)) continue;
        bool home = buffer->source == i;
        sdlf_tensor *tensor = model_tensor(plan, buffer);
        int64_t count = sdlf_tensor_count(tensor);
        sdlf_status status = SDLF_OK;
        if (load) {
            sdlf_convert(buffer->dtype, staging, SDLF_FLOAT32, tensor->data, count);
            status = plan_upload(plan, i, staging, buffer->bytes);
        } else if (home && !buffer->constant) {
            status = plan_download(plan, i, staging, buffer->bytes);
            if (status == SDLF_OK) sdlf_convert(SDLF_FLOAT32, tensor->data, buffer->dtype, staging, count);
        }
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* Values of a folded weight (per row) or bias, in the plan's dtype. */
static void compute_fold(const sdlf_plan *plan, const plan_fold *fold, bool bias, void *out, sdlf_dtype dtype)
{
    const sdlf_parameter *parameters = plan->model->parameters;
    const float *weight = parameters[fold->weight].value.data;
    const float *old_bias = fold->bias >= 0 ? parameters[fold->bias].value.data : NULL;
    const float *scale = parameters[fold->scale].value.data, *shift = parameters[fold->shift].value.data;
    const float *mean = parameters[fold->mean].value.data, *variance = parameters[fold->variance].value.data;
    sdlf_shape shape = parameters[fold->weight].spec.shape;
    int64_t rows = shape.dim[0], row = sdlf_shape_span(shape, 1, shape.rank);
    for (int64_t k = 0; k < rows; k++) {
        double s = scale[k] / sqrt((double)variance[k] + fold->epsilon);
        double folded_bias = ((old_bias != NULL ? old_bias[k] : 0.0) - mean[k]) * s + shift[k];
        for (int64_t i = 0; i < (bias ? 1 : row); i++) {
            double value = bias ? folded_bias : weight[k * row + i] * s;
            int64_t at = bias ? k : k * row + i;
            if (dtype == SDLF_FLOAT32)
                ((float *)out)[at] = (float)value;
            else
                ((double *)out)[at] = value;
        }
    }
}

static sdlf_status load_derived(sdlf_plan *plan, void *staging)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind != BUFFER_DERIVED || buffer->memory == NULL) continue;
        const plan_fold *fold = &plan->folds[buffer->fold];
        compute_fold(plan, fold, buffer->source == fold->folded_bias, staging, buffer->dtype);
        sdlf_status status = plan_upload(plan, i, staging, buffer->bytes);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

static sdlf_status with_staging(sdlf_plan *plan, bool load)
{
    int64_t largest = 0;
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        bool staged = buffer->kind == BUFFER_DERIVED || is_copy_of_model(plan, buffer);
        if (staged && buffer->bytes > largest) largest = buffer->bytes;
    }
    if (largest == 0) return SDLF_OK;
    void *staging = malloc((size_t)largest);
    if (staging == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for a copy of the parameters");
    sdlf_status status = transfer_parameters(plan, load, staging);
    if (status == SDLF_OK && load) status = load_derived(plan, staging);
    free(staging);
    return status;
}

static sdlf_status prepare_weights(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        const plan_step *step = &plan->steps[i];
        if (!sdlf_tensor_present(&step->operation.prepared)) continue;
        status = step->calculator->type->kernel[step->operation.kind].prepare(step->calculator, &step->operation);
    }
    return status;
}

sdlf_status sdlf_plan_load_parameters(sdlf_plan *plan)
{
    sdlf_status status = with_staging(plan, true);
    return status == SDLF_OK ? prepare_weights(plan) : status;
}

sdlf_status sdlf_plan_store_parameters(sdlf_plan *plan)
{
    sdlf_status status = sdlf_plan_synchronize(plan);
    return status == SDLF_OK ? with_staging(plan, false) : status;
}

/* A feed's data and constants go to the devices that hold a copy of their own, once. */
static sdlf_status load_data(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 1; i < plan->buffer_count && status == SDLF_OK; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind != BUFFER_DATA || buffer->offset < 0) continue;
        status = plan_upload(plan, i, plan_data(plan, buffer->data)->data, buffer->bytes);
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

sdlf_status plan_bind(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    if (plan_uses_states(plan)) {
        const sdlf_optimizer *optimizer = &plan->options.optimizer;
        int wanted = optimizer->type->state_count(optimizer);
        int present = present_states(plan->model); /* more than wanted: another plan may be using them */
        status = sdlf_model_require_states(plan->model, wanted > present ? wanted : present);
        if (status != SDLF_OK) return status;
    }
    for (int i = 0; i < plan->space_count; i++) {
        status = allocate_arena(plan, &plan->spaces[i]);
        if (status != SDLF_OK) return status;
    }
    for (int i = 1; i < plan->buffer_count; i++) {
        status = bind_buffer(plan, &plan->buffers[i]);
        if (status != SDLF_OK) return status;
    }
    bind_steps(plan);
    status = plan_pin_memory(plan);
    if (status != SDLF_OK) return status;
    plan->bound = true;
    model_start_using(plan->model, plan_uses_states(plan));
    plan_prepare_recordings(plan);
    status = plan_prepare_marks(plan);
    if (status == SDLF_OK) status = load_data(plan); /* before parameters, from which weights are made ready */
    if (status == SDLF_OK) status = sdlf_plan_load_parameters(plan);
    if (status == SDLF_OK) status = plan_prepare_stages(plan);
    if (status == SDLF_OK) status = plan_set_control(plan, CONTROL_ONE, 1);
    if (status == SDLF_OK) status = sdlf_plan_set_step_number(plan, 0);
    if (status == SDLF_OK) status = sdlf_plan_clear_metrics(plan);
    return status == SDLF_OK ? plan_warm_up(plan) : status;
}
