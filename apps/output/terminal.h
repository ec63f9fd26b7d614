/* SPDX-License-Identifier: MIT */
/* An output and its capabilities: whether it is a terminal, its width, colour and UTF-8. */
#ifndef SDLF_APPS_OUTPUT_TERMINAL_H
#define SDLF_APPS_OUTPUT_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

typedef struct terminal {
    FILE *file;
    bool interactive; /* a terminal that understands cursor movement */
    bool colour;      /* interactive, and NO_COLOR is not set (no-color.org) */
    bool utf8;        /* the locale's characters are UTF-8 */
    int width;        /* columns; 80 where unknown */
} terminal;

/* Inspect `file` (borrowed). */
terminal terminal_of(FILE *file);

/* Measure the width again: it may change during a run. */
void terminal_measure(terminal *out);

typedef enum terminal_style {
    TERMINAL_PLAIN = 0,
    TERMINAL_BOLD,
    TERMINAL_DIM,
    TERMINAL_RED,
    TERMINAL_GREEN,
    TERMINAL_YELLOW,
} terminal_style;

/* The escape sequence that begins a style (TERMINAL_PLAIN ends them all), or "" where there is no colour. */
const char *terminal_escape(const terminal *out, terminal_style style);

/* The columns of UTF-8 text: one per code point, none for escape sequences. */
int terminal_columns(const char *text);

/* Replace control characters, which would control the terminal, by '?': for names and labels, which may come from
 * untrusted files. */
void terminal_clean(char *text);

/* Print the name of a file, cleaned, as a line. */
void terminal_print_name(FILE *file, const char *name);

/* Print "sdlf COMMAND: error: ..." on standard error, cleaned, after ending any progress line there. `command` may be
 * NULL. */
void terminal_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
void terminal_warning(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
