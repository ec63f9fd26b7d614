/* SPDX-License-Identifier: MIT */
/* The file that a long run will write at its end: can it be written? Asked before the run begins; and writing it. */
#ifndef SDLF_APPS_OUTPUT_FILE_H
#define SDLF_APPS_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sdlf/status.h>

/* "-"; that, or a pipe: what is sent there is gone, and nothing can take its place (stream.h writes such). */
bool output_is_standard(const char *path);
bool output_is_stream(const char *path);

/* Is `path` a place for a file: not a folder, in a folder that is there and takes a new file now, not a file that may
 * not be written? sdlf_can_write_file, for names from a command line. Errors: SDLF_ERROR_IO with the path and the
 * reason; SDLF_ERROR_ARGUMENT of what is a stream. */
sdlf_status output_file_check(const char *path);

/* The same for weights, which become a safetensors file whatever it is called: names of other forms are refused, too,
 * SDLF_ERROR_ARGUMENT. */
sdlf_status output_file_check_weights(const char *path);

/* Write what `print` prints of `subject`: to a file, which appears whole or stays what it was, or to a stream.
 * `print` says whether the file took it. Errors: SDLF_ERROR_IO with the path, SDLF_ERROR_MEMORY, those of
 * pipe_write. */
sdlf_status output_file_write(const char *path, bool (*print)(FILE *file, const void *subject), const void *subject);

/* Are there `bytes` free where `path` will lie, links followed? Where nobody can tell: yes. */
sdlf_status output_file_check_space(const char *path, int64_t bytes);

/* Bytes of the file; 0 if it is not there. */
int64_t output_file_size(const char *path);

#endif
