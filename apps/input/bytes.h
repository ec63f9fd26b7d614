/* SPDX-License-Identifier: MIT */
/* Whole files in memory, and standard input in a file's place. */
#ifndef SDLF_APPS_INPUT_BYTES_H
#define SDLF_APPS_INPUT_BYTES_H

#include <stddef.h>

#include <sdlf/status.h>

/* Read all of `path`, which may be a pipe, into `bytes`, which the caller frees. Somebody else may take long to fill a
 * pipe, so that a signal ends the wait. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (more than `limit` bytes),
 * SDLF_ERROR_MEMORY, SDLF_ERROR_INTERRUPTED (after interrupt_waits; before it, a signal ends the program). */
sdlf_status input_read(unsigned char **bytes, size_t *size, const char *path, size_t limit);

/* What "-" stands for: read standard input to its end, put a file in memory in its place, and set *path to its name,
 * INPUT_STANDARD. Whoever opens that name finds a regular file, and finds it from its start, as often as it is opened.
 * Errors: those of input_read without a limit; SDLF_ERROR_ARGUMENT the second time, when nothing is left to read. */
#define INPUT_STANDARD "/dev/stdin"
sdlf_status input_take_standard(const char **path);

#endif
