/* SPDX-License-Identifier: MIT */
/* JSON to and from text, as values of jansson. The parser is our own: where memory runs out, jansson's drops characters
 * of strings without a word, and may end the process by an assertion. Its values and its printer say so. */
#ifndef SDLF_FORMATS_JSON_TEXT_H
#define SDLF_FORMATS_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include <sdlf/status.h>

/* May this text be parsed? The memory that it takes is estimated from its signs, in one walk, and held against a budget
 * for that many bytes: an empty object of two signs becomes some 250 bytes. Errors: SDLF_ERROR_MEMORY,
 * SDLF_ERROR_ARGUMENT. */
sdlf_status json_text_check(const char *text, size_t length);

/* What is wrong with a text, and where: the line and the column (in bytes), from 1, and the byte, from 0. */
typedef struct json_text_error {
    int line, column;
    size_t position;
    char text[120];
} json_text_error;

/* Parse `length` bytes: one value of RFC 8259 in UTF-8. Refused beyond that: an object with the same key twice, U+0000
 * in a string, integers of more than 64 bits, numbers beyond a double or of more than 500 characters, and depths of
 * more than 500. Errors, with no message stored: SDLF_ERROR_FORMAT with `error` filled in, SDLF_ERROR_MEMORY. */
sdlf_status json_text_parse(json_t **json, const char *text, size_t length, json_text_error *error);

/* The text of a value, with a final 0; free() it. `length` may be NULL. NULL when memory is out, or when a string in it
 * is no UTF-8. */
char *json_text_print(const json_t *json, size_t flags, size_t *length);

#endif
