/* SPDX-License-Identifier: MIT */
/* Has somebody written to an open file since it was opened? By its size and the time of its last change. (Not by the
 * time of its inode, which renaming and removing change, too: neither matters to who has it open.) */
#ifndef SDLF_FORMATS_FILE_STAMP_H
#define SDLF_FORMATS_FILE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct file_stamp {
    off_t size;
    struct timespec modified;
} file_stamp;

/* The stamp of a file that is like this now and of which nothing has been read yet. Times go by ticks of some
 * milliseconds; where the last change is of this tick, another in it would not show, and the tick's end is waited
 * for. */
file_stamp file_stamp_take(const struct stat *about);

/* Is the file what it was? Where nobody can tell: yes. */
bool file_stamp_holds(const file_stamp *stamp, int descriptor);

#endif
