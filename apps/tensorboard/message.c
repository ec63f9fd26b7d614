/* SPDX-License-Identifier: MIT */
/* See message.h; the encoding is that of protobuf.dev/programming-guides/encoding. */
#include "apps/tensorboard/message.h"

#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

enum { VARINT = 0, FIXED_64 = 1, LENGTH = 2, FIXED_32 = 5 };

static void append(message *m, const void *bytes, size_t length)
{
    if (length == 0) return;
    if (m->length + length > m->capacity) {
        m->capacity = 2 * (m->length + length);
        m->bytes = memory_resize(m->bytes, m->capacity);
    }
    memcpy(m->bytes + m->length, bytes, length);
    m->length += length;
}

static void append_varint(message *m, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (unsigned char)(value | 0x80);
    bytes[count++] = (unsigned char)value;
    append(m, bytes, count);
}

static void append_little_endian(message *m, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) append(m, &(unsigned char){(unsigned char)(value >> (8 * i))}, 1);
}

static void append_double(message *m, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_little_endian(m, bits, 8);
}

static void append_tag(message *m, int field, int form)
{
    append_varint(m, (uint64_t)field << 3 | (uint64_t)form);
}

void message_integer(message *m, int field, int64_t value)
{
    append_tag(m, field, VARINT);
    append_varint(m, (uint64_t)value);
}

void message_float(message *m, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_tag(m, field, FIXED_32);
    append_little_endian(m, bits, 4);
}

void message_double(message *m, int field, double value)
{
    append_tag(m, field, FIXED_64);
    append_double(m, value);
}

void message_bytes(message *m, int field, const void *bytes, size_t length)
{
    append_tag(m, field, LENGTH);
    append_varint(m, length);
    append(m, bytes, length);
}

void message_text(message *m, int field, const char *text)
{
    message_bytes(m, field, text, strlen(text));
}

void message_doubles(message *m, int field, const double *values, size_t count)
{
    append_tag(m, field, LENGTH);
    append_varint(m, 8 * count);
    for (size_t i = 0; i < count; i++) append_double(m, values[i]);
}

void message_put(message *m, int field, message *inner)
{
    message_bytes(m, field, inner->bytes, inner->length);
    message_release(inner);
}

void message_release(message *m)
{
    free(m->bytes);
    *m = (message){.bytes = NULL};
}
