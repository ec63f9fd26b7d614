/* SPDX-License-Identifier: MIT */
/* Makes protobuf-c unpack into an arena, so that messages need not be freed one by one. */
#ifndef SDLF_FORMATS_ONNX_ALLOCATOR_H
#define SDLF_FORMATS_ONNX_ALLOCATOR_H

#include <protobuf-c/protobuf-c.h>

#include "framework/formats/onnx/arena.h"
#include "framework/formats/onnx/wire.h"

/* Unpacks the message of that type from `span`; NULL on failure, with an error message that says what the bytes are,
 * and where. Strings that contain a byte 0 are rejected. */
void *onnx_unpack(const ProtobufCMessageDescriptor *type, const wire_reader *around, wire_span span, onnx_arena *arena);

#endif
