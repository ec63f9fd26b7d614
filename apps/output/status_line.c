/* SPDX-License-Identifier: MIT */
/* A line about current work. */
#include "apps/output/status_line.h"

#include <stdarg.h>
#include <stdio.h>

#include "apps/output/terminal.h"

void status_line_show(const char *format, ...)
{
    terminal out = terminal_of(stderr);
    if (!out.interactive) return;
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    terminal_clean(text);
    int end = 0, columns = 0;
    for (; text[end]; end++) {
        bool begins = ((unsigned char)text[end] & 0xC0) != 0x80; /* a character of UTF-8 */
        if (begins && ++columns >= out.width) break;
    }
    fprintf(stderr, "\r%.*s\033[K", end, text);
    fflush(stderr);
}

void status_line_clear(void)
{
    if (terminal_of(stderr).interactive) fputs("\r\033[K", stderr);
}
