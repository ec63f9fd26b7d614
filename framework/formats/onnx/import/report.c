/* SPDX-License-Identifier: MIT */
/* Collects a report during an import. All of its data is in one arena, which the report owns. */
#include "framework/formats/onnx/import/report.h"

#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/import/model_from_onnx.h"
#include "framework/formats/text.h"
#include "framework/require.h"

/* "" when out of memory, which the arena records. */
static const char *copy_text(sdlf_onnx_report *report, const char *text)
{
    onnx_arena *arena = report->memory;
    const char *copy = text != NULL ? onnx_arena_text(arena, text, strlen(text)) : NULL;
    return copy != NULL ? copy : "";
}

static const Onnx__TensorShapeProto *said_shape(const Onnx__ValueInfoProto *info)
{
    return info->type != NULL && info->type->tensor_type != NULL ? info->type->tensor_type->shape : NULL;
}

static sdlf_shape shape_of(const Onnx__ValueInfoProto *info)
{
    sdlf_shape shape = SDLF_SCALAR;
    const Onnx__TensorShapeProto *from = said_shape(info);
    for (size_t i = 0; from != NULL && i < from->n_dim && i < SDLF_MAX_RANK; i++)
        shape.dim[shape.rank++] = from->dim[i]->has_dim_value ? from->dim[i]->dim_value : -1;
    return shape;
}

static sdlf_onnx_value value_of(onnx_import *import, const Onnx__ValueInfoProto *info)
{
    const onnx_value *value = info->name != NULL ? onnx_value_named(import, info->name) : NULL;
    int type = info->type != NULL && info->type->tensor_type != NULL ? info->type->tensor_type->elem_type : 0;
    return (sdlf_onnx_value){.name = copy_text(import->report, info->name),
                             .type = onnx_type_name(type),
                             .shape = shape_of(info),
                             .shape_known = said_shape(info) != NULL,
                             .must_be_known = value != NULL && value->must_be_known};
}

void onnx_report_failure(sdlf_onnx_report *report, sdlf_status status)
{
    if (status == SDLF_OK || report->status != SDLF_OK) return;
    report->status = status;
    report->message = copy_text(report, sdlf_error_message());
}

sdlf_status onnx_report_values(onnx_import *import)
{
    const onnx_file *file = import->file;
    sdlf_onnx_report *report = import->report;
    sdlf_onnx_value *input = onnx_arena_array(report->memory, (size_t)file->input_count + 1, sizeof *input);
    sdlf_onnx_value *output = onnx_arena_array(report->memory, (size_t)file->output_count + 1, sizeof *output);
    sdlf_onnx_node *node = onnx_arena_array(report->memory, (size_t)file->node_count + 1, sizeof *node);
    if (input == NULL || output == NULL || node == NULL)
        return sdlf_fail_context(read_budget_fail(&file->budget), "%s", file->path);
    for (int i = 0; i < file->input_count; i++) {
        const char *name = file->input[i]->name;
        int index = name != NULL ? onnx_name_table_find(&import->names, name) : -1;
        bool weight = index >= 0 && import->value[index].kind == ONNX_CONSTANT; /* old files list weights as inputs */
        if (!weight) input[report->input_count++] = value_of(import, file->input[i]);
    }
    for (int i = 0; i < file->output_count; i++) output[report->output_count++] = value_of(import, file->output[i]);
    for (int i = 0; i < file->initializer_count; i++) report->weight_count += file->initializer[i].count;
    report->input = input;
    report->output = output;
    report->node = node;
    return SDLF_OK;
}

void onnx_report_outputs(onnx_import *import)
{
    const onnx_file *file = import->file;
    sdlf_onnx_report *report = import->report;
    for (int i = 0; i < report->output_count; i++) {
        sdlf_onnx_value *output = (sdlf_onnx_value *)&report->output[i];
        const onnx_value *value = onnx_value_named(import, file->output[i]->name);
        if (value == NULL || value->kind == ONNX_UNMADE) continue;
        sdlf_shape shape = value->kind == ONNX_CONSTANT ? value->tensor.shape : value->flow.shape;
        bool open = import->batched && output->shape_known && output->shape.rank == shape.rank && shape.rank > 0 &&
                    output->shape.dim[0] < 0 && shape.dim[0] == 1;
        if (open) shape.dim[0] = -1;
        output->shape = shape;
        output->shape_known = true;
    }
}

