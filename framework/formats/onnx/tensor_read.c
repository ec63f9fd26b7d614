/* SPDX-License-Identifier: MIT */
/* Walks a TensorProto twice: once to find its fields, once to decode elements that are not stored raw. */
#include <inttypes.h>
#include <string.h>

#include "framework/formats/onnx/allocator.h"
#include "framework/formats/onnx/onnx.pb-c.h"
#include "framework/formats/onnx/tensor.h"

enum field_number {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14,
};

typedef struct contents {
    onnx_tensor *tensor;
    onnx_arena *arena;
    wire_reader reader; /* at the start of the TensorProto */
    bool has_raw, external, segmented;
    wire_span raw;
    uint32_t typed;    /* the field that holds typed elements; 0: none */
    uint64_t elements; /* in it */
    int chunks;        /* occurrences of that field */
    wire_span chunk;   /* the last one */
    const char *location;
    uint64_t offset, length;
    bool has_length;
} contents;

static sdlf_status fail(const contents *c, const char *text)
{
    return wire_fail(&c->reader, c->reader.at, "tensor '%s': %s", c->tensor->name, text);
}

static sdlf_status out_of_memory(const contents *c)
{
    return sdlf_fail_context(read_budget_fail(c->arena->budget), "%s", c->reader.path);
}

static sdlf_status add_dimension(contents *c, uint64_t value)
{
    sdlf_shape *shape = &c->tensor->shape;
    if (shape->rank == SDLF_MAX_RANK)
        return wire_fail(&c->reader, c->reader.at, "more than %d dimensions", SDLF_MAX_RANK);
    if (value > INT64_MAX)
        return wire_fail(&c->reader, c->reader.at, "dimension %d is %" PRId64 ", a negative number", shape->rank,
                         (int64_t)value);
    shape->dim[shape->rank++] = (int64_t)value;
    return SDLF_OK;
}

/* The field that holds typed elements of that type. */
static uint32_t field_of(int type)
{
    switch (type) {
    case ONNX_FLOAT: return FLOAT_DATA;
    case ONNX_DOUBLE: return DOUBLE_DATA;
    case ONNX_INT64: return INT64_DATA;
    case ONNX_UINT32:
    case ONNX_UINT64: return UINT64_DATA;
    default: return INT32_DATA;
    }
}

static bool is_typed_data(uint32_t number)
{
    return number == FLOAT_DATA || number == INT32_DATA || number == INT64_DATA || number == DOUBLE_DATA ||
           number == UINT64_DATA;
}

/* Counts the elements in one field: a packed array of numbers, or a single one. */
static sdlf_status count_elements(contents *c, const wire_field *field)
{
    if (c->typed != 0 && c->typed != field->number) return fail(c, "its elements are in two fields");
    c->typed = field->number;
    c->chunks++;
    c->chunk = field->span;
    if (field->type != WIRE_BYTES) {
        c->chunk = (wire_span){NULL, 0};
        c->elements++;
        return SDLF_OK;
    }
    uint64_t size = field->number == FLOAT_DATA ? 4 : field->number == DOUBLE_DATA ? 8 : 0;
    if (size > 0) {
        if (field->span.size % size != 0) return fail(c, "its packed elements end in the middle of one");
        c->elements += field->span.size / size;
        return SDLF_OK;
    }
    sdlf_status status = wire_need(&c->reader, field->span);
    if (status != SDLF_OK) return status;
    for (uint64_t i = 0; i < field->span.size; i++) c->elements += field->span.bytes[i] < 0x80;
    return SDLF_OK;
}

static sdlf_status read_number(contents *c, const char *text, uint64_t *value)
{
    *value = 0;
    if (*text == '\0') return fail(c, "its external data: a number is empty");
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || *value > (UINT64_MAX - 9) / 10)
            return fail(c, "its external data: offset or length is not a number");
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    return SDLF_OK;
}

static sdlf_status read_external(contents *c, wire_span span)
{
    const Onnx__StringStringEntryProto *entry =
        onnx_unpack(&onnx__string_string_entry_proto__descriptor, &c->reader, span, c->arena);
    if (entry == NULL && c->arena->budget != NULL && c->arena->budget->refused) return SDLF_ERROR_MEMORY;
    if (entry == NULL) return c->reader.map != NULL && c->reader.map->failed ? SDLF_ERROR_IO : SDLF_ERROR_FORMAT;
    if (entry->key == NULL || entry->value == NULL) return SDLF_OK;
    if (strcmp(entry->key, "location") == 0) c->location = entry->value;
    if (strcmp(entry->key, "offset") == 0) return read_number(c, entry->value, &c->offset);
    if (strcmp(entry->key, "length") != 0) return SDLF_OK;
    c->has_length = true;
    return read_number(c, entry->value, &c->length);
}

