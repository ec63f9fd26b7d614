/* The bridge between protobuf-c and an arena. See allocator.h. */
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

void *onnx_unpack(const ProtobufCMessageDescriptor *type, const wire_reader *around, wire_span span, onnx_arena *arena)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = arena};
    if (wire_need(around, span) != SDLF_OK) return NULL;
    void *message = protobuf_c_message_unpack(type, &allocator, (size_t)span.size, span.bytes);
    if (message == NULL)
        wire_fail(around, span.bytes, "these %llu bytes are no %s, or memory is out", (unsigned long long)span.size,
                  type->short_name);
    return message;
}
