/* SPDX-License-Identifier: MIT */
/* Locates values in a JSON text. A parser gives a text's meaning; an error message also needs the line. */
#ifndef SDLF_FORMATS_JSON_LOCATE_H
#define SDLF_FORMATS_JSON_LOCATE_H

#include <stddef.h>

/* A path to a value: a member or an element of another place. NULL is the whole text. Built on the stack, step by step:
 * layers = {.key = "layers"}, third = {&layers, NULL, 2}, kernel = {&third, "kernel", 0}. */
typedef struct json_place {
    const struct json_place *parent;
    const char *key; /* NULL: an element, at position `index` */
    size_t index;
} json_place;

/* The line, from 1, of a place in a text that has been parsed without errors: where the member's key or the element's
 * value begins. A missing place has the line of its nearest existing ancestor. */
int json_locate(const char *text, size_t length, const json_place *place);

/* The lines of the first `count` elements of the array at `place`, in one pass; the array's own line for those
 * missing. */
void json_locate_elements(const char *text, size_t length, const json_place *place, int *lines, size_t count);

#endif
