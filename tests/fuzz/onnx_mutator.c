/* SPDX-License-Identifier: MIT */
/* A structure-aware mutator for ONNX files: a model is unpacked, changed in one to four fields, and packed again, so
 * that it passes the parser and tests the interpretation. An operator is replaced; attributes, dimensions and types
 * become extreme; inputs, outputs, nodes and weights are removed, duplicated or swapped; names are reused, making
 * cycles; elements are removed or added. One in four files, and any that is not a model, has its bytes changed instead.
 * Crossover inserts a node, weight, attribute, ... of one model into another. The seed determines the mutations.
 *
 * All memory is from an arena, so that a part of a message can be used anywhere, even twice. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/onnx/arena.h"
#include "framework/formats/onnx/import/import.h"
#include "tests/fuzz/onnx_fields.h"

/* libFuzzer's, or replay.c's, which changes nothing */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t size_a, const uint8_t *b, size_t size_b, uint8_t *to,
                                 size_t most, unsigned seed);

typedef struct mutator {
    onnx_arena arena;
    uint64_t state; /* of the random numbers */
} mutator;

static uint64_t draw(mutator *m, uint64_t below) /* SplitMix64 */
{
    uint64_t z = m->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

static void *take(void *arena, size_t size)
{
    void *memory = onnx_arena_take(arena, size > 0 ? size : 1);
    if (memory == NULL) abort();
    return memory;
}

static void leave(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

static void *unpack(mutator *m, const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = &m->arena};
    return protobuf_c_message_unpack(type, &allocator, size, data);
}

/* ---- one of them by chance ---- */

typedef struct choice {
    mutator *m;
    const ProtobufCMessageDescriptor *type; /* of lists of such messages; NULL: of all fields */
    uint64_t weight;                        /* of those seen so far */
    onnx_field chosen;
    const char *text;
} choice;

static bool chooses(choice *c, uint64_t weight)
{
    c->weight += weight;
    return draw(c->m, c->weight) < weight;
}

static void choose_field(void *context, const onnx_field *f)
{
    choice *c = context;
    uint64_t weight = f->field == NULL || field_is_there(f) ? 8 : 1;
    if (f->field != NULL && strcmp(f->field->name, "op_type") == 0) weight = 16;
    if (chooses(c, weight)) c->chosen = *f;
}

/* A list of messages that is not empty. */
static void choose_list(void *context, const onnx_field *f)
{
    choice *c = context;
    bool messages =
        f->field != NULL && field_is_list(f) && f->field->type == PROTOBUF_C_TYPE_MESSAGE && field_is_there(f);
    if (messages && (c->type == NULL || f->field->descriptor == c->type) && chooses(c, 1)) c->chosen = *f;
}

static void choose_text(void *context, const onnx_field *f)
{
    choice *c = context;
    if (f->field == NULL || f->field->type != PROTOBUF_C_TYPE_STRING || !field_is_there(f)) return;
    char **text = field_is_list(f) ? *(char ***)field_value(f) : field_value(f);
    for (size_t i = 0; i < (field_is_list(f) ? *field_count(f) : 1); i++)
        if (text[i] != NULL && chooses(c, 1)) c->text = text[i];
}

static const char *draw_text(mutator *m, ProtobufCMessage *model)
{
    choice c = {.m = m, .text = ""};
    fields_walk(model, choose_text, &c);
    return c.text;
}

/* ---- values ---- */

static int64_t draw_number(mutator *m, int64_t now)
{
    static const int64_t extreme[] = {0,         -1,         1,       INT32_MAX,        (int64_t)1 << 31,
                                      INT32_MIN, UINT16_MAX, 1 << 24, (int64_t)1 << 62, INT64_MAX,
                                      INT64_MIN, UINT32_MAX, 1 << 16, (int64_t)1 << 40};
    switch (draw(m, 4)) {
    case 0: return extreme[draw(m, sizeof extreme / sizeof extreme[0])];
    case 1: return (int64_t)((uint64_t)now + draw(m, 5) - 2);
    case 2: return -(int64_t)draw(m, 9);
    default: return (int64_t)draw(m, 32);
    }
}

static float draw_float(mutator *m)
{
    static const float extreme[] = {0, -1, 0.5f, 1e-45f, -1e38f, 1e38f, INFINITY, -INFINITY, NAN, 2147483648.0f};
    return extreme[draw(m, sizeof extreme / sizeof extreme[0])];
}

static const onnx_operator *draw_operator(mutator *m)
{
    int count = 0;
    while (onnx_operator_at(count) != NULL) count++;
    return onnx_operator_at((int)draw(m, (uint64_t)count));
}

static char *copy(mutator *m, const char *text, size_t length)
{
    char *to = take(&m->arena, length + 1);
    memcpy(to, text, length);
    to[length] = '\0';
    return to;
}

/* A random word of " name name "; "" if there is none. */
static char *draw_word(mutator *m, const char *words)
{
    const char *found = "";
    size_t length = 0, seen = 0;
    for (const char *at = words != NULL ? words : ""; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " ")) {
        if (draw(m, ++seen) > 0) continue;
        found = at;
        length = strcspn(at, " ");
    }
    return copy(m, found, length);
}

