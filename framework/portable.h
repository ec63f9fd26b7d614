/* SPDX-License-Identifier: MIT */
/* Functions that differ between Linux (with glibc or musl) and macOS. Everything else in the library is C11 and POSIX.
 * (The program has apps/system/portable.h.) */
#ifndef SDLF_FRAMEWORK_PORTABLE_H
#define SDLF_FRAMEWORK_PORTABLE_H

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

/* ---- processors ---- */

/* The number of CPU cores on which this thread may run: at least 1. */
int portable_processors(void);

/* Binds a thread to the index-th of the cores on which the calling one may run, index < portable_processors(). Has no
 * effect if the system does not support this. */
void portable_bind(pthread_t thread, int index);

/* ---- files: -1 and errno on failure ---- */

/* rename(2) to a name that must not exist: EEXIST if it does; ENOSYS or EINVAL if this is not supported. */
int portable_rename_new(const char *from, const char *to);

/* Opens an unnamed file in the folder for writing; fails if the system has no such files. */
int portable_open_nameless(const char *folder);

/* An empty file in memory or, if that is not supported, in the folder of temporary files; it is deleted when it is
 * closed. */
int portable_memory_file(const char *name);

/* The path under which another part of the program can open the descriptor's file from its beginning, as long as the
 * descriptor is open. */
void portable_descriptor_path(char *path, size_t size, int descriptor);

/* posix_fallocate(3): an error number, 0 for none; EOPNOTSUPP if the system has no such call. */
int portable_reserve(int file, off_t size);

/* The time of the last modification. */
struct timespec portable_modified(const struct stat *file);

#endif
