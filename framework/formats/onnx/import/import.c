/* SPDX-License-Identifier: MIT */
/* The import: values, nodes in the file's order, outputs. See import.h. */
#include "framework/formats/onnx/import/import.h"

#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/import/dynamic_length.h"
#include "framework/formats/onnx/import/report.h"
#include "framework/formats/text.h"
#include "framework/formats/training_json.h"

static sdlf_status out_of_memory(const onnx_import *import)
{
    return sdlf_fail_context(read_budget_fail(&import->file->budget), "%s", import->file->path);
}

onnx_value *onnx_value_named(onnx_import *import, const char *name)
{
    int index = onnx_name_table_find(&import->names, name);
    if (index >= 0) return &import->value[index];
    if (import->value_count == import->value_capacity ||
        !onnx_name_table_put(&import->names, name, import->value_count))
        return NULL;
    onnx_value *value = &import->value[import->value_count++];
    *value = (onnx_value){.name = name, .producer = -1, .reader = -1, .flow = {.node = {-1, 0}}};
    return value;
}

/* ---- collecting values ---- */

/* Allocates for every name in the graph, so that pointers to values remain valid. */
static sdlf_status make_values(onnx_import *import)
{
    const onnx_file *file = import->file;
    size_t count = (size_t)file->initializer_count + (size_t)file->input_count + (size_t)file->output_count;
    for (int i = 0; i < file->node_count; i++) count += file->node[i]->n_input + file->node[i]->n_output;
    count += onnx_branches_names(import);
    if (count > INT32_MAX) return out_of_memory(import);
    import->value = onnx_arena_array(&import->file->arena, count, sizeof *import->value);
    import->value_capacity = (int)count;
    return import->value != NULL ? SDLF_OK : out_of_memory(import);
}

enum { MOST_WEIGHTS = INT32_MAX }; /* elements that count for the limits of folding */

static sdlf_status add_weights(onnx_import *import)
{
    onnx_file *file = import->file;
    const int64_t most = MOST_WEIGHTS, stored = file->budget.stored + onnx_folder_bytes(&file->folder);
    for (int i = 0; i < file->initializer_count; i++) {
        onnx_value *value = onnx_value_named(import, file->initializer[i].name);
        if (value == NULL) return out_of_memory(import);
        int64_t count = file->initializer[i].count;
        import->weight_elements += count < most - import->weight_elements ? count : most - import->weight_elements;
        if (value->kind != ONNX_UNMADE)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: two weights are named '%s'", file->path,
                             text_show(value->name).text);
        value->kind = ONNX_CONSTANT;
        value->tensor = file->initializer[i];
        value->tensor.learned = onnx_is_trainable(import, &value->tensor);
        value->is_weight = !import->options->leave_weights && sdlf_dtype_is_float(onnx_type_dtype(value->tensor.type));
    }
    if (import->weight_elements > stored) import->weight_elements = stored; /* several may be of the same bytes */
    return SDLF_OK;
}

/* Records the producer and the readers of each value. */
static sdlf_status link_nodes(onnx_import *import)
{
    onnx_file *file = import->file;
    for (int n = 0; n < file->node_count; n++) {
        const Onnx__NodeProto *node = file->node[n];
        for (size_t i = 0; i < node->n_input; i++) {
            if (node->input[i][0] == '\0') continue;
            onnx_value *value = onnx_value_named(import, node->input[i]);
            if (value == NULL) return out_of_memory(import);
            value->unread = ++value->readers;
            value->reader = n;
        }
        for (size_t i = 0; i < node->n_output; i++) {
            if (node->output[i][0] == '\0') continue;
            onnx_value *value = onnx_value_named(import, node->output[i]);
            if (value == NULL) return out_of_memory(import);
            if (value->producer >= 0 || value->kind != ONNX_UNMADE)
                return sdlf_fail(SDLF_ERROR_FORMAT, "%s: node %d (%s) makes '%s', which there is already", file->path,
                                 n, node->op_type != NULL ? text_show(node->op_type).text : "?",
                                 text_show(value->name).text);
            value->producer = n;
        }
    }
    for (int i = 0; i < file->output_count; i++) {
        onnx_value *value = onnx_value_named(import, file->output[i]->name);
        if (value == NULL) return out_of_memory(import);
        value->unread = ++value->readers;
    }
    return onnx_branches_link(import) ? SDLF_OK : out_of_memory(import);
}

