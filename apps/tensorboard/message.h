/* SPDX-License-Identifier: MIT */
/* Protocol buffers, writing: the four forms of fields that TensorBoard's messages have. A message grows in memory; when
 * that is out the program ends (system/memory.h). Fields of 0 are written too where they are put: readers take both.
 *
 * Not protobuf-c, which the ONNX reader uses where it is found: this is less than the descriptions of the messages
 * would be, and event files are then written by every build. */
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
