/* SPDX-License-Identifier: MIT */
/* An output and its capabilities. */
#include "apps/output/terminal.h"

#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/system/memory.h"
#include "apps/system/portable.h"

void terminal_measure(terminal *out)
{
    struct winsize size;
    if (ioctl(fileno(out->file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) out->width = size.ws_col;
}

/* True if the user's locale uses UTF-8. The program itself stays in the "C" locale, so that numbers look the same. */
static bool locale_is_utf8(void)
{
    locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (user == (locale_t)0) return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, user), "UTF-8") == 0;
    freelocale(user);
    return utf8;
}

terminal terminal_of(FILE *file)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    terminal out = {.file = file, .width = 80, .utf8 = locale_is_utf8()};
    out.interactive = isatty(fileno(file)) && term && strcmp(term, "dumb") != 0;
    out.colour = out.interactive && !(no_color && *no_color);
    terminal_measure(&out);
    return out;
}

const char *terminal_escape(const terminal *out, terminal_style style)
{
    if (!out->colour) return "";
    switch (style) {
    case TERMINAL_PLAIN: return "\033[0m";
    case TERMINAL_BOLD: return "\033[1m";
    case TERMINAL_DIM: return "\033[2m";
    case TERMINAL_RED: return "\033[31m";
    case TERMINAL_GREEN: return "\033[32m";
    case TERMINAL_YELLOW: return "\033[33m";
    }
    return "";
}

int terminal_columns(const char *text)
{
    int columns = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\033') { /* CSI: ends with a letter */
            while (c[1] && !((c[1] >= 'a' && c[1] <= 'z') || (c[1] >= 'A' && c[1] <= 'Z'))) c++;
            if (c[1]) c++;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            columns++;
        }
    }
    return columns;
}

void terminal_clean(char *text)
{
    for (; *text; text++) {
        bool second = (unsigned char)text[0] == 0xC2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xA0;
        if ((unsigned char)*text < ' ' || *text == 0x7f || second) *text = '?';
        if (second) *++text = '?'; /* U+0080 to U+009F; U+009B is equivalent to ESC [ */
    }
}

void terminal_print_name(FILE *file, const char *name)
{
    char *shown = memory_copy_text(name);
    terminal_clean(shown);
    fprintf(file, "%s\n", shown);
    free(shown);
}

/* Prints one line of plain text without control characters: names in files are untrusted. */
static void say(const char *command, terminal_style style, const char *kind, const char *format, va_list values)
{
    terminal out = terminal_of(stderr);
    char text[4096];
    vsnprintf(text, sizeof text, format, values);
    terminal_clean(text);
    fflush(stdout);
    fprintf(stderr, "sdlf%s%s: %s%s%s: ", command ? " " : "", command ? command : "", terminal_escape(&out, style),
            kind, terminal_escape(&out, TERMINAL_PLAIN));
    fprintf(stderr, "%s\n", text);
}

void terminal_error(const char *command, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(command, TERMINAL_RED, "error", format, values);
    va_end(values);
}

void terminal_warning(const char *command, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(command, TERMINAL_YELLOW, "warning", format, values);
    va_end(values);
}