/* In reverse order: marks the values that must be known, and those from which they are computed. */
static void mark_known(onnx_import *import)
{
    const onnx_file *file = import->file;
    for (int n = file->node_count - 1; n >= 0; n--) {
        const Onnx__NodeProto *node = file->node[n];
        const onnx_operator *type = onnx_operator_of(node, (int)file->opset, NULL);
        if (type == NULL) continue;
        bool wanted = type->convert == NULL;
        for (size_t i = 0; i < node->n_output; i++) {
            const onnx_value *value = onnx_value_named(import, node->output[i]);
            wanted = wanted || (node->output[i][0] != '\0' && value != NULL && value->must_be_known);
        }
        for (size_t i = 0; i < node->n_input; i++) {
            onnx_value *value = node->input[i][0] != '\0' ? onnx_value_named(import, node->input[i]) : NULL;
            bool named = i < 32 && (type->known >> i & 1);
            if (value != NULL && (named || (wanted && !type->of_shape))) value->must_be_known = true;
        }
    }
}

/* ---- outputs ---- */

/* Checks an output's declared element type against the actual one, as far as SDLF distinguishes types: all float types
 * are one. */
static sdlf_status check_type(const onnx_file *file, const Onnx__ValueInfoProto *output, const onnx_value *value)
{
    int said = output->type != NULL && output->type->tensor_type != NULL ? output->type->tensor_type->elem_type : 0;
    sdlf_dtype expected = onnx_type_computed(said);
    sdlf_dtype found = value->kind == ONNX_CONSTANT ? onnx_type_computed((int)value->tensor.type) : value->flow.dtype;
    bool same = sdlf_dtype_is_float(expected) ? sdlf_dtype_is_float(found) : expected == found;
    if (expected == SDLF_NONE || found == SDLF_NONE || same) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: output '%s' is declared as %s, but is %s", file->path,
                     text_show(value->name).text, onnx_type_name(said), sdlf_dtype_name(found));
}

static sdlf_status add_outputs(onnx_import *import)
{
    onnx_file *file = import->file;
    if (file->output_count == 0) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the graph has no outputs", file->path);
    for (int i = 0; i < file->output_count; i++) {
        const char *name = file->output[i]->name;
        onnx_value *value = onnx_value_named(import, name);
        if (value == NULL) return out_of_memory(import);
        if (value->is_output)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: output '%s' is duplicated", file->path, text_show(name).text);
        value->is_output = true;
        onnx_flow flow = value->flow;
        if (value->kind == ONNX_CONSTANT) {
            static const Onnx__NodeProto none = ONNX__NODE_PROTO__INIT;
            onnx_context c = {.import = import, .node = &none, .position = file->node_count};
            if (value->tensor.batched)
                onnx_unsupported(&c, "it has no elements in a sample, but the plan chooses the batch");
            flow = value->tensor.count == 0 ? onnx_empty_output(&c, &value->tensor)
                                            : onnx_constant_layer(&c, &value->tensor);
            onnx_blocks_end_node(&file->blocks);
            if (c.status != SDLF_OK)
                return sdlf_fail_context(c.status, "%s: output '%s'", file->path, text_show(name).text);
        } else if (value->kind == ONNX_UNMADE && !value->failed) {
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: no node makes the graph's output '%s'", file->path,
                             text_show(name).text);
        }
        sdlf_status status = check_type(file, file->output[i], value);
        if (status != SDLF_OK) return status;
        if (flow.node.layer >= 0) sdlf_output(import->model, name, flow.node);
    }
    for (int i = 0; i < file->output_count; i++) {
        const char *name = file->output[i]->name;
        onnx_dynamic_length_output(import, name, onnx_value_named(import, name));
    }
    return sdlf_model_status(import->model);
}

enum { MAX_OUTPUTS = 4096 }; /* each name is compared with all before it */

/* True if the opset is supported, or an older one in which the operators that the graph uses are
 * unchanged. */
static bool is_read(const onnx_file *file)
{
    bool same = file->opset >= 1;
    for (int i = 0; i < file->node_count && same; i++) {
        const onnx_operator *type = onnx_operator_of(file->node[i], (int)file->opset, NULL);
        same = type != NULL && type->from_first;
    }
    return same || (file->opset >= ONNX_FIRST_OPSET && file->opset <= ONNX_LAST_OPSET);
}

