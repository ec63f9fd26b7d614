/* SPDX-License-Identifier: MIT */
/* Protocol Buffers' wire format, read field by field in place: the bulk of an ONNX file is walked, not unpacked, so
 * that weights are never copied into a message first. */
#ifndef SDLF_FORMATS_ONNX_WIRE_H
#define SDLF_FORMATS_ONNX_WIRE_H

#include <stdint.h>

#include <sdlf/status.h>

#include "framework/formats/onnx/map.h"

typedef struct wire_span {
    const uint8_t *bytes;
    uint64_t size;
} wire_span;

typedef struct wire_reader {
    const char *path;    /* for messages */
    const uint8_t *file; /* byte 0, to report positions */
    const uint8_t *at, *end;
    const char *message; /* what is being read: "GraphProto" */
    onnx_map *map;       /* the file from which the memory is filled on demand; NULL: it is all in memory */
} wire_reader;

typedef enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } wire_type;

typedef struct wire_field {
    uint32_t number; /* 0: end of the message */
    wire_type type;
    uint64_t value; /* the bits of a number */
    wire_span span; /* of WIRE_BYTES */
} wire_field;

/* A reader of a message inside `outer`. */
wire_reader wire_inside(const wire_reader *outer, wire_span span, const char *message);

/* Makes the bytes of a span available; required before they are accessed. Errors: SDLF_ERROR_IO. */
sdlf_status wire_need(const wire_reader *reader, wire_span span);

/* The same for a string, which must not contain a byte 0: that would truncate it, and could make two names equal, or
 * change a path. Errors: also SDLF_ERROR_FORMAT. */
sdlf_status wire_need_text(const wire_reader *reader, wire_span span);

/* Reads the next field. The bytes of its span may not be available yet. Errors: SDLF_ERROR_FORMAT with file, byte and
 * what was expected. */
sdlf_status wire_next(wire_reader *reader, wire_field *field);

/* Reads the number at the front of a packed array and advances. Errors as above. */
sdlf_status wire_varint(wire_reader *reader, uint64_t *value);

/* SDLF_ERROR_FORMAT with "FILE: byte N: MESSAGE: ...". */
sdlf_status wire_fail(const wire_reader *reader, const uint8_t *at, const char *format, ...) SDLF_PRINTF(3, 4);

#endif
