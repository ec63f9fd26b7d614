/* SPDX-License-Identifier: MIT */
/* Running a plan: executing its steps in order, and data transfer. Nothing here allocates. */
#include "framework/plan/plan_internal.h"

#include <inttypes.h>
#include <string.h>

#include "framework/heap.h"
#include "framework/input_layer.h"
#include "framework/require.h"

static sdlf_status run_copy(sdlf_plan *plan, const plan_step *step)
{
    const sdlf_tensor *from = &step->operation.in[0], *to = &step->operation.out[0];
    const sdlf_calculator_class *type = step->calculator->type;
    int64_t bytes = sdlf_tensor_bytes(from);
    if (plan_is_host_space(plan, plan->buffers[from->buffer].space)) {
        if (!step->queued) return type->upload(step->calculator, to->data, from->data, bytes);
        plan->spaces[plan->buffers[to->buffer].space].uploading = true;
        return type->queues->upload(step->calculator, SDLF_QUEUE_COMPUTE, to->data, from->data, bytes);
    }
    plan->spaces[plan->buffers[from->buffer].space].uploading = false; /* a download waits for all queued work */
    return type->download(step->calculator, to->data, from->data, bytes);
}

/* Starts a bucket's collective over all ranks, which runs asynchronously, or waits for it. */
static sdlf_status run_sum(sdlf_plan *plan, const plan_step *step)
{
    const sdlf_tensor *bucket = &step->operation.out[0];
    sdlf_communicator *communicator = plan->options.communicator;
    if (step->awaits) return communicator->type->collective_end(communicator, plan->tickets[step->bucket]);
    const sdlf_communicator_class *type = communicator->type;
    return (step->gathers ? type->allgather_begin : type->allreduce_begin)(communicator, step->calculator, bucket->data,
                                                                           bucket->dtype, sdlf_tensor_count(bucket),
                                                                           &plan->tickets[step->bucket]);
}

/* Waits first for queued copies that still read host memory, which the kernel may change. */
static sdlf_status run_kernel(sdlf_plan *plan, const plan_step *step)
{
    if (plan->pin_count > 0 && sdlf_calculator_is_on_host(step->calculator)) {
        sdlf_status status = plan_settle_uploads(plan);
        if (status != SDLF_OK) return status;
    }
    return sdlf_calculator_slot(step->calculator, &step->operation)->run(step->calculator, &step->operation);
}

static sdlf_status at_step(sdlf_status status, const sdlf_plan *plan, const plan_step *step)
{
    if (status == SDLF_OK) return SDLF_OK;
    return sdlf_fail_context(status, "layer '%s', %s on %s", plan->nodes[step->node].layer->name,
                             step->label != NULL ? step->label : sdlf_operation_type(&step->operation)->name,
                             step->calculator->type->name);
}

sdlf_status plan_run_step(sdlf_plan *plan, const plan_step *step)
{
    sdlf_status status = step->phase == SDLF_PHASE_COPY          ? run_copy(plan, step)
                         : step->phase == SDLF_PHASE_COMMUNICATE ? run_sum(plan, step)
                                                                 : run_kernel(plan, step);
    return at_step(status, plan, step);
}

int plan_count_offered(const sdlf_plan *plan, int first, int last)
{
    const sdlf_calculator *calculator = plan->steps[first].calculator;
    bool joins = plan->options.mode == SDLF_TRAIN && !plan->options.no_fusion && !plan->options.keep_activations;
    int count = 0;
    bool alike = true;
    if (!joins || calculator->type->run_together == NULL) return 0;
    while (first + count < last && count < PLAN_MAX_FUSED_ALIKE) {
        const plan_step *step = &plan->steps[first + count];
        if (step->calculator != calculator || plan_step_moves(step)) break;
        alike = alike && step->operation.kind == plan->steps[first].operation.kind;
        if (!alike && count >= PLAN_MAX_FUSED) break;
        count++;
    }
    return count;
}

/* Runs as many of the steps [first, last) as their calculator fuses; *done is 0 if it fuses none. */
static sdlf_status run_together(const sdlf_plan *plan, int first, int last, int *done)
{
    const sdlf_operation *operations[PLAN_MAX_FUSED_ALIKE];
    sdlf_calculator *calculator = plan->steps[first].calculator;
    int count = plan_count_offered(plan, first, last);
    *done = 0;
    if (count < 2) return SDLF_OK;
    for (int i = 0; i < count; i++) operations[i] = &plan->steps[first + i].operation;
    return at_step(calculator->type->run_together(calculator, operations, count, done), plan, &plan->steps[first]);
}

sdlf_status plan_run_steps(sdlf_plan *plan, int first, int last)
{
    for (int i = first; i < last;) {
        int done = 0;
        sdlf_status status = run_together(plan, i, last, &done);
        if (status == SDLF_OK && done == 0) {
            status = plan_run_step(plan, &plan->steps[i]);
            done = 1;
        }
        if (status != SDLF_OK) return status;
        i += done;
    }
    return plan->pin_count > 0 ? plan_settle_uploads(plan) : SDLF_OK;
}

