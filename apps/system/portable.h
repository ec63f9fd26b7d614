/* SPDX-License-Identifier: MIT */
/* What Linux, with glibc or musl, and macOS have each in their own way, for the program. */
#ifndef SDLF_APPS_SYSTEM_PORTABLE_H
#define SDLF_APPS_SYSTEM_PORTABLE_H

#include <langinfo.h> /* nl_langinfo_l */
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

/* A stream that hands what is printed to `write`, which returns how much of it was taken. NULL: out of memory. */
typedef ssize_t system_write(void *user, const char *bytes, size_t count);
FILE *system_open_writer(void *user, system_write *write);

/* An empty file that is in memory, or in the folder of temporary files where that cannot be; it is gone once it is
 * closed. -1: failed, see errno. */
int system_memory_file(const char *name);

/* Is the descriptor's file one of that name? */
bool system_is_memory_file(int file, const char *name);

/* "2.36", of the GNU C Library; NULL: another one, which does not say it. */
const char *system_c_library_version(void);

/* Become this program, begun again with other words. Returns if that failed. */
void system_execute_self(char *const *words);

#endif
