/* SPDX-License-Identifier: MIT */
/* Walks ModelProto and GraphProto in place: first counts, then reads. Nodes and value infos are small and go through
 * protobuf-c; the weights are not read. */
#include "framework/formats/onnx/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/allocator.h"
#include "framework/formats/weights.h"

enum model_field {
    IR_VERSION = 1,
    PRODUCER = 2,
    PRODUCER_VERSION = 3,
    GRAPH = 7,
    OPSET_IMPORT = 8,
    METADATA = 14,
    FUNCTIONS = 25
};
enum graph_field { NODE = 1, GRAPH_NAME = 2, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, SPARSE_INITIALIZER = 15 };

enum { MAX_ITEMS = 1 << 20 }; /* nodes, weights: far above any network, and bounds the time of a plan's passes */

static sdlf_status out_of_memory(const onnx_file *file)
{
    return sdlf_fail_context(read_budget_fail(&file->budget), "%s", file->path);
}

static sdlf_status copy_text(onnx_file *file, const wire_reader *reader, const char **text, const wire_field *field)
{
    if (field->type != WIRE_BYTES) return SDLF_OK;
    sdlf_status status = wire_need_text(reader, field->span);
    if (status != SDLF_OK) return status;
    *text = onnx_arena_text(&file->arena, (const char *)field->span.bytes, (size_t)field->span.size);
    return *text != NULL ? SDLF_OK : out_of_memory(file);
}

/* ---- graph ---- */

static sdlf_status count_items(onnx_file *file, wire_reader reader)
{
    for (;;) {
        wire_field field;
        sdlf_status status = wire_next(&reader, &field);
        if (status != SDLF_OK) return status;
        if (field.number == 0) break;
        if (field.type != WIRE_BYTES) continue;
        file->node_count += field.number == NODE;
        file->initializer_count += field.number == INITIALIZER;
        file->input_count += field.number == INPUT;
        file->output_count += field.number == OUTPUT;
        if (file->node_count > MAX_ITEMS || file->initializer_count > MAX_ITEMS || file->input_count > MAX_ITEMS ||
            file->output_count > MAX_ITEMS)
            return wire_fail(&reader, reader.at, "more than %d nodes, weights, inputs or outputs", MAX_ITEMS);
    }
    file->node = onnx_arena_array(&file->arena, (size_t)file->node_count, sizeof(void *));
    file->input = onnx_arena_array(&file->arena, (size_t)file->input_count, sizeof(void *));
    file->output = onnx_arena_array(&file->arena, (size_t)file->output_count, sizeof(void *));
    file->initializer = onnx_arena_array(&file->arena, (size_t)file->initializer_count, sizeof *file->initializer);
    bool ok = file->node != NULL && file->input != NULL && file->output != NULL && file->initializer != NULL;
    file->node_count = file->input_count = file->output_count = file->initializer_count = 0;
    return ok ? SDLF_OK : out_of_memory(file);
}

static sdlf_status read_initializer(onnx_file *file, const wire_reader *reader, wire_span span)
{
    onnx_tensor *tensor = &file->initializer[file->initializer_count];
    sdlf_status status =
        onnx_tensor_read(tensor, wire_inside(reader, span, "TensorProto"), &file->folder, &file->arena);
    if (status != SDLF_OK) return status;
    file->initializer_count++;
    file->initializer_bytes += tensor->count * (int64_t)onnx_type_size(tensor->type);
    return SDLF_OK;
}

/* The message is set; returns the status of the disk or the budget, if that was the cause. */
static sdlf_status failed_to_unpack(const onnx_file *file)
{
    if (file->budget.refused) return SDLF_ERROR_MEMORY;
    return file->map.failed ? SDLF_ERROR_IO : SDLF_ERROR_FORMAT;
}

static sdlf_status read_item(onnx_file *file, const wire_reader *reader, const wire_field *field)
{
    if (field->type != WIRE_BYTES) return SDLF_OK;
    void *message = NULL;
    Onnx__ValueInfoProto *output;
    switch (field->number) {
    case NODE:
        message = onnx_unpack(&onnx__node_proto__descriptor, reader, field->span, &file->arena);
        file->node[file->node_count++] = message;
        break;
    case INPUT:
        message = onnx_unpack(&onnx__value_info_proto__descriptor, reader, field->span, &file->arena);
        file->input[file->input_count++] = message;
        break;
    case OUTPUT:
        message = output = onnx_unpack(&onnx__value_info_proto__descriptor, reader, field->span, &file->arena);
        if (output != NULL && output->name == NULL) output->name = "";
        file->output[file->output_count++] = output;
        break;
    case INITIALIZER: return read_initializer(file, reader, field->span);
    case SPARSE_INITIALIZER: file->has_sparse = true; return SDLF_OK;
    case GRAPH_NAME: return copy_text(file, reader, &file->graph_name, field);
    default: return SDLF_OK;
    }
    return message != NULL ? SDLF_OK : failed_to_unpack(file);
}

