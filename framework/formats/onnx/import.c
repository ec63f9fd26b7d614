/* The import: values, nodes in the file's order, outputs. See import.h. */
#include "framework/formats/onnx/import.h"

#include <stdio.h>
#include <string.h>

#include "framework/formats/onnx/fold.h"
#include "framework/formats/onnx/report.h"
#include "framework/formats/text.h"
#include "framework/formats/training_json.h"

static sdlf_status out_of_memory(const onnx_import *import)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory making a model of it", import->file->path);
}

onnx_value *onnx_value_named(onnx_import *import, const char *name)
{
    int index = onnx_names_find(&import->names, name);
    if (index >= 0) return &import->value[index];
    if (import->value_count == import->value_capacity || !onnx_names_put(&import->names, name, import->value_count))
        return NULL;
    onnx_value *value = &import->value[import->value_count++];
    *value = (onnx_value){.name = name, .producer = -1, .reader = -1, .flow = {.node = {-1, 0}}};
    return value;
}

/* ---- what there is ---- */

/* Room for every name in the graph, so that values stay where they are. */
static sdlf_status make_values(onnx_import *import)
{
    const onnx_file *file = import->file;
    size_t count = (size_t)file->initializer_count + (size_t)file->input_count + (size_t)file->output_count;
    for (int i = 0; i < file->node_count; i++) count += file->node[i]->n_input + file->node[i]->n_output;
    if (count > INT32_MAX) return out_of_memory(import);
    import->value = onnx_arena_array(&import->file->arena, count, sizeof *import->value);
    import->value_capacity = (int)count;
    return import->value != NULL ? SDLF_OK : out_of_memory(import);
}

static sdlf_status add_weights(onnx_import *import)
{
    onnx_file *file = import->file;
    for (int i = 0; i < file->initializer_count; i++) {
        onnx_value *value = onnx_value_named(import, file->initializer[i].name);
        if (value == NULL) return out_of_memory(import);
        int64_t count = file->initializer[i].count;
        import->limit += count < INT64_MAX - import->limit ? count : 0;
        if (value->kind != ONNX_UNMADE)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: two weights are named '%s'", file->path,
                             text_show(value->name).text);
        value->kind = ONNX_CONSTANT;
        value->tensor = file->initializer[i];
    }
    return SDLF_OK;
}

/* Who makes each value, and who reads it. */
static sdlf_status link_nodes(onnx_import *import)
{
    onnx_file *file = import->file;
    for (int n = 0; n < file->node_count; n++) {
        const Onnx__NodeProto *node = file->node[n];
        for (size_t i = 0; i < node->n_input; i++) {
            if (node->input[i][0] == '\0') continue;
            onnx_value *value = onnx_value_named(import, node->input[i]);
            if (value == NULL) return out_of_memory(import);
            value->readers++;
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
        onnx_value *value = onnx_value_named(import, file->output[i]->name != NULL ? file->output[i]->name : "");
        if (value == NULL) return out_of_memory(import);
        value->readers++;
    }
    return SDLF_OK;
}

static bool is_standard(const Onnx__NodeProto *node)
{
    return node->domain == NULL || node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0;
}

/* From the last node to the first: what must be known, and what that is worked out from. */
static void mark_known(onnx_import *import)
{
    const onnx_file *file = import->file;
    for (int n = file->node_count - 1; n >= 0; n--) {
        const Onnx__NodeProto *node = file->node[n];
        const onnx_operator *type = onnx_operator_find(node->op_type, (int)file->opset, NULL);
        if (type == NULL || !is_standard(node)) continue;
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

/* ---- one node ---- */

/* Everything that the node reads must have been made. `waits`: it has not, because of an earlier failure. */
static sdlf_status gather_inputs(onnx_context *c, bool *waits)
{
    const Onnx__NodeProto *node = c->node;
    c->input = onnx_arena_array(&c->import->file->arena, node->n_input + 1, sizeof(void *));
    c->output = onnx_arena_array(&c->import->file->arena, node->n_output + 1, sizeof(void *));
    if (c->input == NULL || c->output == NULL) return out_of_memory(c->import);
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
    if (!is_standard(c->node))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "operator %s of the domain '%s', of which SDLF has none",
                         text_show(name).text, text_show(c->node->domain).text);
    const onnx_operator *other;
    c->type = onnx_operator_find(name, c->opset, &other);
    if (c->type != NULL) return SDLF_OK;
    if (other == NULL) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "SDLF has no operator %s", text_show(name).text);
    return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "SDLF has operator %s from opset %d on, and the model is in opset %d",
                     name, other->since, c->opset);
}

