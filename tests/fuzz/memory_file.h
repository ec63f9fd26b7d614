/* SPDX-License-Identifier: MIT */
/* A file in memory, for readers that take a path. */
#ifndef SDLF_TESTS_FUZZ_MEMORY_FILE_H
#define SDLF_TESTS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMORY_FILE_PATH = 32 };

/* Create the file and its path; the caller closes the descriptor. Its times are set in the past, because for a new file the reader of
 * weights waits until the times distinguish it from a later version. */
static inline int memory_file(char path[MEMORY_FILE_PATH], const uint8_t *data, size_t size)
{
    static const struct timespec old[2];
    int file = memfd_create("input", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != (ssize_t)size || futimens(file, old) != 0) abort();
    snprintf(path, MEMORY_FILE_PATH, "/proc/self/fd/%d", file);
    return file;
}

#endif