static sdlf_status read_graph(onnx_file *file, wire_reader reader)
{
    sdlf_status status = count_items(file, reader);
    while (status == SDLF_OK) {
        wire_field field;
        status = wire_next(&reader, &field);
        if (status != SDLF_OK || field.number == 0) break;
        status = read_item(file, &reader, &field);
    }
    return status;
}

/* ---- model ---- */

static sdlf_status read_opset(onnx_file *file, const wire_reader *reader, wire_span span)
{
    const Onnx__OperatorSetIdProto *opset =
        onnx_unpack(&onnx__operator_set_id_proto__descriptor, reader, span, &file->arena);
    if (opset == NULL) return failed_to_unpack(file);
    file->is_model = true;
    bool standard = opset->domain == NULL || opset->domain[0] == '\0' || strcmp(opset->domain, "ai.onnx") == 0;
    if (standard && file->opset != 0 && file->opset != opset->version)
        return wire_fail(reader, span.bytes, "opset %lld, and %lld before", (long long)opset->version,
                         (long long)file->opset);
    if (standard) file->opset = opset->version;
    file->has_learning = file->has_learning || (opset->domain != NULL && strcmp(opset->domain, "ai.onnx.ml") == 0);
    return SDLF_OK;
}

enum { MAX_FUNCTIONS = 4096 };

static sdlf_status read_function(onnx_file *file, const wire_reader *reader, wire_span span)
{
    if (file->function == NULL) file->function = onnx_arena_array(&file->arena, MAX_FUNCTIONS, sizeof(void *));
    if (file->function == NULL) return out_of_memory(file);
    if (file->function_count == MAX_FUNCTIONS)
        return wire_fail(reader, span.bytes, "more than %d functions", MAX_FUNCTIONS);
    Onnx__FunctionProto *function = onnx_unpack(&onnx__function_proto__descriptor, reader, span, &file->arena);
    if (function == NULL) return failed_to_unpack(file);
    file->function[file->function_count++] = function;
    return SDLF_OK;
}

static sdlf_status read_metadata(onnx_file *file, const wire_reader *reader, wire_span span)
{
    const Onnx__StringStringEntryProto *entry =
        onnx_unpack(&onnx__string_string_entry_proto__descriptor, reader, span, &file->arena);
    if (entry == NULL) return failed_to_unpack(file);
    if (entry->key != NULL && entry->value != NULL && strcmp(entry->key, WEIGHTS_NORMALIZATION) == 0)
        file->normalization = entry->value;
    if (entry->key != NULL && entry->value != NULL && strcmp(entry->key, WEIGHTS_CLASSES) == 0)
        file->classes = entry->value;
    return SDLF_OK;
}

static sdlf_status read_model(onnx_file *file, wire_reader reader)
{
    bool has_graph = false;
    wire_span graph = {NULL, 0};
    for (;;) {
        wire_field field;
        sdlf_status status = wire_next(&reader, &field);
        if (status != SDLF_OK) return status;
        if (field.number == 0) break;
        bool is_bytes = field.type == WIRE_BYTES;
        if (field.number == IR_VERSION && field.type == WIRE_VARINT) {
            file->ir_version = (int64_t)field.value;
            file->is_model = true;
        }
        if (field.number == PRODUCER) status = copy_text(file, &reader, &file->producer, &field);
        if (field.number == PRODUCER_VERSION) status = copy_text(file, &reader, &file->producer_version, &field);
        if (field.number == OPSET_IMPORT && is_bytes) status = read_opset(file, &reader, field.span);
        if (field.number == METADATA && is_bytes) status = read_metadata(file, &reader, field.span);
        if (field.number == FUNCTIONS && is_bytes) status = read_function(file, &reader, field.span);
        if (field.number == GRAPH && is_bytes) {
            if (has_graph) return wire_fail(&reader, field.span.bytes, "a second graph");
            has_graph = file->is_model = true;
            graph = field.span;
        }
        if (status != SDLF_OK) return status;
    }
    if (!has_graph) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected an ONNX model, found no graph", file->path);
    sdlf_status status = read_graph(file, wire_inside(&reader, graph, "GraphProto"));
    return status == SDLF_OK ? onnx_functions_inline(file) : status;
}