static sdlf_status read_dimensions(contents *c, const wire_field *field)
{
    if (field->type == WIRE_VARINT) return add_dimension(c, field->value);
    if (field->type != WIRE_BYTES) return fail(c, "its dimensions are not integers");
    wire_reader packed = wire_inside(&c->reader, field->span, "TensorProto.dims");
    sdlf_status status = SDLF_OK;
    while (packed.at < packed.end && status == SDLF_OK) {
        uint64_t value;
        status = wire_varint(&packed, &value);
        if (status == SDLF_OK) status = add_dimension(c, value);
    }
    return status;
}

static sdlf_status read_field(contents *c, const wire_field *field)
{
    bool is_bytes = field->type == WIRE_BYTES;
    if (field->number == DIMS) return read_dimensions(c, field);
    if (is_typed_data(field->number)) return count_elements(c, field);
    if (field->number == DATA_TYPE && field->type == WIRE_VARINT)
        c->tensor->type = field->value < ONNX_TYPE_COUNT ? (onnx_type)field->value : ONNX_TYPE_COUNT;
    if (field->number == DATA_LOCATION && field->type == WIRE_VARINT) c->external = field->value == 1;
    if (field->number == SEGMENT) c->segmented = true;
    if (field->number == RAW_DATA && is_bytes) {
        c->has_raw = true;
        c->raw = field->span;
    }
    if (field->number == EXTERNAL_DATA && is_bytes) return read_external(c, field->span);
    return SDLF_OK;
}

/* First walk. The name is read before everything else, for the error messages. */
static sdlf_status read_fields(contents *c, bool name_alone)
{
    wire_reader reader = c->reader;
    for (;;) {
        wire_field field;
        sdlf_status status = wire_next(&reader, &field);
        if (status != SDLF_OK) return status;
        if (field.number == 0) return SDLF_OK;
        if (!name_alone) {
            status = read_field(c, &field);
            if (status != SDLF_OK) return status;
        } else if (field.number == NAME && field.type == WIRE_BYTES) {
            status = wire_need_text(&reader, field.span);
            if (status != SDLF_OK) return status;
            c->tensor->name = onnx_arena_text(c->arena, (const char *)field.span.bytes, (size_t)field.span.size);
            if (c->tensor->name == NULL) return out_of_memory(c);
        }
    }
}

static void store(const contents *c, uint8_t *data, int64_t index, uint64_t bits)
{
    size_t size = onnx_type_size(c->tensor->type);
    for (size_t i = 0; i < size; i++) data[(size_t)index * size + i] = (uint8_t)(bits >> (8 * i));
}

/* Second walk: decodes typed elements, each in the size of its type. */
static sdlf_status decode(contents *c, uint8_t *data)
{
    wire_reader reader = c->reader;
    int64_t index = 0;
    for (;;) {
        wire_field field;
        sdlf_status status = wire_next(&reader, &field);
        if (status != SDLF_OK || field.number == 0) return status;
        if (field.number != c->typed) continue;
        if (field.type != WIRE_BYTES) {
            store(c, data, index++, field.value);
            continue;
        }
        size_t fixed = field.number == FLOAT_DATA ? 4 : field.number == DOUBLE_DATA ? 8 : 0;
        if (fixed > 0) {
            status = wire_need(&reader, field.span);
            if (status != SDLF_OK) return status;
            memcpy(data + (size_t)index * fixed, field.span.bytes, (size_t)field.span.size);
            index += (int64_t)(field.span.size / fixed);
            continue;
        }
        wire_reader packed = wire_inside(&reader, field.span, "TensorProto, packed elements");
        while (packed.at < packed.end) {
            uint64_t value;
            status = wire_varint(&packed, &value);
            if (status != SDLF_OK) return status;
            store(c, data, index++, value);
        }
    }
}

/* Bytes in a file, or typed numbers: for some types each holds several elements. */
static int64_t packed_count(const onnx_tensor *tensor)
{
    int packed = onnx_type_packed(tensor->type);
    return tensor->count / packed + (tensor->count % packed != 0);
}

