/* SPDX-License-Identifier: MIT */
/* What Linux, with glibc or musl, and macOS have each in their own way. All else in the library is C11 and POSIX. (The
 * program has apps/system/portable.h.) */
#ifndef SDLF_FRAMEWORK_PORTABLE_H
#define SDLF_FRAMEWORK_PORTABLE_H

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

/* ---- processors ---- */

/* How many processors this thread may run on: at least 1. */
int portable_processors(void);

/* Keep a thread on the index-th of the processors that the calling one may run on, index < portable_processors(). Where
 * that cannot be asked for, the thread stays where it is. */
void portable_bind(pthread_t thread, int index);

/* ---- files: -1 and errno where it failed ---- */

/* rename(2) to a name that nothing has: EEXIST if something has it; ENOSYS or EINVAL where this cannot be asked for. */
int portable_rename_new(const char *from, const char *to);

/* A file in the folder that has no name, to write to; fails where there are no such files. */
int portable_open_nameless(const char *folder);

/* An empty file that is in memory, or beneath the folder of temporary files where that cannot be; it is gone once it is
 * closed. */
int portable_memory_file(const char *name);

/* Under this name another part of the program may open the descriptor's file from its beginning, as long as it is
 * open. */
void portable_descriptor_path(char *path, size_t size, int descriptor);

/* posix_fallocate(3): an error's number, 0 for none; EOPNOTSUPP where there is no such call. */
int portable_reserve(int file, off_t size);

/* When the file was last written to. */
struct timespec portable_modified(const struct stat *file);

#endif
