/* SPDX-License-Identifier: MIT */
/* Temporary files that killed processes have left beside a file: "FILE.sdlf-tmp-PID-N" (atomic_file.h). Names have an
 * end: of a FILE of more than 96 bytes its first 79 at most stand there, whole characters of UTF-8, then '-' and 16
 * hexadecimal digits of the name's hash.
 *
 * A process that writes one holds a lock on it (flock), which goes when the process does, however that ends, on
 * whichever machine. So what can be locked is nobody's. On file systems without locks nothing is taken away. Where
 * locks reach no further than a machine (NFS mounted with local_lock or nolock), two machines that save the same file
 * at the same time may take each other's away: one of the saves then fails, and the file is the other's. */
#ifndef SDLF_FORMATS_LEFTOVER_FILES_H
#define SDLF_FORMATS_LEFTOVER_FILES_H

#include <stdbool.h>

enum { LEFTOVER_NAME_SIZE = 160 };

/* The name of a temporary file of the file called `name`, this process's n-th. */
void leftover_files_name(char temporary[LEFTOVER_NAME_SIZE], const char *name, int n);

/* Lock a temporary file that was just made, in that folder under that name. False: between the two somebody took it for
 * a leftover; it is to be closed, and another to be made. */
bool leftover_files_lock(int file, const char *path);

/* Lock the regular file that has this name for as long as the descriptor is open, waiting for whoever has it; -1: there
 * is none, or there are no locks. Meanwhile nobody removes what has the name, or takes its place, of those who lock it
 * for that. */
int leftover_files_hold(const char *path);

/* Remove the regular files in `folder` that no process has locked and that `is_left` says: it is asked before and while
 * the file is locked. */
typedef bool leftover_files_test(const char *name, void *context);
void leftover_files_remove_if(int folder, leftover_files_test *is_left, void *context);

/* Remove the leftovers of the file called `name` in `folder`. Failures change nothing: the next file that is written
 * tries again. */
void leftover_files_remove(int folder, const char *name);

#endif
