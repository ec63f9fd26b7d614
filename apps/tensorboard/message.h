/* SPDX-License-Identifier: MIT */
/* A Protocol Buffers writer for the four kinds of fields in TensorBoard's messages. A message grows in memory; when
 * memory runs out the program ends (system/memory.h). Fields of 0 are written too: readers accept both forms.
 *
 * This does not use protobuf-c, which the ONNX reader uses where available: the writer is shorter than the message
 * descriptions would be, and every build can write event files. */
#ifndef SDLF_APPS_TENSORBOARD_MESSAGE_H
#define SDLF_APPS_TENSORBOARD_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct message {
    unsigned char *bytes;
    size_t length, capacity;
} message;

void message_integer(message *m, int field, int64_t value);
void message_float(message *m, int field, float value);
void message_double(message *m, int field, double value);
void message_bytes(message *m, int field, const void *bytes, size_t length);
void message_text(message *m, int field, const char *text);
void message_doubles(message *m, int field, const double *values, size_t count); /* repeated, packed */

/* The inner message becomes a field of this one and is released. */
void message_put(message *m, int field, message *inner);
void message_release(message *m);

#endif
