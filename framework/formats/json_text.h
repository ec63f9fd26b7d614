/* SPDX-License-Identifier: MIT */
/* JSON to and from text, as jansson values. The parser is our own: when memory runs out, jansson's silently drops
 * characters of strings, and may abort by an assertion. Its values and its printer report failures. */
#ifndef SDLF_FORMATS_JSON_TEXT_H
#define SDLF_FORMATS_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include <sdlf/status.h>

/* Checks that this text may be parsed. The memory that it needs is estimated from its characters, in one pass, and
 * compared with a budget for that many bytes: an empty object of two characters takes some 250 bytes. Errors:
 * SDLF_ERROR_MEMORY, SDLF_ERROR_ARGUMENT. */
sdlf_status json_text_check(const char *text, size_t length);

/* The error in a text and its position: the line and the column (in bytes), from 1, and the byte, from 0. */
typedef struct json_text_error {
    int line, column;
    size_t position;
    char text[120];
} json_text_error;

/* Parses `length` bytes: one value of RFC 8259 in UTF-8. Also rejected are duplicate keys, U+0000 in a string, integers
 * of more than 64 bits, numbers beyond a double or of more than 500 characters, and depths of more than 500. Errors,
 * with no message stored: SDLF_ERROR_FORMAT with `error` filled in, SDLF_ERROR_MEMORY. */
sdlf_status json_text_parse(json_t **json, const char *text, size_t length, json_text_error *error);

/* The NUL-terminated text of a value; free() it. `length` may be NULL. NULL when out of memory, or if a string in it is
 * not UTF-8. */
char *json_text_print(const json_t *json, size_t flags, size_t *length);

#endif
