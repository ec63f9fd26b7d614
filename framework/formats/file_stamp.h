/* SPDX-License-Identifier: MIT */
/* Detects whether an open file has been written to since it was opened, by its size and modification time. (Not by the
 * inode change time, which renaming and removing change too: neither affects an open file.) */
#ifndef SDLF_FORMATS_FILE_STAMP_H
#define SDLF_FORMATS_FILE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct file_stamp {
    off_t size;
    struct timespec modified;
} file_stamp;

/* The stamp of a file in this state, of which nothing has been read yet. Timestamps have a granularity of some
 * milliseconds; if the last change is in the current tick, another one in it would be invisible, so this waits for the
 * tick's end. */
file_stamp file_stamp_take(const struct stat *about);

/* True if the file is unchanged, or if that cannot be determined. */
bool file_stamp_holds(const file_stamp *stamp, int descriptor);

#endif
