/* SPDX-License-Identifier: MIT */
/* Temporary files that killed processes have left beside a file: "FILE.sdlf-tmp-PID-N" (atomic_file.h). Names are
 * bounded: a FILE of more than 96 bytes is shortened to at most its first 79, in whole UTF-8 characters, then '-' and
 * 16 hexadecimal digits of the name's hash.
 *
 * A process that writes one holds a lock on it (flock), which is released when the process ends, however that happens,
 * on any machine. So a file that can be locked is a leftover. On file systems without locks nothing is removed. If
 * locks are local to a machine (NFS mounted with local_lock or nolock), two machines that save the same file at the
 * same time may remove each other's file: one of the saves then fails, and the file is the other's. */
#ifndef SDLF_FORMATS_LEFTOVER_FILES_H
#define SDLF_FORMATS_LEFTOVER_FILES_H

#include <stdbool.h>

enum { LEFTOVER_NAME_SIZE = 160 };

/* The name of this process's n-th temporary file for the file called `name`. */
void leftover_files_name(char temporary[LEFTOVER_NAME_SIZE], const char *name, int n);

/* Locks a newly created temporary file, in that folder under that name. False: it was removed as a leftover in between;
 * close it, and create another. */
bool leftover_files_lock(int file, const char *path);

/* Locks the regular file with this name until the descriptor is closed, waiting for the present owner; -1: there
 * is none, or locks are unsupported. Meanwhile no process that takes this lock first removes or replaces the
 * file. */
int leftover_files_hold(const char *path);

/* Removes the regular files in `folder` that no process has locked and for which `is_left` returns true, before and
 * while the file is locked. */
typedef bool leftover_files_test(const char *name, void *context);
void leftover_files_remove_if(int folder, leftover_files_test *is_left, void *context);

/* Removes the leftovers of the file called `name` in `folder`. Failures change nothing: the next write of the file
 * retries. */
void leftover_files_remove(int folder, const char *name);

#endif
