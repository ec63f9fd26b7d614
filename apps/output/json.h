/* SPDX-License-Identifier: MIT */
/* JSON output for programs: built with jansson, printed indented. */
#ifndef SDLF_APPS_OUTPUT_JSON_H
#define SDLF_APPS_OUTPUT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <sdlf/shape.h>
#include <sdlf/status.h>

/* Call before anything else here: from now on the program ends when jansson runs out of memory. Callers do not check
 * the results of building values, and jansson's own parser does not detect every failure. */
void json_watch_memory(void);

/* A number rounded to its meaningful digits; NaN and infinities, which JSON lacks, become null. */
json_t *json_number(double value);

/* [64, 1, 28, 28] */
json_t *json_shape(sdlf_shape shape);

/* Text that need not be UTF-8, such as a path: invalid bytes are replaced. NULL becomes null. */
json_t *json_text(const char *text);

/* Print and release; ends the program when memory runs out. Returns false if writing to `file` failed. */
bool json_print(json_t *value, FILE *file);

/* Print a command's result on standard output. A command that measures passes an object, to which "interrupted" is
 * added: true if a signal ended the measurement early. */
sdlf_status json_print_result(json_t *value);
sdlf_status json_print_measured(json_t *object);

/* The same on one line, flushed: a line of a log. */
bool json_print_line(json_t *value, FILE *file);

#endif
