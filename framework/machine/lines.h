/* SPDX-License-Identifier: MIT */
/* Small text files of the system (/proc, /sys/fs/cgroup), read line by line without allocating. */
#ifndef SDLF_FRAMEWORK_MACHINE_LINES_H
#define SDLF_FRAMEWORK_MACHINE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_BYTES = 8192, PATH_BYTES = 4096 };

/* One file. Lines of LINE_BYTES or more are skipped. */
typedef struct line_reader {
    int descriptor;
    size_t at, end; /* range of `buffer` that was read but not returned yet */
    char buffer[LINE_BYTES];
} line_reader;

/* Opens the concatenation of ROOT and PATH. False: there is no such file. */
bool lines_open(line_reader *reader, const char *root, const char *path);
/* Returns the next line, null-terminated, without its line end; NULL after the last. Valid until the next call. */
char *lines_next(line_reader *reader);
void lines_close(line_reader *reader);

/* Parses the digits at the start of `text`, after any blanks; false if there are none, or the number exceeds int64_t.
 * `end` (may be NULL) is set to the end of the digits. */
bool number_at(const char *text, int64_t *number, const char **end);

/* The number in the first line of a file; false: there is none. */
bool number_in_file(const char *root, const char *path, int64_t *number);

/* The number after `name` in the first line that begins with it. */
bool number_behind(const char *root, const char *path, const char *name, int64_t *number);

#endif
