/* SPDX-License-Identifier: MIT */
/* Conversion of one node: its inputs, its operator, and the resulting layers or constants. */
#include "framework/formats/onnx/import/import.h"

#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/import/dynamic_length.h"
#include "framework/formats/onnx/import/report.h"
#include "framework/formats/text.h"

bool onnx_is_standard(const Onnx__NodeProto *node)
{
    return node->domain == NULL || node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0;
}

/* Collects the node's inputs, which must exist. `waits`: one is missing because of an earlier failure. */
static sdlf_status gather_inputs(onnx_context *c, bool *waits)
{
    const Onnx__NodeProto *node = c->node;
    c->input = onnx_arena_array(&c->import->file->arena, node->n_input + 1, sizeof(void *));
    c->output = onnx_arena_array(&c->import->file->arena, node->n_output + 1, sizeof(void *));
    if (c->input == NULL || c->output == NULL) return read_budget_fail(&c->import->file->budget);
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0] != '\0') c->output[i] = onnx_value_named(c->import, node->output[i]);
    c->output_count = (int)node->n_output;
    for (size_t i = 0; i < node->n_input; i++) {
        if (node->input[i][0] == '\0') continue;
        onnx_value *value = onnx_value_named(c->import, node->input[i]);
        c->input[i] = value;
        c->input_count = (int)i + 1;
        if (value->kind != ONNX_UNMADE) continue;
        if (value->failed) {
            *waits = true;
        } else if (value->producer >= c->position) {
            return sdlf_fail(
                SDLF_ERROR_FORMAT,
                "input %zu, '%s', is made by node %d, which does not come before it: the graph has a cycle, "
                "or is not sorted",
                i, text_show(value->name).text, value->producer);
        } else {
            return sdlf_fail(SDLF_ERROR_FORMAT, "input %zu, '%s', is no input, weight or node's output of the graph", i,
                             text_show(value->name).text);
        }
    }
    return SDLF_OK;
}

static sdlf_status find_operator(onnx_context *c)
{
    const char *name = c->node->op_type;
    if (name == NULL || name[0] == '\0') return sdlf_fail(SDLF_ERROR_FORMAT, "it does not say which operator it is");
    const onnx_operator *other;
    c->type = onnx_operator_of(c->node, c->opset, &other);
    if (c->type != NULL) return SDLF_OK;
    if (!onnx_is_standard(c->node))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "SDLF has no operator %s of the domain '%s'", text_show(name).text,
                         text_show(c->node->domain).text);
    if (other == NULL) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "SDLF has no operator %s", text_show(name).text);
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "SDLF has operator %s from opset %d on, and the model is in opset %d",
                     name, other->since, c->opset);
}

static sdlf_status check_node(const onnx_context *c)
{
    const onnx_operator *type = c->type;
    if (type->minimum_inputs == type->maximum_inputs && c->input_count != type->minimum_inputs)
        return sdlf_fail(SDLF_ERROR_FORMAT, "it has %d inputs; %d %s expected", c->input_count, type->minimum_inputs,
                         type->minimum_inputs == 1 ? "was" : "were");
    if (c->input_count < type->minimum_inputs || c->input_count > type->maximum_inputs)
        return sdlf_fail(SDLF_ERROR_FORMAT, "it has %d inputs; %d to %d were expected", c->input_count,
                         type->minimum_inputs, type->maximum_inputs);
    if (c->output_count < 1) return sdlf_fail(SDLF_ERROR_FORMAT, "it has no outputs");
    for (int i = 0; i < type->minimum_inputs; i++)
        if (c->input[i] == NULL) return sdlf_fail(SDLF_ERROR_FORMAT, "its input %d is left out, and is needed", i);
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const char *name = c->node->attribute[i]->name;
        char wanted[64];
        int length = snprintf(wanted, sizeof wanted, " %s ", name != NULL ? name : "");
        if (length >= (int)sizeof wanted || strstr(type->attributes, wanted) == NULL)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "attribute '%s' is not supported",
                             name != NULL ? text_show(name).text : "");
        for (size_t j = 0; j < i; j++) /* supported names are few */
            if (strcmp(c->node->attribute[j]->name, name) == 0)
                return sdlf_fail(SDLF_ERROR_FORMAT, "attribute '%s' is duplicated", name);
        if (c->node->attribute[i]->ref_attr_name != NULL && c->node->attribute[i]->ref_attr_name[0] != '\0')
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "attribute '%s' refers to one of a function", name);
    }
    return SDLF_OK;
}

static bool all_constant(const onnx_context *c)
{
    /* it only moves data, or produces a weight; or it computes, which is for small constants */
    bool any_size = c->type->fold == c->type->convert || c->type->of_weights;
    for (int i = 0; i < c->input_count; i++) {
        const onnx_value *input = c->input[i];
        if (input == NULL) continue;
        if (input->kind != ONNX_CONSTANT) return false;
        if (!any_size && c->type->convert != NULL && input->tensor.count > ONNX_FOLD_LIMIT) return false;
    }
    return true;
}

/* An empty constant in as many samples as the batch has: what is computed from it must be empty too, or is valid only
 * for a batch of 1. */
