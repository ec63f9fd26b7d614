/* SPDX-License-Identifier: MIT */
/* The system's small text files (/proc, /sys/fs/cgroup), line by line, without allocating. */
#ifndef SDLF_FRAMEWORK_MACHINE_LINES_H
#define SDLF_FRAMEWORK_MACHINE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_BYTES = 8192, PATH_BYTES = 4096 };

/* One file. Lines of LINE_BYTES and more are left out. */
typedef struct line_reader {
    int descriptor;
    size_t at, end; /* bytes of `buffer` that were read and not given yet */
    char buffer[LINE_BYTES];
} line_reader;

/* Open ROOT and PATH, one behind the other. False: there is no such file. */
bool lines_open(line_reader *reader, const char *root, const char *path);
/* The next line, ended by 0, without its end; NULL past the last. It stays until the next call. */
char *lines_next(line_reader *reader);
void lines_close(line_reader *reader);

/* The digits at the front of `text`, blanks before them skipped; false where there are none, or more than int64_t
 * holds. `end` (may be NULL) is where they end. */
bool number_at(const char *text, int64_t *number, const char **end);

/* The number that is the first line of a file; false: there is none. */
bool number_in_file(const char *root, const char *path, int64_t *number);

/* The number behind the first line that begins with `name`. */
bool number_behind(const char *root, const char *path, const char *name, int64_t *number);

#endif