sdlf_status onnx_report_node(onnx_import *import, const onnx_context *c, sdlf_status status, bool waits)
{
    sdlf_onnx_report *report = import->report;
    sdlf_onnx_node *node = (sdlf_onnx_node *)&report->node[report->node_count++];
    *node = (sdlf_onnx_node){.type = copy_text(report, c->node->op_type),
                             .name = copy_text(report, c->node->name),
                             .domain = copy_text(report, c->node->domain),
                             .status = status != SDLF_OK ? status
                                       : waits           ? SDLF_ERROR_UNSUPPORTED
                                                         : SDLF_OK};
    if (status != SDLF_OK) {
        node->reason = copy_text(report, sdlf_error_message());
        report->failed_count++;
        onnx_report_failure(report, sdlf_fail_context(status, "%s: node %d (%s)", import->file->path, c->position,
                                                      text_show(node->type).text));
    }
    const onnx_value *value = c->output != NULL && c->output_count > 0 ? c->output[0] : NULL;
    if (value != NULL && value->kind != ONNX_UNMADE) {
        node->shape_known = true;
        node->shape = value->kind == ONNX_CONSTANT ? value->tensor.shape : value->flow.shape;
    }
    return SDLF_OK;
}

/* `status` tells whether the file was opened. It is closed here. */
static sdlf_status inspect(sdlf_onnx_report **result, onnx_file *file, sdlf_status status,
                           const sdlf_onnx_options *options)
{
    *result = NULL;
    sdlf_onnx_report *report = status == SDLF_OK ? calloc(1, sizeof *report) : NULL;
    onnx_arena *arena = report != NULL ? calloc(1, sizeof *arena) : NULL;
    if (status == SDLF_OK && arena == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", file->path);
    if (status == SDLF_OK) {
        report->memory = arena;
        arena->budget = &file->budget;
        report->ir_version = file->ir_version;
        report->opset = file->opset;
        report->file_bytes = (int64_t)file->map.size;
        report->weight_bytes = file->initializer_bytes;
        report->producer = copy_text(report, file->producer);
        report->graph = copy_text(report, file->graph_name);
        sdlf_status made = onnx_import_run(&report->model, file, options, report, false);
        onnx_report_failure(report, made);
        if (made == SDLF_ERROR_MEMORY) status = made;
        if (status == SDLF_OK && arena->exhausted)
            status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", file->path);
    }
    if (arena != NULL) arena->budget = NULL; /* which is freed with the file */
    onnx_file_close(file);
    if (status == SDLF_OK) {
        *result = report;
    } else {
        if (arena == NULL)
            free(report);
        else
            sdlf_onnx_report_free(report);
    }
    return status;
}

static int64_t read_memory(const sdlf_onnx_options *options)
{
    return options != NULL ? options->read_memory : 0;
}

sdlf_status sdlf_onnx_inspect(sdlf_onnx_report **report, const char *path, const sdlf_onnx_options *options)
{
    SDLF_REQUIRE(report);
    *report = NULL;
    SDLF_REQUIRE(path);
    onnx_file file;
    return inspect(report, &file, onnx_file_open(&file, path, read_memory(options)), options);
}

sdlf_status onnx_inspect_bytes(sdlf_onnx_report **report, const void *bytes, size_t size, const char *name,
                               const char *folder, const sdlf_onnx_options *options)
{
    onnx_file file;
    return inspect(report, &file, onnx_file_parse(&file, bytes, size, name, folder, read_memory(options)), options);
}

void sdlf_onnx_report_free(sdlf_onnx_report *report)
{
    if (report == NULL) return;
    sdlf_model_free(report->model);
    onnx_arena_release(report->memory);
    free(report->memory);
    free(report);
}