sdlf_status sdlf_plan_forward(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    if (plan->feed.present) /* its first step would consume a batch that no training step sees */
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "a plan with a feed runs the steps of an epoch: sdlf_plan_run");
    sdlf_status status = plan_check_weights(plan);
    if (status != SDLF_OK) return status;
    plan_note_changes(plan, true);
    return plan_run_pass(plan, &plan->forward_recording, plan->forward_steps);
}

sdlf_status sdlf_plan_backward(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    if (plan->options.mode != SDLF_TRAIN || !plan->options.gradients_only || plan->feed.present)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "a backward pass by itself needs a training plan with gradients_only");
    return plan_run_steps(plan, plan->forward_steps, plan->step_count);
}

sdlf_status sdlf_plan_step(sdlf_plan *plan, float learning_rate)
{
    SDLF_REQUIRE(plan);
    if (plan->feed.present)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "a plan with a feed runs the steps of an epoch: sdlf_plan_run");
    if (plan->options.mode != SDLF_TRAIN)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "a training step was asked of an inference plan");
    plan_note_changes(plan, false);
    sdlf_status status = plan_set_control(plan, CONTROL_RATE, learning_rate);
    if (status == SDLF_OK && plan->options.accumulate)
        status = plan_set_control(plan, CONTROL_SHARE, 1.0 / (double)(plan->accumulated + 1));
    plan->accumulated = 0;
    if (status == SDLF_OK) status = plan_run_pass(plan, &plan->step_recording, plan->step_count);
    if (status == SDLF_OK) status = sdlf_plan_set_step_number(plan, plan->step_number + 1);
    return status;
}

int64_t sdlf_plan_step_number(const sdlf_plan *plan)
{
    if (plan == NULL) return 0;
    return plan->step_number;
}

sdlf_status sdlf_plan_set_step_number(sdlf_plan *plan, int64_t step)
{
    SDLF_REQUIRE(plan);
    plan->step_number = step;
    return plan_set_control(plan, CONTROL_STEP, (double)step);
}

sdlf_status sdlf_plan_synchronize(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    for (int i = 0; i < plan->space_count; i++) {
        sdlf_calculator *calculator = plan->spaces[i].calculator;
        if (calculator == NULL) continue;
        sdlf_status status = calculator->type->synchronize(calculator);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}

/* ---- data in and out ---- */

static sdlf_status bind_tensor(const sdlf_plan *plan, sdlf_tensor tensor, const char *what, const char *name,
                               sdlf_binding *binding)
{
    const plan_buffer *buffer = &plan->buffers[tensor.buffer];
    if (sdlf_tensor_present(&tensor) && sdlf_tensor_count(&tensor) == 0) { /* an empty tensor: no memory */
        *binding = (sdlf_binding){.tensor = tensor, .calculator = plan->options.forward};
        return SDLF_OK;
    }
    if (tensor.buffer == 0 || buffer->memory == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "this plan does not keep the %s of '%s'", what, name);
    binding->tensor = plan_bound(plan, tensor);
    binding->calculator = plan->spaces[buffer->space].calculator;
    return SDLF_OK;
}

sdlf_status sdlf_plan_input(sdlf_plan *plan, const char *name, sdlf_binding *binding)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(name);
    SDLF_REQUIRE(binding);
    for (int i = plan_find_node(plan, name, 0); i >= 0; i = plan_find_node(plan, name, i + 1)) {
        const plan_node *node = &plan->nodes[i];
        if (node->layer->type != &sdlf_input_layer_class) continue;
        return bind_tensor(plan, plan->values[node->first_value].tensor, "input", name, binding);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no input '%s'", plan->model->name, name);
}

sdlf_status sdlf_plan_output(sdlf_plan *plan, const char *name, sdlf_binding *binding)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(name);
    SDLF_REQUIRE(binding);
    if (plan->loss_value >= 0 && strcmp(name, "loss") == 0)
        return bind_tensor(plan, plan->values[plan->loss_value].tensor, "output", name, binding);
    for (int i = 0; i < plan->model->output_count; i++) {
        const model_output *output = &plan->model->outputs[i];
        if (strcmp(output->name, name) != 0) continue;
        const plan_node *node = &plan->nodes[output->node.layer];
        return bind_tensor(plan, plan->values[node->first_value + output->node.output].tensor, "output", name, binding);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no output '%s'", plan->model->name, name);
}

/* Checks that the caller's memory holds that type and size. */
static sdlf_status check_given(const sdlf_tensor *tensor, const char *what, const char *name, sdlf_dtype dtype,
                               int64_t bytes)
{
    if (dtype == tensor->dtype && bytes == sdlf_tensor_bytes(tensor)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "%s '%s' is %s %s, %" PRId64 " bytes; found %s, %" PRId64 " bytes", what, name,
                     sdlf_dtype_name(tensor->dtype), sdlf_shape_print(tensor->shape).text, sdlf_tensor_bytes(tensor),
                     sdlf_dtype_name(dtype), bytes);
}

/* Finds the input, if `bytes` of that type may be written to it. */
static sdlf_status find_written(sdlf_plan *plan, const char *input, sdlf_dtype dtype, int64_t bytes,
                                sdlf_binding *binding)
{
    sdlf_status status = sdlf_plan_input(plan, input, binding);
    if (status != SDLF_OK) return status;
    if (plan->buffers[binding->tensor.buffer].kind == BUFFER_DATA)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "input '%s' is constant in this plan", input);
    return check_given(&binding->tensor, "input", input, dtype, bytes);
}

