/* SPDX-License-Identifier: MIT */
/* Wrappers for what differs between Linux with glibc, Linux with musl, and macOS, for the program. */
#ifndef SDLF_APPS_SYSTEM_PORTABLE_H
#define SDLF_APPS_SYSTEM_PORTABLE_H

#include <langinfo.h> /* nl_langinfo_l */
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

/* Open a stream that passes its output to `write`, which returns the bytes accepted. NULL: out of memory. */
typedef ssize_t system_write(void *user, const char *bytes, size_t count);
FILE *system_open_writer(void *user, system_write *write);

/* Open an empty file in memory, or in the temporary folder if that is not possible; it is deleted when closed. -1:
 * failed, see errno. */
int system_memory_file(const char *name);

/* True if the descriptor is a memory file of that name. */
bool system_is_memory_file(int file, const char *name);

/* "2.36" for the GNU C Library; NULL: another library, which does not report its version. */
const char *system_c_library_version(void);

/* Restart this program with other arguments, replacing the process. Returns only on failure. */
void system_execute_self(char *const *words);

#endif