sdlf_status onnx_file_read_branch(onnx_file *file, const void *bytes, size_t size, onnx_branch *branch)
{
    onnx_file whole = *file; /* its own part of the graph is replaced by the branch */
    wire_reader reader = {
        .path = file->path, .file = bytes, .at = bytes, .end = (const uint8_t *)bytes + size, .message = "GraphProto"};
    file->node_count = file->initializer_count = file->input_count = file->output_count = 0;
    sdlf_status status = read_graph(file, reader);
    branch->node = file->node;
    branch->node_count = file->node_count;
    branch->initializer = file->initializer;
    branch->initializer_count = file->initializer_count;
    branch->input = file->input;
    branch->input_count = file->input_count;
    branch->output = file->output;
    branch->output_count = file->output_count;
    file->node = whole.node;
    file->node_count = whole.node_count;
    file->initializer = whole.initializer;
    file->initializer_count = whole.initializer_count;
    file->input = whole.input;
    file->input_count = whole.input_count;
    file->output = whole.output;
    file->output_count = whole.output_count;
    file->graph_name = whole.graph_name;
    return status;
}

enum { BEGINNING = IR_VERSION << 3 | WIRE_VARINT };

/* A file of another kind gets a message that says so, instead of an error inside a model. Every exporter writes the
 * format version first. */
static sdlf_status refuse_other_files(const onnx_file *file, const wire_reader *reader, sdlf_status status)
{
    if (status != SDLF_ERROR_FORMAT || file->is_model) return status;
    if (wire_need(reader, (wire_span){reader->file, 1}) != SDLF_OK) return SDLF_ERROR_IO;
    uint8_t found = reader->file[0];
    char letter[8] = "";
    if (found > ' ' && found < 0x7F) snprintf(letter, sizeof letter, " ('%c')", found);
    return sdlf_fail(
        SDLF_ERROR_FORMAT,
        "%s: not an ONNX model: byte 0: expected 0x%02x, with which a model's version begins, found 0x%02x%s",
        file->path, BEGINNING, found, letter);
}

static sdlf_status check_model(onnx_file *file)
{
    if (file->opset == 0 && file->has_learning) file->opset = 21; /* it has no operators of the standard domain */
    if (file->opset == 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the model does not say which operator set it is written in",
                         file->path);
    if (file->node_count == 0 && file->output_count == 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the graph is empty", file->path);
    return SDLF_OK;
}

static sdlf_status read_bytes(onnx_file *file, const uint8_t *bytes, uint64_t size, onnx_map *map)
{
    if (size == 0) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file is empty", file->path);
    if (!(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__))
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "ONNX files are read only on little-endian machines");
    wire_reader reader = {
        .path = file->path, .file = bytes, .at = bytes, .end = bytes + size, .message = "ModelProto", .map = map};
    sdlf_status status = read_model(file, reader);
    if (status == SDLF_OK) status = check_model(file);
    return refuse_other_files(file, &reader, status);
}

static void begin(onnx_file *file, const char *path)
{
    *file = (onnx_file){
        .path = path, .producer = "", .producer_version = "", .graph_name = "", .normalization = "", .classes = ""};
    file->arena.budget = file->blocks.budget = &file->budget;
}

sdlf_status onnx_file_open(onnx_file *file, const char *path, int64_t read_memory)
{
    begin(file, path);
    sdlf_status status = onnx_map_open(&file->map, path);
    if (status == SDLF_OK) status = read_budget_make(&file->budget, (int64_t)file->map.size, read_memory);
    if (status != SDLF_OK) return status;
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    file->folder.path = length > 0 ? onnx_arena_text(&file->arena, path, length) : ".";
    if (file->folder.path == NULL) return out_of_memory(file);
    return read_bytes(file, file->map.bytes, file->map.size, &file->map);
}

sdlf_status onnx_file_parse(onnx_file *file, const void *bytes, size_t size, const char *name, const char *folder,
                            int64_t read_memory)
{
    begin(file, name);
    file->folder.path = folder;
    sdlf_status status = read_budget_make(&file->budget, (int64_t)size, read_memory);
    return status == SDLF_OK ? read_bytes(file, bytes, size, NULL) : status;
}

sdlf_status onnx_file_check(const onnx_file *file)
{
    sdlf_status status = onnx_map_check(&file->map);
    return status == SDLF_OK ? onnx_folder_check(&file->folder) : status;
}

void onnx_file_close(onnx_file *file)
{
    onnx_folder_release(&file->folder);
    onnx_map_close(&file->map);
    onnx_blocks_release(&file->blocks);
    onnx_arena_release(&file->arena);
}
