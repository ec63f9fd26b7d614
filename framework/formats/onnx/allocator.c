/* SPDX-License-Identifier: MIT */
/* A protobuf-c allocator over an arena. See allocator.h. */
#include "framework/formats/onnx/allocator.h"

static void *take(void *arena, size_t size)
{
    return onnx_arena_take(arena, size);
}

static void leave(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

/* Checks strings, which protobuf-c unpacks without their lengths. (No message of onnx.proto contains itself.) */
static sdlf_status check_texts(const ProtobufCMessageDescriptor *type, wire_reader reader)
{
    for (;;) {
        wire_field field;
        sdlf_status status = wire_next(&reader, &field);
        if (status != SDLF_OK || field.number == 0) return status;
        if (field.type != WIRE_BYTES) continue;
        const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(type, field.number);
        if (known == NULL) continue;
        if (known->type == PROTOBUF_C_TYPE_STRING) {
            status = wire_need_text(&reader, field.span);
        } else if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
            const ProtobufCMessageDescriptor *inside = known->descriptor;
            status = check_texts(inside, wire_inside(&reader, field.span, inside->short_name));
        }
        if (status != SDLF_OK) return status;
    }
}

void *onnx_unpack(const ProtobufCMessageDescriptor *type, const wire_reader *around, wire_span span, onnx_arena *arena)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = arena};
    if (wire_need(around, span) != SDLF_OK) return NULL;
    if (check_texts(type, wire_inside(around, span, type->short_name)) != SDLF_OK) return NULL;
    void *message = protobuf_c_message_unpack(type, &allocator, (size_t)span.size, span.bytes);
    if (message != NULL) return message;
    if (arena->budget != NULL && arena->budget->refused)
        sdlf_fail_context(read_budget_fail(arena->budget), "%s: byte %td: %s of %llu bytes", around->path,
                          span.bytes - around->file, type->short_name, (unsigned long long)span.size);
    else
        wire_fail(around, span.bytes, "these %llu bytes are not a %s, or memory ran out", (unsigned long long)span.size,
                  type->short_name);
    return NULL;
}
