/* SPDX-License-Identifier: MIT */
/* The file that a long run writes at its end: a check, before the run, that it can be written, and writing it. */
#ifndef SDLF_APPS_OUTPUT_FILE_H
#define SDLF_APPS_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sdlf/status.h>

/* True for "-"; true for "-" or a pipe, whose data cannot be replaced by a renamed file (stream.h writes these). */
bool output_is_standard(const char *path);
bool output_is_stream(const char *path);

/* Check that `path` can be written: it is not a folder, its folder exists and accepts a new file now, and an existing
 * file is writable. sdlf_can_write_file, for names from a command line. Errors: SDLF_ERROR_IO with the path and the
 * reason; SDLF_ERROR_ARGUMENT for a stream. */
sdlf_status output_file_check(const char *path);

/* The same for weights, which are always written as safetensors: file names of other formats are also refused,
 * SDLF_ERROR_ARGUMENT. */
sdlf_status output_file_check_weights(const char *path);

/* Write the output of `print` for `subject` to a file, which is replaced atomically, or to a stream. `print`
 * returns whether the writes succeeded. Errors: SDLF_ERROR_IO with the path, SDLF_ERROR_MEMORY, those of
 * pipe_write. */
sdlf_status output_file_write(const char *path, bool (*print)(FILE *file, const void *subject), const void *subject);

/* Check that `bytes` are free where `path` will be written, following links. Passes if the free space is unknown. */
sdlf_status output_file_check_space(const char *path, int64_t bytes);

/* Bytes of the file; 0 if it is not there. */
int64_t output_file_size(const char *path);

#endif