static sdlf_status check_node(const onnx_context *c)
{
    const onnx_operator *type = c->type;
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
        if (c->node->attribute[i]->ref_attr_name != NULL && c->node->attribute[i]->ref_attr_name[0] != '\0')
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "attribute '%s' refers to one of a function", name);
    }
    return SDLF_OK;
}

static bool all_constant(const onnx_context *c)
{
    /* it only moves, or makes a weight; or computes, which is for small constants */
    bool any_size = c->type->fold == c->type->convert || c->type->of_weights;
    for (int i = 0; i < c->input_count; i++) {
        const onnx_value *input = c->input[i];
        if (input == NULL) continue;
        if (input->kind != ONNX_CONSTANT) return false;
        if (!any_size && c->type->convert != NULL && input->tensor.count > ONNX_FOLD_LIMIT) return false;
    }
    return true;
}

/* Fold the node if it can be, else make layers of it. */
static sdlf_status convert(onnx_context *c)
{
    const onnx_operator *type = c->type;
    bool fold = type->fold != NULL && (type->of_shape || all_constant(c));
    if (!fold && type->convert == NULL)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "its inputs must be known when the model is made, and are computed");
    (fold ? type->fold : type->convert)(c);
    if (c->status != SDLF_OK) return c->status;
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

static sdlf_status convert_node(onnx_import *import, int position)
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
    if (status == SDLF_OK && !waits && !done) status = convert(&c);
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

/* ---- outputs ---- */

static sdlf_status add_outputs(onnx_import *import)
{
    onnx_file *file = import->file;
    if (file->output_count == 0) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the graph has no outputs", file->path);
    for (int i = 0; i < file->output_count; i++) {
        const char *name = file->output[i]->name != NULL ? file->output[i]->name : "";
        const onnx_value *value = onnx_value_named(import, name);
        if (value == NULL) return out_of_memory(import);
        onnx_flow flow = value->flow;
        if (value->kind == ONNX_CONSTANT) {
            static const Onnx__NodeProto none = ONNX__NODE_PROTO__INIT;
            onnx_context c = {.import = import, .node = &none, .position = file->node_count};
            flow = onnx_constant_layer(&c, &value->tensor);
            if (c.status != SDLF_OK)
                return sdlf_fail_context(c.status, "%s: output '%s'", file->path, text_show(name).text);
        } else if (value->kind == ONNX_UNMADE && !value->failed) {
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: no node makes the graph's output '%s'", file->path,
                             text_show(name).text);
        }
        if (flow.node.layer >= 0) sdlf_output(import->model, name, flow.node);
    }
    return sdlf_model_status(import->model);
}

static sdlf_status check_file(const onnx_file *file)
{
    if (file->opset < ONNX_FIRST_OPSET || file->opset > ONNX_LAST_OPSET)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: it is in opset %lld; opsets %d to %d are supported", file->path,
                         (long long)file->opset, ONNX_FIRST_OPSET, ONNX_LAST_OPSET);
    if (file->has_sparse) return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: it has sparse weights", file->path);
    for (int i = 0; i < file->node_count; i++)
        if (file->node[i]->n_input > 4096 || file->node[i]->n_output > 4096)
            return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: node %d has more than 4096 inputs or outputs", file->path, i);
    return SDLF_OK;
}

/* Steps that end an import even where a report is wanted. */
static sdlf_status prepare(onnx_import *import)
{
    sdlf_status status = make_values(import);
    if (status == SDLF_OK) status = add_weights(import);
    if (status == SDLF_OK) status = link_nodes(import);
    if (status == SDLF_OK) mark_known(import);
    return status;
}

sdlf_status onnx_import_run(sdlf_model **model, onnx_file *file, const sdlf_onnx_options *options,
                            sdlf_onnx_report *report, bool fill)
{
    static const sdlf_onnx_options none = {0};
    onnx_import import = {.file = file,
                          .options = options != NULL ? options : &none,
                          .report = report,
                          .fills = fill,
                          .limit = ONNX_FOLD_TOTAL,
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
    for (int i = 0; i < file->node_count && status == SDLF_OK; i++) status = convert_node(&import, i);
    bool complete = report == NULL || report->status == SDLF_OK;
    if (status == SDLF_OK && complete) status = add_outputs(&import);
    if (status == SDLF_OK && complete) status = model_describe(import.model);
    if (status == SDLF_OK && file->normalization[0] != '\0')
        status = normalization_json_read(&import.model->normalization, file->normalization, file->path);
    if (status == SDLF_OK && complete && fill) status = onnx_fill_parameters(&import);
    if (status == SDLF_OK) status = onnx_file_check(file);
    if (status == SDLF_OK && complete)
        *model = import.model;
    else
        sdlf_model_free(import.model);
    return status;
}