static sdlf_status check_file(const onnx_file *file)
{
    if (file->opset > ONNX_LAST_OPSET || !is_read(file))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: it is in opset %lld; opsets %d to %d are supported", file->path,
                         (long long)file->opset, ONNX_FIRST_OPSET, ONNX_LAST_OPSET);
    if (file->output_count > MAX_OUTPUTS)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: it has more than %d outputs", file->path, MAX_OUTPUTS);
    if (file->has_sparse) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: it has sparse weights", file->path);
    for (int i = 0; i < file->node_count; i++)
        if (file->node[i]->n_input > 4096 || file->node[i]->n_output > 4096)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: node %d has more than 4096 inputs or outputs", file->path, i);
    return SDLF_OK;
}

/* Steps whose failure ends an import even with a report. */
static sdlf_status prepare(onnx_import *import)
{
    sdlf_status status = onnx_branches_read(import);
    if (status == SDLF_OK) status = make_values(import);
    if (status == SDLF_OK) status = add_weights(import);
    if (status == SDLF_OK) status = link_nodes(import);
    if (status == SDLF_OK) mark_known(import);
    return status;
}

/* Bounds the parameters' size, which the file determines without being as large: a weight may be used by many layers,
 * or a constant be one repeated element. */
static sdlf_status check_parameters(const onnx_import *import)
{
    onnx_file *file = import->file;
    int64_t bytes = 0;
    read_budget_add_stored(&file->budget, onnx_folder_bytes(&file->folder));
    for (int i = 0; i < import->model->parameter_count; i++) {
        int64_t count = sdlf_shape_count(import->model->parameters[i].spec.shape), size = sizeof(float);
        bytes = count <= (INT64_MAX - bytes) / size ? bytes + count * size : INT64_MAX;
    }
    return sdlf_fail_context(read_budget_check(&file->budget, bytes, "its parameters"), "%s", file->path);
}

sdlf_status onnx_import_run(sdlf_model **model, onnx_file *file, const sdlf_onnx_options *options,
                            sdlf_onnx_report *report, bool fill)
{
    static const sdlf_onnx_options none = {0};
    onnx_import import = {.file = file,
                          .options = options != NULL ? options : &none,
                          .report = report,
                          .fills = fill,
                          .names = {.arena = &file->arena},
                          .layers = {.arena = &file->arena}};
    *model = NULL;
    sdlf_status status = check_file(file);
    if (status == SDLF_OK) status = prepare(&import);
    if (status != SDLF_OK) return status;
    import.model = sdlf_model_create(file->graph_name[0] != '\0' ? text_show(file->graph_name).text : "onnx");
    if (import.model == NULL) return out_of_memory(&import);
    status = report != NULL ? onnx_report_values(&import) : SDLF_OK;
    if (status == SDLF_OK) status = onnx_import_inputs(&import);
    for (int i = 0; i < file->node_count && status == SDLF_OK; i++) status = onnx_import_node(&import, i);
    bool complete = report == NULL || report->status == SDLF_OK;
    if (status == SDLF_OK && complete) status = add_outputs(&import);
    if (status == SDLF_OK && complete && report != NULL) onnx_report_outputs(&import);
    if (status == SDLF_OK && complete) status = model_describe(import.model);
    if (status == SDLF_OK && complete) {
        status = check_parameters(&import);
        if (status != SDLF_OK && report != NULL) {
            onnx_report_failure(report, status);
            complete = false;
            status = SDLF_OK;
        }
    }
    if (status == SDLF_OK && file->normalization[0] != '\0')
        status = normalization_json_read(&import.model->normalization, file->normalization, file->path);
    model_classes classes = {.count = 0};
    if (status == SDLF_OK && file->classes[0] != '\0') status = classes_json_read(&classes, file->classes, file->path);
    if (status == SDLF_OK && classes.count > 0) model_take_classes(import.model, &classes);
    bool leave = import.options->leave_weights;
    if (status == SDLF_OK && complete && fill && !leave) status = onnx_fill_parameters(&import);
    if (status == SDLF_OK) status = onnx_file_check(file);
    if (status == SDLF_OK && complete && fill && leave) status = onnx_defer_parameters(&import);
    if (status == SDLF_OK && complete)
        *model = import.model;
    else
        sdlf_model_free(import.model);
    return status;
}
