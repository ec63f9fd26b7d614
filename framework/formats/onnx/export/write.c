/* The graph as a file: a ModelProto, packed piece by piece into a file that appears whole or not at all. Weights are written from
 * where the model has them, into the message or into a file beside it. */
#include "framework/formats/onnx/export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/little_endian.h"
#include "framework/formats/training_json.h"
#include "framework/formats/weights.h"

enum { MESSAGE_LIMIT = INT32_MAX, OUTSIDE = 1, ALIGNMENT = 4096, SMALL = 1024 };

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

/* Small pieces are gathered; weights go through. */
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

/* `outside`, where it is not NULL, has its weights: what is open of it is ended, with the message's file or without. */
static sdlf_status write_message(const Onnx__ModelProto *model, const char *path, atomic_file *outside)
{
    sink *to = malloc(sizeof *to);
    if (to == NULL) {
        if (outside != NULL) atomic_file_abandon(outside);
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
        status = outside != NULL ? atomic_file_commit_both(outside, &to->file) : atomic_file_commit(&to->file);
    } else {
        if (opened) atomic_file_abandon(&to->file);
        if (outside != NULL) atomic_file_abandon(outside);
    }
    free(to);
    return status;
}

/* ---- weights in a file of their own ---- */

static Onnx__StringStringEntryProto *make_entry(onnx_export *e, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry = onnx_arena_take(&e->arena, sizeof *entry);
    if (entry == NULL) return NULL;
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)key;
    entry->value = onnx_arena_text(&e->arena, value, strlen(value));
    return entry->value != NULL ? entry : NULL;
}

/* Say where a tensor's bytes are, instead of having them. */
static bool refer(onnx_export *e, Onnx__TensorProto *tensor, const char *file, int64_t offset)
{
    char begin[24], length[24];
    snprintf(begin, sizeof begin, "%" PRId64, offset);
    snprintf(length, sizeof length, "%zu", tensor->raw_data.len);
    tensor->external_data = onnx_arena_array(&e->arena, 3, sizeof(void *));
    if (tensor->external_data == NULL) return false;
    const char *const entries[3][2] = {{"location", file}, {"offset", begin}, {"length", length}};
    for (tensor->n_external_data = 0; tensor->n_external_data < 3; tensor->n_external_data++) {
        const char *const *entry = entries[tensor->n_external_data];
        tensor->external_data[tensor->n_external_data] = make_entry(e, entry[0], entry[1]);
        if (tensor->external_data[tensor->n_external_data] == NULL) return false;
    }
    tensor->has_raw_data = false;
    tensor->has_data_location = true;
    tensor->data_location = OUTSIDE;
    return true;
}

static sdlf_status write_padding(atomic_file *file, int64_t *at)
{
    static const uint8_t zeros[ALIGNMENT];
    int64_t more = (ALIGNMENT - *at % ALIGNMENT) % ALIGNMENT;
    *at += more;
    return more > 0 ? atomic_file_write(file, zeros, (size_t)more) : SDLF_OK;
}

/* All weights but the smallest, each at a page of its own. Their tensors then refer to them. The file is left to be committed with the
 * message, without which it is nothing. */
static sdlf_status write_outside(onnx_export *e, const char *path, atomic_file *file, int64_t *bytes)
{
    size_t size = strlen(path) + sizeof ".data";
    char *outside = onnx_arena_take(&e->arena, size);
    if (outside == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing '%s'", path);
    snprintf(outside, size, "%s.data", path);
    const char *slash = strrchr(outside, '/'), *name = slash != NULL ? slash + 1 : outside;
    int64_t at = 0;
    sdlf_status status = atomic_file_open(file, outside);
    if (status != SDLF_OK) return status;
    for (size_t i = 0; i < e->graph.n_initializer && status == SDLF_OK; i++) {
        Onnx__TensorProto *tensor = e->graph.initializer[i];
        if (tensor->raw_data.len < SMALL) continue;
        status = write_padding(file, &at);
        if (status == SDLF_OK) status = atomic_file_write(file, tensor->raw_data.data, tensor->raw_data.len);
        if (status == SDLF_OK && !refer(e, tensor, name, at))
            status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing '%s'", outside);
        at += (int64_t)tensor->raw_data.len;
    }
    *bytes = at;
    if (status != SDLF_OK) atomic_file_abandon(file);
    return status;
}

/* ---- the model ---- */

static int64_t ir_version(int opset)
{
    return opset <= 18 ? 8 : opset <= 20 ? 9 : 10;
}

/* Whoever runs the model must treat its input as training did: the same text as in a weights file. */
static sdlf_status add_normalization(onnx_export *e, Onnx__ModelProto *model, Onnx__StringStringEntryProto **place)
{
    char *text = NULL;
    if (!e->model->normalization.known) return SDLF_OK;
    sdlf_status status = normalization_json_write(&text, &e->model->normalization);
    if (status == SDLF_OK && (*place = make_entry(e, WEIGHTS_NORMALIZATION, text)) == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for the graph of model '%s'", e->model->name);
    free(text);
    if (status != SDLF_OK) return status;
    model->metadata_props = place;
    model->n_metadata_props = 1;
    return SDLF_OK;
}

sdlf_status export_write(onnx_export *e, const char *path, bool external, sdlf_onnx_exported *result)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    Onnx__StringStringEntryProto *normalization = NULL;
    if (!host_is_little_endian())
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "ONNX files are written on little-endian machines alone");
    model.has_ir_version = true;
    model.ir_version = ir_version(e->opset);
    model.producer_name = (char *)"sdlf";
    model.producer_version = (char *)SDLF_VERSION;
    model.graph = &e->graph;
    opset.domain = (char *)"";
    opset.has_version = true;
    opset.version = e->opset;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    sdlf_status status = add_normalization(e, &model, &normalization);
    if (status != SDLF_OK) return status;
    /* a message holds 2 GB at most; what is larger has its weights outside */
    atomic_file file, *outside = NULL;
    if (external || protobuf_c_message_get_packed_size(&model.base) > MESSAGE_LIMIT) {
        outside = &file;
        status = write_outside(e, path, outside, &result->external_bytes);
        if (status != SDLF_OK) return status;
    }
    size_t size = protobuf_c_message_get_packed_size(&model.base);
    if (size > MESSAGE_LIMIT) {
        if (outside != NULL) atomic_file_abandon(outside);
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "'%s' would have %zu bytes: ONNX files have 2 GB at most", path, size);
    }
    result->bytes = (int64_t)size;
    return write_message(&model, path, outside);
}
