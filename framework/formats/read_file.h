/* SPDX-License-Identifier: MIT */
/* Reads a whole file into memory, up to a limit. */
#ifndef SDLF_FORMATS_READ_FILE_H
#define SDLF_FORMATS_READ_FILE_H

#include <stddef.h>

#include <sdlf/status.h>

/* Reads all of `path` (also a pipe) into `bytes`, which the caller frees; an uncounted NUL follows the last byte.
 * Errors: SDLF_ERROR_IO with the path and the system's reason, SDLF_ERROR_FORMAT (more than `limit` bytes),
 * SDLF_ERROR_MEMORY. */
sdlf_status read_file(char **bytes, size_t *count, const char *path, size_t limit);

#endif
