/* SPDX-License-Identifier: MIT */
/* Show a line about current work, which the next one replaces, on standard error if that is a terminal with cursor
 * movement; else does nothing. It is cut to the terminal's width, since text that wraps to a second line cannot be
 * erased. */
#ifndef SDLF_APPS_OUTPUT_STATUS_LINE_H
#define SDLF_APPS_OUTPUT_STATUS_LINE_H

void status_line_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Erase the line, before anything else is printed. */
void status_line_clear(void);

#endif