sdlf_status sdlf_plan_write(sdlf_plan *plan, const char *input, const void *host, sdlf_dtype dtype, int64_t bytes)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(input);
    SDLF_REQUIRE(host);
    sdlf_binding binding;
    sdlf_status status = find_written(plan, input, dtype, bytes, &binding);
    if (status == SDLF_OK) status = plan_check_indices(plan, input, &binding.tensor, host);
    if (status != SDLF_OK) return status;
    return plan_upload_tensor(plan, &binding.tensor, host);
}

sdlf_status sdlf_plan_write_device(sdlf_plan *plan, const char *input, const void *memory, sdlf_dtype dtype,
                                   int64_t bytes)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(input);
    SDLF_REQUIRE(memory);
    sdlf_binding binding;
    sdlf_status status = find_written(plan, input, dtype, bytes, &binding);
    if (status != SDLF_OK) return status;
    sdlf_calculator *calculator = binding.calculator;
    if (calculator == NULL || calculator->type->copy_from_device == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "input '%s' is in the memory of %s, which accepts nothing from a device", input,
                         calculator != NULL ? calculator->space : SDLF_HOST_SPACE);
    status = calculator->type->copy_from_device(calculator, binding.tensor.data, memory, bytes);
    if (status != SDLF_OK || !plan_has_index_bounds(plan, input)) return status;
    void *host = sdlf_heap_allocate(bytes); /* indices are checked, which only the host does */
    if (host == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "input '%s': out of memory", input);
    status = calculator->type->download(calculator, host, binding.tensor.data, bytes);
    if (status == SDLF_OK) status = plan_check_indices(plan, input, &binding.tensor, host);
    sdlf_heap_free(host);
    return status;
}

sdlf_status sdlf_plan_write_converted(sdlf_plan *plan, const char *input, const void *host, sdlf_dtype dtype,
                                      int64_t count)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(input);
    SDLF_REQUIRE(host);
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_input(plan, input, &binding);
    if (status != SDLF_OK) return status;
    const sdlf_tensor *to = &binding.tensor;
    int64_t size = (int64_t)sdlf_dtype_size(dtype);
    if (dtype == to->dtype || count != sdlf_tensor_count(to))
        return sdlf_plan_write(plan, input, host, dtype, count * size);
    void *converted = sdlf_heap_allocate(sdlf_tensor_bytes(to));
    if (converted == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "input '%s': out of memory", input);
    sdlf_convert(to->dtype, converted, dtype, host, count);
    status = sdlf_plan_write(plan, input, converted, to->dtype, sdlf_tensor_bytes(to));
    sdlf_heap_free(converted);
    return status;
}

sdlf_status sdlf_plan_read(sdlf_plan *plan, const char *output, void *host, sdlf_dtype dtype, int64_t bytes)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(output);
    SDLF_REQUIRE(host);
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_output(plan, output, &binding);
    if (status == SDLF_OK) status = check_given(&binding.tensor, "output", output, dtype, bytes);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
    if (status != SDLF_OK) return status;
    return plan_download_tensor(plan, &binding.tensor, host);
}

sdlf_status sdlf_plan_activation(sdlf_plan *plan, const char *layer, bool gradient, sdlf_binding *binding)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(layer);
    SDLF_REQUIRE(binding);
    if (!plan->options.keep_activations)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "the plan was made without keep_activations");
    int node = plan_find_node(plan, layer, 0);
    if (node < 0) return sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no layer '%s'", plan->model->name, layer);
    const plan_value *value = &plan->values[plan->nodes[node].first_value];
    return bind_tensor(plan, gradient ? value->gradient : value->tensor, gradient ? "gradient" : "output", layer,
                       binding);
}

sdlf_status sdlf_plan_gradient(sdlf_plan *plan, const char *parameter, sdlf_binding *binding)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(parameter);
    SDLF_REQUIRE(binding);
    if (!plan->options.gradients_only)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "the plan was made without gradients_only");
    int index = model_find_parameter(plan->model, parameter);
    if (index < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "network '%s' has no parameter '%s'", plan->model->name, parameter);
    const sdlf_tensor none = {.dtype = SDLF_NONE};
    return bind_tensor(plan, plan->gradients != NULL ? plan->gradients[index] : none, "gradient", parameter, binding);
}
