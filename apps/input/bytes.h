/* SPDX-License-Identifier: MIT */
/* Reading whole files into memory, and standard input in place of a file. */
#ifndef SDLF_APPS_INPUT_BYTES_H
#define SDLF_APPS_INPUT_BYTES_H

#include <stddef.h>

#include <sdlf/status.h>

/* Read all of `path`, which may be a pipe, into `bytes`, which the caller frees. A signal ends the wait for a slow
 * pipe. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (more than `limit` bytes), SDLF_ERROR_MEMORY, SDLF_ERROR_INTERRUPTED
 * (after interrupt_waits; before it, a signal ends the program). */
sdlf_status input_read(unsigned char **bytes, size_t *size, const char *path, size_t limit);

/* For "-": read standard input to its end, replace it by a file in memory, and set *path to its name, INPUT_STANDARD.
 * Opening that name gives a regular file, positioned at its start, any number of times. Errors: those of input_read
 * without a limit; SDLF_ERROR_ARGUMENT the second time, when nothing is left to read. */
#define INPUT_STANDARD "/dev/stdin"
sdlf_status input_take_standard(const char **path);

#endif
