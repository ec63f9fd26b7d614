/* SPDX-License-Identifier: MIT */
/* The pieces that JSON is made of, read one after the other: what json_text.c's parser stands on. */
#ifndef SDLF_FORMATS_JSON_READER_H
#define SDLF_FORMATS_JSON_READER_H

#include <stdbool.h>

#include "framework/formats/json_text.h"

typedef struct json_reader {
    const char *start, *at, *end;
    int depth;          /* of the lists and objects around `at` */
    sdlf_status status; /* nothing more is read after a failure */
    json_text_error *error;
} json_reader;

/* The text is wrong at r->at: note why and where. Always NULL. */
void *json_refuse(json_reader *r, const char *format, ...) SDLF_PRINTF(2, 3);
void *json_expected(json_reader *r, const char *what); /* and says what was found */

/* A value that jansson was asked for: NULL means that it had no memory, and is noted. */
json_t *json_made(json_reader *r, json_t *value);

void json_skip_space(json_reader *r);
bool json_take(json_reader *r, char character); /* past space and this character, if it is next */

/* The string that must begin here, decoded; free() it. `what` it would be is for the message. NULL after a failure. */
char *json_read_string(json_reader *r, const char *what);
json_t *json_read_number(json_reader *r); /* that begins here with a digit or a minus */

#endif
