/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/onnx_fields.h"

enum { FUNCTIONS = 25 }; /* of a ModelProto */

void *field_value(const onnx_field *f)
{
    return (char *)f->message + f->field->offset;
}

static void *quantifier_of(const onnx_field *f)
{
    return (char *)f->message + f->field->quantifier_offset;
}

size_t *field_count(const onnx_field *f)
{
    return quantifier_of(f);
}

bool field_is_list(const onnx_field *f)
{
    return f->field->label == PROTOBUF_C_LABEL_REPEATED;
}

/* Strings and messages are present if their pointer is set; for other fields, the quantifier tells. */
static bool is_pointer(const onnx_field *f)
{
    return f->field->type == PROTOBUF_C_TYPE_STRING || f->field->type == PROTOBUF_C_TYPE_MESSAGE;
}

bool field_is_there(const onnx_field *f)
{
    if (field_is_list(f)) return *field_count(f) > 0;
    return is_pointer(f) ? *(void **)field_value(f) != NULL : *(protobuf_c_boolean *)quantifier_of(f) != 0;
}

void field_set_there(const onnx_field *f, bool there)
{
    if (is_pointer(f) && !there) *(void **)field_value(f) = NULL;
    if (!is_pointer(f)) *(protobuf_c_boolean *)quantifier_of(f) = there;
}

size_t field_size(const onnx_field *f)
{
    switch (f->field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_FLOAT: return sizeof(int32_t);
    case PROTOBUF_C_TYPE_INT64: return sizeof(int64_t);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return sizeof(void *);
    }
}

void fields_walk(ProtobufCMessage *message, field_visitor *visit, void *context)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        onnx_field f = {.message = message, .field = &message->descriptor->fields[i]};
        visit(context, &f);
        if (f.field->type != PROTOBUF_C_TYPE_MESSAGE || !field_is_there(&f)) continue;
        ProtobufCMessage **inside = field_is_list(&f) ? *(ProtobufCMessage ***)field_value(&f) : field_value(&f);
        for (size_t k = 0; k < (field_is_list(&f) ? *field_count(&f) : 1); k++) fields_walk(inside[k], visit, context);
    }
    bool model = message->descriptor == &onnx__model_proto__descriptor;
    for (unsigned i = 0; model && i < message->n_unknown_fields; i++)
        if (message->unknown_fields[i].tag == FUNCTIONS)
            visit(context, &(onnx_field){.message = message, .function = &message->unknown_fields[i]});
}