static char *change_text(mutator *m, ProtobufCMessage *model, const onnx_field *f)
{
    static const char learning[] = "ai.onnx.ml.";
    if (strcmp(f->field->name, "op_type") == 0 && draw(m, 8) > 0) {
        const char *type = draw_operator(m)->type;
        bool learns = strncmp(type, learning, sizeof learning - 1) == 0;
        ((Onnx__NodeProto *)f->message)->domain = learns ? copy(m, learning, sizeof learning - 2) : NULL;
        return copy(m, type, strlen(type));
    }
    bool attribute = f->message->descriptor == &onnx__attribute_proto__descriptor;
    if (attribute && draw(m, 8) > 0) return draw_word(m, draw_operator(m)->attributes);
    if (draw(m, 8) == 0) return copy(m, "", 0);
    const char *text = draw_text(m, model);
    char *longer = take(&m->arena, strlen(text) + 8);
    snprintf(longer, strlen(text) + 8, draw(m, 8) > 0 ? "%s" : "%s_%u", text, (unsigned)draw(m, 4));
    return longer;
}

/* Change elements, dimensions of a shape, or a name: truncate, extend with existing content, or change one element. */
static void change_plain(mutator *m, ProtobufCBinaryData *bytes)
{
    enum { MORE = 64 };
    uint8_t *data = take(&m->arena, bytes->len + MORE);
    if (bytes->len > 0) memcpy(data, bytes->data, bytes->len);
    for (size_t i = 0; i < MORE; i++) data[bytes->len + i] = i < bytes->len ? data[i] : (uint8_t)draw(m, 256);
    bytes->data = data;
    uint64_t kind = draw(m, 6);
    size_t size = kind == 0 || bytes->len < 4 ? 1 : kind < 3 || bytes->len < 8 ? 4 : 8;
    if (kind == 5) {
        bytes->len = draw(m, 2) == 0 ? draw(m, bytes->len + 1) : bytes->len + draw(m, MORE);
    } else if (bytes->len >= size) {
        int64_t number = draw_number(m, 1);
        float real = draw_float(m);
        uint8_t *at = data + size * draw(m, bytes->len / size);
        memcpy(at, kind == 2 ? (void *)&real : (void *)&number, size);
    }
}

static void change_model(mutator *m, ProtobufCMessage *model);

/* A tensor or a graph that is packed in a field. */
static void change_packed(mutator *m, const ProtobufCMessageDescriptor *type, ProtobufCBinaryData *bytes)
{
    ProtobufCMessage *message = unpack(m, type, bytes->data, bytes->len);
    if (message == NULL) {
        change_plain(m, bytes);
        return;
    }
    change_model(m, message);
    bytes->len = protobuf_c_message_get_packed_size(message);
    bytes->data = take(&m->arena, bytes->len);
    protobuf_c_message_pack(message, bytes->data);
}

static void change_bytes(mutator *m, const onnx_field *f, ProtobufCBinaryData *bytes)
{
    bool attribute = f->message->descriptor == &onnx__attribute_proto__descriptor;
    if (attribute && strcmp(f->field->name, "t") == 0)
        change_packed(m, &onnx__tensor_proto__descriptor, bytes);
    else if (attribute && strcmp(f->field->name, "g") == 0)
        change_packed(m, &onnx__graph_proto__descriptor, bytes);
    else
        change_plain(m, bytes);
}