static void check_batched(onnx_context *c)
{
    const onnx_value *from = NULL;
    for (int i = 0; i < c->input_count; i++)
        if (onnx_is_constant(c, i) && c->input[i]->tensor.batched) from = c->input[i];
    for (int i = 0; from != NULL && i < c->output_count; i++) {
        if (c->output[i] == NULL || c->output[i]->kind != ONNX_CONSTANT) continue;
        c->output[i]->tensor.batched = c->output[i]->tensor.count == 0;
        if (c->output[i]->tensor.count > 0)
            onnx_unsupported(c,
                             "its result for '%s', which has no elements, would hold only for a batch of 1, but the "
                             "plan chooses the batch",
                             text_show(from->name).text);
    }
}

/* Folds the node if possible, otherwise converts it to layers. */
static sdlf_status convert(onnx_context *c)
{
    const onnx_operator *type = c->type;
    bool fold = type->fold != NULL && (type->of_shape || all_constant(c)) && !(type->of_rows && onnx_keeps_rows(c));
    if (fold && type->convert != NULL && type->fold != type->convert && !type->of_weights &&
        onnx_has_trainable_input(c))
        fold = false;
    if (!fold && type->fold == NULL && !onnx_has_trainable_input(c) && c->input_count > 0 && all_constant(c) &&
        onnx_fold_by_running(c))
        return SDLF_OK;
    if (!fold && type->convert == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "its inputs must be known when the model is made, and are computed");
    onnx_type narrow = fold ? ONNX_UNDEFINED : onnx_narrow_check(c);
    onnx_counted counted = onnx_dynamic_length_before(c);
    if (c->status == SDLF_OK) (fold ? type->fold : type->convert)(c);
    if (fold && !type->of_shape) check_batched(c);
    if (c->status != SDLF_OK) return c->status;
    onnx_narrow_outputs(c, narrow);
    onnx_dynamic_length_after(c, counted);
    for (int i = 0; i < c->output_count; i++)
        if (c->output[i] != NULL && c->output[i]->kind == ONNX_UNMADE && c->output[i]->readers > 0)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "its output %d, '%s', is not supported", i,
                             text_show(c->output[i]->name).text);
    return SDLF_OK;
}

static bool is_absorbed(const onnx_context *c)
{
    return c->output_count > 0 && c->output[0] != NULL && c->output[0]->kind != ONNX_UNMADE;
}

/* Releases the memory of constants that have no remaining reader, and of the node's temporaries. */
static void let_go(onnx_context *c)
{
    onnx_blocks *blocks = &c->import->file->blocks;
    for (int i = 0; c->input != NULL && i < c->input_count; i++) {
        onnx_value *value = c->input[i];
        if (value == NULL || --value->unread > 0 || value->kind != ONNX_CONSTANT) continue;
        onnx_block_drop(blocks, value->tensor.block);
        value->tensor.block = NULL;
    }
    for (int i = 0; c->output != NULL && i < c->output_count; i++) {
        onnx_value *value = c->output[i];
        if (value == NULL || value->unread > 0 || value->kind != ONNX_CONSTANT) continue;
        onnx_block_drop(blocks, value->tensor.block);
        value->tensor.block = NULL;
    }
    onnx_blocks_end_node(blocks);
}

sdlf_status onnx_import_inner(onnx_import *import, const Onnx__NodeProto *node, int position)
{
    onnx_context c = {.import = import, .node = node, .position = position, .opset = (int)import->file->opset};
    bool waits = false;
    sdlf_status status = gather_inputs(&c, &waits);
    if (status == SDLF_OK && waits) status = sdlf_fail(SDLF_ERROR_UNSUPPORTED, "it waits for what could not be made");
    if (status == SDLF_OK) status = find_operator(&c);
    if (status == SDLF_OK) status = check_node(&c);
    if (status == SDLF_OK) status = convert(&c);
    onnx_blocks_end_node(&import->file->blocks);
    if (status == SDLF_OK) return SDLF_OK;
    return sdlf_fail_context(status, "inside of it: %s", text_show(node->op_type != NULL ? node->op_type : "?").text);
}

sdlf_status onnx_import_node(onnx_import *import, int position)
{
    onnx_context c = {.import = import,
                      .node = import->file->node[position],
                      .position = position,
                      .opset = (int)import->file->opset};
    bool waits = false;
    sdlf_status status = gather_inputs(&c, &waits);
    bool done = status == SDLF_OK && !waits && is_absorbed(&c);
    if (status == SDLF_OK && !done) status = find_operator(&c);
    if (status == SDLF_OK && !waits && !done) status = check_node(&c);
    if (status == SDLF_OK && !waits && !done) status = onnx_open_batch_say(&c, convert(&c));
    let_go(&c);
    if (status != SDLF_OK) {
        const char *type = c.node->op_type != NULL ? c.node->op_type : "?", *name = c.node->name;
        bool named = name != NULL && name[0] != '\0';
        if (import->report == NULL || status == SDLF_ERROR_MEMORY)
            return sdlf_fail_context(status, "%s: node %d%s%s%s (%s)", import->file->path, position, named ? " '" : "",
                                     named ? text_show(name).text : "", named ? "'" : "", text_show(type).text);
    }
    if (status != SDLF_OK || waits)
        for (int i = 0; i < c.output_count; i++)
            if (c.output != NULL && c.output[i] != NULL && c.output[i]->kind == ONNX_UNMADE) c.output[i]->failed = true;
    if (import->report == NULL) return status;
    return onnx_report_node(import, &c, status, waits);
}
