/* SPDX-License-Identifier: MIT */
/* Protocol Buffers messages built byte by byte, so that tests can create files that no library would write. */
#ifndef SDLF_TESTS_ONNX_BYTES_H
#define SDLF_TESTS_ONNX_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

typedef struct bytes {
    unsigned char data[2000];
    size_t size;
} bytes;

static inline void bytes_append(bytes *to, const void *data, size_t size)
{
    assert(to->size + size <= sizeof to->data);
    if (size > 0) memcpy(to->data + to->size, data, size);
    to->size += size;
}

static inline void bytes_varint(bytes *to, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        bytes_append(to, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

/* Field `number` as a number, as bytes, as text, as a message. */
static inline void bytes_number(bytes *to, uint32_t number, uint64_t value)
{
    bytes_varint(to, (uint64_t)number << 3);
    bytes_varint(to, value);
}

static inline void bytes_field(bytes *to, uint32_t number, const void *data, size_t size)
{
    bytes_varint(to, (uint64_t)number << 3 | 2);
    bytes_varint(to, size);
    bytes_append(to, data, size);
}

static inline void bytes_text(bytes *to, uint32_t number, const char *text)
{
    bytes_field(to, number, text, strlen(text));
}

static inline void bytes_message(bytes *to, uint32_t number, const bytes *message)
{
    bytes_field(to, number, message->data, message->size);
}

static const int64_t bytes_open = INT64_MIN; /* a dimension without a size */

/* A ValueInfoProto of that element type and shape; of float32. */
static inline void bytes_typed_info(bytes *to, uint32_t number, const char *name, int element, const int64_t *dims,
                                    int rank)
{
    bytes info = {.size = 0}, type = {.size = 0}, tensor = {.size = 0}, shape = {.size = 0};
    for (int i = 0; i < rank; i++) {
        bytes dim = {.size = 0};
        if (dims[i] != bytes_open) bytes_number(&dim, 1, (uint64_t)dims[i]);
        bytes_message(&shape, 1, &dim);
    }
    bytes_number(&tensor, 1, (uint64_t)element);
    bytes_message(&tensor, 2, &shape);
    bytes_message(&type, 1, &tensor);
    bytes_text(&info, 1, name);
    bytes_message(&info, 2, &type);
    bytes_message(to, number, &info);
}

static inline void bytes_value_info(bytes *to, uint32_t number, const char *name, const int64_t *dims, int rank)
{
    bytes_typed_info(to, number, name, 1, dims, rank);
}

#endif
