/* SPDX-License-Identifier: MIT */
/* Reading small text files line by line. See lines.h. */
#include "framework/machine/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool lines_open(line_reader *reader, const char *root, const char *path)
{
    char joined[PATH_BYTES];
    int length = snprintf(joined, sizeof joined, "%s%s", root, path);
    reader->descriptor = -1;
    reader->at = reader->end = 0;
    if (length < 0 || (size_t)length >= sizeof joined) return false;
    reader->descriptor = open(joined, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return reader->descriptor >= 0;
}

void lines_close(line_reader *reader)
{
    if (reader->descriptor >= 0) close(reader->descriptor);
    reader->descriptor = -1;
}

/* Reads more bytes after the remaining ones. False: none are left, or the buffer is full. */
static bool read_more(line_reader *reader)
{
    memmove(reader->buffer, reader->buffer + reader->at, reader->end - reader->at);
    reader->end -= reader->at;
    reader->at = 0;
    ssize_t found;
    do found = read(reader->descriptor, reader->buffer + reader->end, LINE_BYTES - 1 - reader->end);
    while (found < 0 && errno == EINTR);
    if (found <= 0) return false;
    reader->end += (size_t)found;
    return true;
}

char *lines_next(line_reader *reader)
{
    bool cut = false; /* inside a line that is skipped */
    for (;;) {
        char *line = reader->buffer + reader->at;
        char *stop = memchr(line, '\n', reader->end - reader->at);
        if (stop != NULL) {
            reader->at = (size_t)(stop - reader->buffer) + 1;
            *stop = '\0';
            if (!cut) return line;
            cut = false;
        } else if (reader->at == 0 && reader->end == LINE_BYTES - 1) {
            cut = true;
            reader->end = 0;
        } else if (!read_more(reader)) {
            bool last = reader->end > reader->at && !cut;
            reader->buffer[reader->end] = '\0';
            reader->end = reader->at = 0;
            return last ? reader->buffer : NULL;
        }
    }
}

bool number_at(const char *text, int64_t *number, const char **end)
{
    int64_t value = 0;
    while (*text == ' ' || *text == '\t') text++;
    const char *first = text;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (value > (INT64_MAX - (*text - '0')) / 10) return false;
        value = value * 10 + (*text - '0');
    }
    if (end != NULL) *end = text;
    if (text == first) return false;
    *number = value;
    return true;
}

bool number_in_file(const char *root, const char *path, int64_t *number)
{
    return number_behind(root, path, "", number);
}

bool number_behind(const char *root, const char *path, const char *name, int64_t *number)
{
    line_reader reader;
    size_t length = strlen(name);
    bool found = false;
    if (!lines_open(&reader, root, path)) return false;
    for (const char *line; !found && (line = lines_next(&reader)) != NULL;) {
        if (strncmp(line, name, length) != 0) continue;
        found = number_at(line + length, number, NULL);
        break;
    }
    lines_close(&reader);
    return found;
}
