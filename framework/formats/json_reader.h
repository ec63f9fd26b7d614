/* SPDX-License-Identifier: MIT */
/* The tokenizer of json_text.c's parser. */
#ifndef SDLF_FORMATS_JSON_READER_H
#define SDLF_FORMATS_JSON_READER_H

#include <stdbool.h>

#include "framework/formats/json_text.h"

typedef struct json_reader {
    const char *start, *at, *end;
    int depth;          /* number of enclosing lists and objects */
    sdlf_status status; /* nothing more is read after a failure */
    json_text_error *error;
} json_reader;

/* Records an error at r->at. Always returns NULL. */
void *json_refuse(json_reader *r, const char *format, ...) SDLF_PRINTF(2, 3);
void *json_expected(json_reader *r, const char *what); /* and reports what was found */

/* The result of a jansson constructor: NULL means out of memory, and is recorded. */
json_t *json_made(json_reader *r, json_t *value);

void json_skip_space(json_reader *r);
bool json_take(json_reader *r, char character); /* skips space and this character, if it is next */

/* Reads and decodes a string, which must begin here; free() it. `what` names it in messages. NULL after a failure. */
char *json_read_string(json_reader *r, const char *what);
json_t *json_read_number(json_reader *r); /* which begins here with a digit or a minus */

#endif
