/* SPDX-License-Identifier: MIT */
/* Text wrapped at spaces. */
#ifndef SDLF_APPS_OUTPUT_WRAP_H
#define SDLF_APPS_OUTPUT_WRAP_H

#include <stdio.h>

/* Print `text` between columns `indent` and `width`, starting on a line that is `at` columns long already; ends with a
 * line break. A line break in the text is kept. */
void wrap_print(FILE *file, const char *text, int at, int indent, int width);

#endif
