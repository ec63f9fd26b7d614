/* SPDX-License-Identifier: MIT */
/* protobuf-c unpacks into an arena: nothing has to be freed message by message. */
#ifndef SDLF_FORMATS_ONNX_ALLOCATOR_H
#define SDLF_FORMATS_ONNX_ALLOCATOR_H

#include <protobuf-c/protobuf-c.h>

#include "framework/formats/onnx/arena.h"
#include "framework/formats/onnx/wire.h"

/* Unpack the message of that type from `span`; NULL on failure, with the message set: what the bytes are, and where.
 * Texts with a byte 0 are refused. */
void *onnx_unpack(const ProtobufCMessageDescriptor *type, const wire_reader *around, wire_span span, onnx_arena *arena);

#endif
