/* SPDX-License-Identifier: MIT */
/* A line that says what is at work, and whose place the next one takes: on standard error, where that is a terminal
 * that moves its cursor; elsewhere nothing. It is cut to the terminal's width, since what goes on in a second line
 * cannot be taken back. */
#ifndef SDLF_APPS_OUTPUT_STATUS_LINE_H
#define SDLF_APPS_OUTPUT_STATUS_LINE_H

void status_line_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Take the line away, before anything else is printed. */
void status_line_clear(void);

#endif
