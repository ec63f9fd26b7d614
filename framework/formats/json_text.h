/* JSON to and from text, through jansson, with memory that is told apart from bad text. */
#ifndef SDLF_FORMATS_JSON_TEXT_H
#define SDLF_FORMATS_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include <sdlf/status.h>

/* May this text be parsed? What it becomes is estimated from its signs, in one walk, and held against a budget for so many bytes: an empty
 * object of two signs becomes some 250 bytes. Errors: SDLF_ERROR_MEMORY, SDLF_ERROR_ARGUMENT. */
sdlf_status json_text_check(const char *text, size_t length);

/* Parse `length` bytes; an object with the same key twice is refused. Errors, with no message stored: SDLF_ERROR_FORMAT
 * with `error` filled in, SDLF_ERROR_MEMORY. */
sdlf_status json_text_parse(json_t **json, const char *text, size_t length, json_error_t *error);

/* The text of a value, with a final 0; free() it. `length` may be NULL. NULL when memory is out, or when a string in it is
 * no UTF-8. */
char *json_text_print(const json_t *json, size_t flags, size_t *length);

#endif
