/* SPDX-License-Identifier: MIT */
/* Where in a JSON text something stands. A parser tells what a text means; a message also wants the line. */
#ifndef SDLF_FORMATS_JSON_LOCATE_H
#define SDLF_FORMATS_JSON_LOCATE_H

#include <stddef.h>

/* A place in a value: a member or an element of another place. NULL is the whole text. Made on the stack, step by step:
 * layers = {.key = "layers"}, third = {&layers, NULL, 2}, kernel = {&third, "kernel", 0}. */
typedef struct json_place {
    const struct json_place *parent;
    const char *key; /* NULL: an element, of position `index` */
    size_t index;
} json_place;

/* The line, from 1, of a place in a text that has been parsed without errors: where the member's key or the element's
 * value begins. A place that is not there has the line of the nearest one around it that is. */
int json_locate(const char *text, size_t length, const json_place *place);

/* The lines of the first `count` elements of the array at `place`, in one pass; the array's own line for those
 * missing. */
void json_locate_elements(const char *text, size_t length, const json_place *place, int *lines, size_t count);

#endif