/* The field's bytes begin with their length. */
static void change_function(mutator *m, ProtobufCMessageUnknownField *field)
{
    size_t length = 1, size = 0;
    while (length < field->len && field->data[length - 1] >= 0x80) length++;
    ProtobufCBinaryData bytes = {field->len - length, field->data + length};
    change_packed(m, &onnx__function_proto__descriptor, &bytes);
    field->data = take(&m->arena, bytes.len + 10);
    for (size_t left = bytes.len; size == 0 || left > 0; left >>= 7)
        field->data[size++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    memcpy(field->data + size, bytes.data, bytes.len);
    field->len = size + bytes.len;
}

static void change_value(mutator *m, ProtobufCMessage *model, const onnx_field *f, void *at)
{
    switch (f->field->type) {
    case PROTOBUF_C_TYPE_INT32: *(int32_t *)at = (int32_t)draw_number(m, *(int32_t *)at); break;
    case PROTOBUF_C_TYPE_INT64: *(int64_t *)at = draw_number(m, *(int64_t *)at); break;
    case PROTOBUF_C_TYPE_FLOAT: *(float *)at = draw_float(m); break;
    case PROTOBUF_C_TYPE_STRING: *(char **)at = change_text(m, model, f); break;
    case PROTOBUF_C_TYPE_BYTES: change_bytes(m, f, at); break;
    case PROTOBUF_C_TYPE_MESSAGE: *(void **)at = unpack(m, f->field->descriptor, NULL, 0); break; /* an empty one */
    default: break;
    }
}

/* Insert space for an element before element `index`. */
static void *insert(mutator *m, const onnx_field *f, size_t index)
{
    size_t size = field_size(f), count = (*field_count(f))++;
    char *before = *(char **)field_value(f), *list = take(&m->arena, (count + 1) * size);
    if (index > 0) memcpy(list, before, index * size);
    if (index < count) memcpy(list + (index + 1) * size, before + index * size, (count - index) * size);
    *(char **)field_value(f) = list;
    return list + index * size; /* which is zeroed */
}

static void change_list(mutator *m, ProtobufCMessage *model, const onnx_field *f)
{
    size_t size = field_size(f), count = *field_count(f), kind = draw(m, 8);
    char *list = *(char **)field_value(f), kept[sizeof(ProtobufCBinaryData)];
    char *a = count > 0 ? list + draw(m, count) * size : NULL, *b = count > 0 ? list + draw(m, count) * size : NULL;
    if (count == 0 || kind == 0) {
        change_value(m, model, f, insert(m, f, draw(m, count + 1)));
    } else if (kind == 1) { /* delete */
        memmove(a, a + size, (size_t)(list + count * size - a) - size);
        --*field_count(f);
    } else if (kind == 2) { /* duplicate */
        memcpy(kept, a, size);
        memcpy(insert(m, f, draw(m, count + 1)), kept, size);
    } else if (kind == 3 && draw(m, 4) == 0) {
        *field_count(f) = draw(m, count);
    } else if (kind <= 4 || f->field->type == PROTOBUF_C_TYPE_MESSAGE) { /* swap */
        memcpy(kept, a, size);
        memmove(a, b, size); /* which may be the same */
        memcpy(b, kept, size);
    } else {
        change_value(m, model, f, a);
    }
}

static void change_model(mutator *m, ProtobufCMessage *model)
{
    choice c = {.m = m};
    fields_walk(model, choose_field, &c);
    onnx_field *f = &c.chosen;
    if (f->function != NULL) {
        change_function(m, f->function);
    } else if (field_is_list(f)) {
        change_list(m, model, f);
    } else if (field_is_there(f) && draw(m, 8) == 0) {
        field_set_there(f, false);
    } else if (f->field->type != PROTOBUF_C_TYPE_MESSAGE || !field_is_there(f)) {
        change_value(m, model, f, field_value(f));
        field_set_there(f, true);
    }
}

/* ---- files ---- */

static size_t pack(ProtobufCMessage *model, uint8_t *to, size_t most)
{
    size_t size = protobuf_c_message_get_packed_size(model);
    return size <= most ? protobuf_c_message_pack(model, to) : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    mutator m = {.state = seed};
    ProtobufCMessage *model = draw(&m, 4) > 0 ? unpack(&m, &onnx__model_proto__descriptor, data, size) : NULL;
    size_t changed = 0;
    if (model != NULL) {
        for (uint64_t i = 0, changes = 1 + draw(&m, 4); i < changes; i++) change_model(&m, model);
        changed = pack(model, data, most);
    }
    onnx_arena_release(&m.arena);
    return changed > 0 ? changed : LLVMFuzzerMutate(data, size, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t size_a, const uint8_t *b, size_t size_b, uint8_t *to,
                                 size_t most, unsigned seed)
{
    mutator m = {.state = seed};
    ProtobufCMessage *into = unpack(&m, &onnx__model_proto__descriptor, a, size_a);
    ProtobufCMessage *from = unpack(&m, &onnx__model_proto__descriptor, b, size_b);
    choice target = {.m = &m}, source = {.m = &m};
    size_t crossed = 0;
    if (into != NULL) fields_walk(into, choose_list, &target);
    if (target.weight > 0) source.type = target.chosen.field->descriptor;
    if (target.weight > 0 && from != NULL) fields_walk(from, choose_list, &source);
    if (source.weight > 0) {
        void **list = *(void ***)field_value(&source.chosen), *taken = list[draw(&m, *field_count(&source.chosen))];
        size_t count = *field_count(&target.chosen), index = draw(&m, count + 1);
        void **place = index < count && draw(&m, 2) == 0 ? *(void ***)field_value(&target.chosen) + index
                                                         : insert(&m, &target.chosen, index);
        *place = taken;
        crossed = pack(into, to, most);
    }
    onnx_arena_release(&m.arena);
    return crossed;
}
