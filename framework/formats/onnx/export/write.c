/* SPDX-License-Identifier: MIT */
/* Writes the graph to a file: a ModelProto, packed piece by piece into a file that is created atomically. Weights are
 * written directly from the model's memory, into the message or into an external file (outside.c). */
#include "framework/formats/onnx/export/export.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/little_endian.h"
#include "framework/formats/onnx/export/outside.h"
#include "framework/formats/training_json.h"
#include "framework/formats/weights.h"

enum { MESSAGE_LIMIT = INT32_MAX };

/* ---- packing ---- */

typedef struct sink {
    ProtobufCBuffer base;
    atomic_file file;
    sdlf_status status;
    size_t used;
    uint8_t bytes[1 << 15];
} sink;

static void flush(sink *to)
{
    if (to->status == SDLF_OK && to->used > 0) to->status = atomic_file_write(&to->file, to->bytes, to->used);
    to->used = 0;
}

/* Buffers small pieces; weights are written through. */
static void append(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
    sink *to = (sink *)buffer;
    if (size > sizeof to->bytes - to->used) flush(to);
    if (size > sizeof to->bytes) {
        if (to->status == SDLF_OK) to->status = atomic_file_write(&to->file, bytes, size);
        return;
    }
    memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
}

/* Writes the message and commits it together with the external weights, or abandons both. */
static sdlf_status write_message(const Onnx__ModelProto *model, const char *path, export_outside *outside)
{
    sink *to = malloc(sizeof *to);
    if (to == NULL) {
        export_outside_abandon(outside);
        return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing '%s'", path);
    }
    to->base.append = append;
    to->used = 0;
    to->status = atomic_file_open(&to->file, path);
    bool opened = to->status == SDLF_OK;
    if (opened) {
        protobuf_c_message_pack_to_buffer(&model->base, &to->base);
        flush(to);
    }
    sdlf_status status = to->status;
    if (status == SDLF_OK) {
        status = export_outside_commit(outside, &to->file, path);
    } else {
        if (opened) atomic_file_abandon(&to->file);
        export_outside_abandon(outside);
    }
    free(to);
    return status;
}

/* ---- the model ---- */

static int64_t ir_version(int opset)
{
    return opset <= 18 ? 8 : opset <= 20 ? 9 : 10;
}

Onnx__StringStringEntryProto *export_entry(onnx_export *e, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry = onnx_arena_take(&e->arena, sizeof *entry);
    if (entry == NULL) return NULL;
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)key;
    entry->value = onnx_arena_text(&e->arena, value, strlen(value));
    return entry->value != NULL ? entry : NULL;
}

/* A runtime must preprocess its input as training did: the same text as in a weights file, except for what the graph
 * does itself. */
static sdlf_status add_metadata(onnx_export *e, Onnx__ModelProto *model, Onnx__StringStringEntryProto *place[2])
{
    sdlf_status status = SDLF_OK;
    sdlf_normalization left = e->model->normalization;
    if (e->normalize) left = (sdlf_normalization){.scale = 1, .fit = left.fit, .known = true};
    model->metadata_props = place;
    for (int which = 0; which < 2 && status == SDLF_OK; which++) {
        bool classes = which == 1;
        char *text = NULL;
        if (classes ? e->model->classes.count == 0 : !e->model->normalization.known) continue;
        status = classes ? classes_json_write(&text, &e->model->classes) : normalization_json_write(&text, &left);
        if (status != SDLF_OK) return status;
        place[model->n_metadata_props] = export_entry(e, classes ? WEIGHTS_CLASSES : WEIGHTS_NORMALIZATION, text);
        if (place[model->n_metadata_props++] == NULL)
            status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for the graph of model '%s'", e->model->name);
        free(text);
    }
    return status;
}

Onnx__ModelProto export_message(onnx_export *e, Onnx__OperatorSetIdProto *opset, Onnx__OperatorSetIdProto *opsets[1])
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    model.has_ir_version = true;
    model.ir_version = ir_version(e->opset);
    model.producer_name = (char *)"sdlf";
    model.producer_version = (char *)SDLF_VERSION;
    model.graph = &e->graph;
    onnx__operator_set_id_proto__init(opset);
    opset->domain = (char *)"";
    opset->has_version = true;
    opset->version = e->opset;
    opsets[0] = opset;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    return model;
}

sdlf_status export_write(onnx_export *e, const char *path, bool external, sdlf_onnx_exported *result)
{
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__StringStringEntryProto *metadata[2] = {NULL};
    if (!host_is_little_endian())
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "ONNX files are written only on little-endian machines");
    Onnx__ModelProto model = export_message(e, &opset, opsets);
    sdlf_status status = add_metadata(e, &model, metadata);
    if (status != SDLF_OK) return status;
    /* a message is limited to 2 GB; larger models have external weights */
    export_outside outside = {.path = NULL};
    if (external || protobuf_c_message_get_packed_size(&model.base) > MESSAGE_LIMIT) {
        status = export_outside_write(&outside, e, path);
        if (status != SDLF_OK) return status;
        result->external_bytes = outside.bytes;
        snprintf(result->external_file, sizeof result->external_file, "%s", outside.path != NULL ? outside.name : "");
    }
    size_t size = protobuf_c_message_get_packed_size(&model.base);
    if (size > MESSAGE_LIMIT) {
        export_outside_abandon(&outside);
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "'%s' would have %zu bytes: ONNX files have 2 GB at most", path, size);
    }
    result->bytes = (int64_t)size;
    return write_message(&model, path, &outside);
}
