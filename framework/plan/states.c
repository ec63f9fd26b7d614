/* SPDX-License-Identifier: MIT */
/* States: outputs that become the next run's inputs (sdlf_state in plan.h). */
#include "framework/plan/passes.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/layers.h>

#include "framework/input_layer.h"

static int find_input(const sdlf_plan *plan, const char *name)
{
    for (int i = plan_find_node(plan, name, 0); i >= 0; i = plan_find_node(plan, name, i + 1))
        if (plan->nodes[i].layer->type == &sdlf_input_layer_class) return plan->nodes[i].first_value;
    return -1;
}

static int find_output(const sdlf_plan *plan, const char *name)
{
    for (int i = 0; i < plan->model->output_count; i++) {
        sdlf_node node = plan->model->outputs[i].node;
        if (strcmp(plan->model->outputs[i].name, name) == 0) return plan->nodes[node.layer].first_value + node.output;
    }
    return -1;
}

/* The axis along which the output is the input with an appended part; -1: same shape; -2: neither. */
static int growing_axis(const sdlf_plan *plan, int input, int output)
{
    sdlf_shape before = plan->values[input].tensor.shape, after = plan->values[output].tensor.shape;
    const plan_node *node = &plan->nodes[plan->values[output].node];
    int axis = -1;
    if (before.rank != after.rank) return -2;
    for (int i = 0; i < before.rank; i++) {
        if (before.dim[i] == after.dim[i]) continue;
        if (axis >= 0) return -2;
        axis = i;
    }
    bool joins = axis < 0 || (strcmp(node->layer->type->name, "concat") == 0 && node->inputs[0] == input);
    return joins ? axis : -2;
}

static sdlf_status find_state(const sdlf_plan *plan, const sdlf_state *wanted, plan_state *state)
{
    int input = wanted->input != NULL ? find_input(plan, wanted->input) : -1;
    int output = wanted->output != NULL ? find_output(plan, wanted->output) : -1;
    if (input < 0 || output < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "state %s=%s: network '%s' has no such %s", wanted->input, wanted->output,
                         plan->model->name, input < 0 ? "input" : "output");
    const sdlf_tensor *before = &plan->values[input].tensor, *after = &plan->values[output].tensor;
    *state = (plan_state){input, output, growing_axis(plan, input, output), wanted->capacity, 0};
    if (before->dtype != after->dtype || state->axis < -1)
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "state %s=%s: expected an output of the input's shape, or a Concat of the input and of what "
                         "comes after it; found %s %s and %s %s",
                         wanted->input, wanted->output, sdlf_dtype_name(before->dtype),
                         sdlf_shape_print(before->shape).text, sdlf_dtype_name(after->dtype),
                         sdlf_shape_print(after->shape).text);
    if (state->axis >= 0 && after->shape.dim[state->axis] > wanted->capacity)
        return sdlf_fail(SDLF_ERROR_SHAPE, "state %s=%s: it is %s, but its capacity is %lld", wanted->input,
                         wanted->output, sdlf_shape_print(after->shape).text, (long long)wanted->capacity);
    for (const plan_state *other = plan->states; other < state; other++)
        if (other->input == input || other->output == output)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "state %s=%s: its input or output is one of another state",
                             wanted->input, wanted->output);
    return SDLF_OK;
}

sdlf_status plan_find_states(sdlf_plan *plan)
{
    const sdlf_plan_options *options = &plan->options;
    if (options->state_count == 0) return SDLF_OK;
    if (options->state_count < 0 || options->states == NULL || options->mode != SDLF_INFER)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: states need a list and an inference plan");
    for (int i = 0; i < plan->space_count; i++)
        if (!plan_is_host_space(plan, i))
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                             "plan: states need calculators in the host's memory, but one uses that of %s",
                             plan->spaces[i].name);
    plan->states = calloc((size_t)options->state_count, sizeof *plan->states);
    if (plan->states == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its states");
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < options->state_count && status == SDLF_OK; i++, plan->state_count++)
        status = find_state(plan, &options->states[i], &plan->states[i]);
    return status;
}

sdlf_status plan_input_state_tensor(sdlf_plan *plan, int value, sdlf_tensor *tensor)
{
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    for (int i = 0; i < plan->state_count; i++) {
        plan_state *state = &plan->states[i];
        if (state->axis < 0 || (state->input != value && state->output != value)) continue;
        sdlf_tensor part = plan->values[value].tensor, whole;
        sdlf_shape shape = part.shape;
        shape.dim[state->axis] = state->capacity;
        if (state->buffer == 0) {
            sdlf_status status = plan_new_tensor(plan, BUFFER_PINNED, part.dtype, shape, &whole);
            if (status != SDLF_OK) return status;
            state->buffer = whole.buffer;
        }
        whole = sdlf_tensor_view(part.dtype, shape, NULL);
        whole.buffer = state->buffer;
        *tensor = sdlf_tensor_narrow(whole, state->axis, 0, part.shape.dim[state->axis]);
        return SDLF_OK;
    }
    return SDLF_OK;
}

void plan_pass_states(sdlf_plan *plan)
{
    for (int i = 0; i < plan->state_count; i++) {
        const plan_state *state = &plan->states[i];
        if (state->axis >= 0) continue;
        const sdlf_tensor *from = &plan->values[state->output].tensor, *to = &plan->values[state->input].tensor;
        void *target = plan->buffers[to->buffer].memory;
        if (target != NULL && from->buffer != to->buffer)
            memmove(target, plan->buffers[from->buffer].memory, (size_t)sdlf_tensor_bytes(from));
    }
}

void plan_clear_states(sdlf_plan *plan)
{
    for (int i = 0; i < plan->state_count; i++) {
        const plan_buffer *input = &plan->buffers[plan->values[plan->states[i].input].tensor.buffer];
        if (input->memory != NULL) memset(input->memory, 0, (size_t)input->bytes);
    }
}