/* Unpacks sub-byte elements, the lowest bits first, to one byte each. */
static sdlf_status unpack(contents *c)
{
    onnx_tensor *tensor = c->tensor;
    int packed = onnx_type_packed(tensor->type), bits = 8 / packed;
    uint8_t *data = onnx_arena_array(c->arena, (size_t)tensor->count, 1);
    const uint8_t *from = tensor->data;
    if (data == NULL) return out_of_memory(c);
    if (tensor->map != NULL) (void)onnx_map_need(tensor->map, from, (uint64_t)packed_count(tensor));
    for (int64_t i = 0; i < tensor->count; i++) {
        int element = from[i / packed] >> (i % packed * bits) & ((1 << bits) - 1);
        data[i] = (uint8_t)onnx_type_wrap(tensor->type, element);
    }
    tensor->data = data;
    tensor->map = NULL;
    return SDLF_OK;
}

static sdlf_status find_typed(contents *c)
{
    onnx_tensor *tensor = c->tensor;
    if (c->elements != (uint64_t)packed_count(tensor))
        return wire_fail(&c->reader, c->reader.at, "tensor '%s': its shape %s has %" PRId64 " numbers, found %" PRIu64,
                         tensor->name, sdlf_shape_print(tensor->shape).text, packed_count(tensor), c->elements);
    if (c->elements > 0 && c->typed != field_of(tensor->type))
        return wire_fail(&c->reader, c->reader.at, "tensor '%s': elements of type %s in field %u", tensor->name,
                         onnx_type_name(tensor->type), c->typed);
    if (c->chunks == 1 && c->chunk.bytes != NULL && (c->typed == FLOAT_DATA || c->typed == DOUBLE_DATA)) {
        tensor->data = c->chunk.bytes;
        tensor->map = c->reader.map;
        return SDLF_OK;
    }
    uint8_t *data = onnx_arena_array(c->arena, (size_t)packed_count(tensor), onnx_type_size(tensor->type));
    if (data == NULL) return out_of_memory(c);
    tensor->data = data;
    return decode(c, data);
}

static sdlf_status find_elements(contents *c, onnx_folder *folder)
{
    onnx_tensor *tensor = c->tensor;
    uint64_t size = (uint64_t)packed_count(tensor) * onnx_type_size(tensor->type);
    if (c->external) {
        if (c->location == NULL) return fail(c, "external data without a location");
        if (c->has_length && c->length != size)
            return wire_fail(&c->reader, c->reader.at,
                             "tensor '%s': its shape %s takes %" PRIu64 " bytes, its external data have %" PRIu64,
                             tensor->name, sdlf_shape_print(tensor->shape).text, size, c->length);
        return onnx_external_find(folder, &c->reader, c->location, c->offset, size, tensor);
    }
    if (!c->has_raw) return find_typed(c);
    if (c->raw.size != size)
        return wire_fail(&c->reader, c->reader.at,
                         "tensor '%s': its shape %s of %s takes %" PRIu64 " bytes, found %" PRIu64, tensor->name,
                         sdlf_shape_print(tensor->shape).text, onnx_type_name(tensor->type), size, c->raw.size);
    tensor->data = c->raw.bytes;
    tensor->map = c->reader.map;
    return SDLF_OK;
}

sdlf_status onnx_tensor_read(onnx_tensor *tensor, wire_reader reader, onnx_folder *folder, onnx_arena *arena)
{
    *tensor = (onnx_tensor){.name = ""};
    contents c = {.tensor = tensor, .arena = arena, .reader = reader};
    sdlf_status status = read_fields(&c, true);
    if (status == SDLF_OK) status = read_fields(&c, false);
    if (status != SDLF_OK) return status;
    if (onnx_type_size(tensor->type) == 0)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "%s: tensor '%s' has elements of %s, which are not supported",
                         reader.path, tensor->name, onnx_type_name(tensor->type));
    if (c.segmented) return fail(&c, "it comes in segments, which is not supported");
    tensor->count = sdlf_shape_count(tensor->shape);
    if (tensor->count < 0 || tensor->count > INT64_MAX / 64)
        return wire_fail(&reader, reader.at, "tensor '%s': its shape %s has more elements than can be counted",
                         tensor->name, sdlf_shape_print(tensor->shape).text);
    status = find_elements(&c, folder);
    return status == SDLF_OK && onnx_type_packed(tensor->type) > 1 ? unpack(&c) : status;
}
