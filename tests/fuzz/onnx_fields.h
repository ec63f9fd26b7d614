/* SPDX-License-Identifier: MIT */
/* The fields of an unpacked ONNX model, enumerated with protobuf-c's descriptors. */
#ifndef SDLF_TESTS_FUZZ_ONNX_FIELDS_H
#define SDLF_TESTS_FUZZ_ONNX_FIELDS_H

#include <stdbool.h>

#include "framework/formats/onnx/onnx.pb-c.h"

/* A field of a message; or, if `field` is NULL, a function of the model, which the schema leaves packed. */
typedef struct onnx_field {
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field;
    ProtobufCMessageUnknownField *function;
} onnx_field;

bool field_is_list(const onnx_field *f);
/* True for a list with elements or a field that is set. */
bool field_is_there(const onnx_field *f);
void field_set_there(const onnx_field *f, bool there);
/* Its value, or, for a list, the pointer to the elements. */
void *field_value(const onnx_field *f);
size_t *field_count(const onnx_field *f);
/* Bytes of an element of a list. */
size_t field_size(const onnx_field *f);

typedef void field_visitor(void *context, const onnx_field *f);

/* Visit all fields of the message and of nested messages, in order. */
void fields_walk(ProtobufCMessage *message, field_visitor *visit, void *context);

#endif
