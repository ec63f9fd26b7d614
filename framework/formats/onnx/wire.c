/* SPDX-License-Identifier: MIT */
/* Reading the wire format. Every length is checked against the remaining bytes before use. See wire.h. */
#include "framework/formats/onnx/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sdlf_status wire_fail(const wire_reader *reader, const uint8_t *at, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %td: %s: %s", reader->path, at - reader->file, reader->message, text);
}

wire_reader wire_inside(const wire_reader *outer, wire_span span, const char *message)
{
    return (wire_reader){.path = outer->path,
                         .file = outer->file,
                         .at = span.bytes,
                         .end = span.bytes + span.size,
                         .message = message,
                         .map = outer->map};
}

sdlf_status wire_need(const wire_reader *reader, wire_span span)
{
    return reader->map != NULL ? onnx_map_need(reader->map, span.bytes, span.size) : SDLF_OK;
}

sdlf_status wire_need_text(const wire_reader *reader, wire_span span)
{
    sdlf_status status = wire_need(reader, span);
    const uint8_t *zero = status == SDLF_OK && span.size > 0 ? memchr(span.bytes, 0, (size_t)span.size) : NULL;
    if (zero == NULL) return status;
    return wire_fail(reader, zero, "a byte 0 in a text");
}

/* Makes the next `most` bytes available, or as many as there are. */
static sdlf_status need_next(const wire_reader *reader, uint64_t most)
{
    uint64_t left = (uint64_t)(reader->end - reader->at);
    return wire_need(reader, (wire_span){reader->at, left < most ? left : most});
}

sdlf_status wire_varint(wire_reader *reader, uint64_t *value)
{
    const uint8_t *start = reader->at;
    *value = 0;
    sdlf_status status = need_next(reader, 10);
    if (status != SDLF_OK) return status;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (reader->at == reader->end) return wire_fail(reader, start, "the file ends inside a number");
        uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return SDLF_OK;
    }
    return wire_fail(reader, start, "a number of more than 10 bytes");
}

static sdlf_status take_fixed(wire_reader *reader, int size, uint64_t *value)
{
    if (reader->end - reader->at < size)
        return wire_fail(reader, reader->at, "%d bytes of a number expected, %td left", size, reader->end - reader->at);
    *value = 0;
    sdlf_status status = need_next(reader, (uint64_t)size);
    if (status != SDLF_OK) return status;
    for (int i = size - 1; i >= 0; i--) *value = *value << 8 | reader->at[i];
    reader->at += size;
    return SDLF_OK;
}

sdlf_status wire_next(wire_reader *reader, wire_field *field)
{
    *field = (wire_field){.number = 0};
    if (reader->at == reader->end) return SDLF_OK;
    const uint8_t *start = reader->at;
    uint64_t key, length;
    sdlf_status status = wire_varint(reader, &key);
    if (status != SDLF_OK) return status;
    if (key >> 3 == 0 || key >> 3 >= 1u << 29)
        return wire_fail(reader, start, "field number %" PRIu64 " (is this an ONNX file?)", key >> 3);
    field->number = (uint32_t)(key >> 3);
    field->type = (wire_type)(key & 7);
    switch (field->type) {
    case WIRE_VARINT: return wire_varint(reader, &field->value);
    case WIRE_FIXED64: return take_fixed(reader, 8, &field->value);
    case WIRE_FIXED32: return take_fixed(reader, 4, &field->value);
    case WIRE_BYTES: break;
    default:
        return wire_fail(reader, start, "field %u has wire type %d (is this an ONNX file?)", field->number,
                         (int)(key & 7));
    }
    status = wire_varint(reader, &length);
    if (status != SDLF_OK) return status;
    uint64_t left = (uint64_t)(reader->end - reader->at);
    if (length > left)
        return wire_fail(reader, start, "field %u is said to have %" PRIu64 " bytes, and %" PRIu64 " are left",
                         field->number, length, left);
    field->span = (wire_span){reader->at, length};
    reader->at += length;
    return SDLF_OK;
}
