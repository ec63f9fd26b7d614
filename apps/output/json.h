/* SPDX-License-Identifier: MIT */
/* JSON that programs read: made with jansson, printed with an indent and no surprise. */
#ifndef SDLF_APPS_OUTPUT_JSON_H
#define SDLF_APPS_OUTPUT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <sdlf/shape.h>
#include <sdlf/status.h>

/* To be called before anything else here: from now on the program ends when jansson's memory is out. Nobody looks at
 * what putting a value into a list returns, and jansson's parser itself does not notice everything. */
void json_watch_memory(void);

/* A number rounded to what it is good for; NaN and infinities, which JSON lacks, become null. */
json_t *json_number(double value);

/* [64, 1, 28, 28] */
json_t *json_shape(sdlf_shape shape);

/* Text that need not be UTF-8, such as a path: bytes that are none are replaced. NULL becomes null. */
json_t *json_text(const char *text);

/* Print and release; ends the program when memory is out. False where `file` did not take it. */
bool json_print(json_t *value, FILE *file);

/* A command's result, on standard output. Of one that measures, an object: "interrupted" is added, true where a signal
 * has ended the measurement before its end. */
sdlf_status json_print_result(json_t *value);
sdlf_status json_print_measured(json_t *object);

/* The same on one line, flushed: a line of a log. */
bool json_print_line(json_t *value, FILE *file);

#endif
