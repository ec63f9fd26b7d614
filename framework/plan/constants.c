/* SPDX-License-Identifier: MIT */
/* Constant inputs: host tensors that a plan reads in place, and that are copied to devices once. */
#include "framework/plan/passes.h"

#include <stdlib.h>
#include <string.h>

#include "framework/input_layer.h"

sdlf_status plan_take_constants(sdlf_plan *plan)
{
    int count = plan->options.constant_count;
    if (count < 0 || count > plan->model->layer_count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "plan: %d constants for the inputs of '%s'", count, plan->model->name);
    if (count == 0) return SDLF_OK;
    plan->constants = malloc((size_t)count * sizeof *plan->constants);
    if (plan->constants == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    memcpy(plan->constants, plan->options.constants, (size_t)count * sizeof *plan->constants);
    return SDLF_OK;
}

const sdlf_plan_constant *plan_constant_of(const sdlf_plan *plan, const plan_node *node)
{
    if (node->layer->type != &sdlf_input_layer_class) return NULL;
    for (int i = 0; i < plan->options.constant_count; i++) {
        if (strcmp(plan->constants[i].input, node->layer->name) == 0) return &plan->constants[i];
    }
    return NULL;
}

static sdlf_status check_constant(const sdlf_plan *plan, int index)
{
    const sdlf_plan_constant *constant = &plan->constants[index];
    const plan_node *node = NULL;
    for (int i = 0; i < index; i++) {
        if (strcmp(plan->constants[i].input, constant->input) == 0)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "constant '%s' is given twice", constant->input);
    }
    for (int i = 0; i < plan->node_count && node == NULL; i++) {
        if (plan_constant_of(plan, &plan->nodes[i]) == constant) node = &plan->nodes[i];
    }
    if (node == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "constant: network '%s' has no input '%s'", plan->model->name,
                         constant->input);
    const sdlf_tensor *given = &constant->tensor;
    const sdlf_tensor *wanted = &plan->values[node->first_value].tensor;
    if (given->dtype != wanted->dtype || !sdlf_shape_equal(given->shape, wanted->shape) ||
        given->layout != wanted->layout)
        return sdlf_fail(SDLF_ERROR_SHAPE, "constant '%s' is %s %s %s, expected %s %s %s", constant->input,
                         given->layout == SDLF_CSR ? "sparse" : "dense", sdlf_dtype_name(given->dtype),
                         sdlf_shape_print(given->shape).text, wanted->layout == SDLF_CSR ? "sparse" : "dense",
                         sdlf_dtype_name(wanted->dtype), sdlf_shape_print(wanted->shape).text);
    if (given->data == NULL || sdlf_tensor_bytes(given) < 0 || !sdlf_tensor_is_contiguous(given))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "constant '%s' has no memory, or gaps in it", constant->input);
    if (plan_is_fed(plan, node))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "input '%s' is a constant and part of the feed", constant->input);
    return SDLF_OK;
}

sdlf_status plan_check_constants(sdlf_plan *plan)
{
    for (int i = 0; i < plan->options.constant_count; i++) {
        sdlf_status status = check_constant(plan, i);
        if (status != SDLF_OK) return status;
    }
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        bool sparse = node->output_count > 0 && plan->values[node->first_value].tensor.layout == SDLF_CSR;
        if (!sparse || plan_constant_of(plan, node) != NULL) continue;
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "input '%s' is a sparse matrix: it must be among the plan's constants",
                         node->layer->name);
    }
    return SDLF_OK;
}

sdlf_status plan_make_constant(sdlf_plan *plan, const sdlf_plan_constant *constant, sdlf_tensor *tensor)
{
    *tensor = constant->tensor;
    tensor->data = NULL;
    tensor->offset = 0;
    tensor->buffer = plan_new_buffer(plan, BUFFER_DATA, tensor->dtype, sdlf_tensor_bytes(tensor));
    if (tensor->buffer == 0) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of buffers");
    plan->buffers[tensor->buffer].data = PLAN_FIRST_CONSTANT + (int)(constant - plan->constants);
    return SDLF_OK;
}

const sdlf_tensor *plan_data(const sdlf_plan *plan, int data)
{
    if (data >= PLAN_FIRST_CONSTANT) return &plan->constants[data - PLAN_FIRST_CONSTANT].tensor;
    return data == 0 ? &plan->feed.feed.sample_data : &plan->feed.feed.label_data;
}
