/* SPDX-License-Identifier: MIT */
/* Rows and cells of CSV. See csv.h. */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/csv.h"

static const char separators[] = {',', ';', '\t'};

/* The separator that is most frequent in the first line. */
static char find_separator(const char *at, const char *end)
{
    int64_t most = 0;
    char found = ',';
    const char *line = memchr(at, '\n', (size_t)(end - at));
    for (size_t i = 0; i < sizeof separators; i++) {
        int64_t count = 0;
        for (const char *c = at; c < (line != NULL ? line : end); c++) count += *c == separators[i];
        if (count > most) found = separators[i];
        if (count > most) most = count;
    }
    return found;
}

csv_text csv_begin(char *bytes, size_t size, const char *name)
{
    bool marked = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0; /* a byte order mark */
    csv_text text = {.name = name, .at = bytes + (marked ? 3 : 0), .end = bytes + size, .line = 1};
    text.separator = find_separator(text.at, text.end);
    return text;
}

bool csv_next_row(csv_text *text)
{
    while (text->at < text->end && (*text->at == '\n' || *text->at == '\r')) text->line += *text->at++ == '\n';
    text->in_row = text->at < text->end;
    return text->in_row;
}

static bool is_blank(const csv_text *text, char c)
{
    return (c == ' ' || c == '\t') && c != text->separator;
}

/* Read a quoted cell, starting after its opening quote; its characters go to `to`. */
static sdlf_status take_quoted(csv_text *text, char *to, size_t *length, bool change)
{
    int64_t line = text->line;
    *length = 0;
    while (text->at < text->end) {
        char c = *text->at++;
        if (c == '"' && !(text->at < text->end && *text->at == '"')) return SDLF_OK;
        if (c == '"') text->at++;
        text->line += c == '\n';
        if (change) to[*length] = c;
        ++*length;
    }
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %" PRId64 ": a quote that is not closed", text->name, line);
}

static bool ends_cell(const csv_text *text)
{
    return text->at == text->end || *text->at == text->separator || *text->at == '\n' ||
           (*text->at == '\r' && (text->at + 1 == text->end || text->at[1] == '\n'));
}

sdlf_status csv_take_cell(csv_text *text, char **cell, size_t *length, bool change)
{
    while (text->at < text->end && is_blank(text, *text->at)) text->at++;
    *cell = text->at;
    bool quoted = text->at < text->end && *text->at == '"';
    if (quoted) {
        text->at++;
        sdlf_status status = take_quoted(text, *cell, length, change);
        if (status != SDLF_OK) return status;
        while (text->at < text->end && is_blank(text, *text->at)) text->at++;
        if (!ends_cell(text))
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %" PRId64 ": expected '%c' or the line's end after a quote",
                             text->name, text->line, text->separator);
    } else {
        while (!ends_cell(text) && *text->at != '\0') text->at++;
        if (!ends_cell(text))
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: line %" PRId64 ": found a NUL byte; expected text", text->name,
                             text->line);
        *length = (size_t)(text->at - *cell);
        while (*length > 0 && is_blank(text, (*cell)[*length - 1])) --*length;
    }
    if (text->at < text->end && *text->at == '\r') text->at++;
    text->in_row = text->at < text->end && *text->at == text->separator;
    text->line += text->at < text->end && *text->at == '\n';
    if (text->at < text->end) text->at++;
    if (change) (*cell)[*length] = '\0';
    return SDLF_OK;
}

bool csv_number(const char *cell, double *number)
{
    char copy[64], *end;
    size_t length = strlen(cell);
    if (length == 0 || length >= sizeof copy || strspn(cell, "+-.0123456789eE") != length) return false;
    memcpy(copy, cell, length + 1);
    char *point = strchr(copy, '.');
    if (point != NULL) *point = *localeconv()->decimal_point; /* strtod uses the locale's */
    *number = strtod(copy, &end);
    return end == copy + length;
}
